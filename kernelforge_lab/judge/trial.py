"""One candidate, alive in its runner, on its region's bench: proof, race, full timing, verdict."""

from __future__ import annotations

import dataclasses
import math
from typing import Final

from .arena import Arena
from .bench import Bench
from .candidate import Candidate
from .checks import Proof
from .contention import NOTEWORTHY, Contention
from .finalist import ROUNDS
from .job import Job, Stock
from .rotation import Rotation
from .statistics import LAUNCH_BOUND_US, Interval, is_faster, rank_us, surely_worse
from .timing import Pair, Rule
from .verdict import Status, Timing, Verdict

_RACE: Final = Rule(half_width=0.005, time_s=0.6, quads_min=8, quads_max=12)
# Not worth more samples: even the optimistic end is 3 % slower than stock (a log-ratio).
_HOPELESS: Final = -0.03


class Trial:
    """``proof`` holds what has been checked so far, also when a gate raised."""

    def __init__(
        self,
        job: Job,
        bench: Bench,
        candidate: Candidate,
        arena: Arena,
        *,
        atomics: bool,
        turn: int = 0,
    ) -> None:
        self._job = job
        self._turn = turn
        self._bench = bench
        self._candidate = candidate
        self._arena = arena
        self.proof = Proof(arena, candidate, bench.oracle(finalist=job.finalist), atomics=atomics)

    def prove(self) -> None:
        """Correctness; the long part waits for the race when the job is a quick one.

        A finalist's second fresh process (``turn`` 1) repeats the short part.
        """
        self.proof.quick()
        if not self._job.quick and not self._turn:
            self.proof.full()

    def proven(self, facts: Verdict, *, untimed: bool = False) -> Verdict:
        """``facts`` with what has been proven so far."""
        notes = [f"inputs '{family}' not used: {why}" for family, why in self.proof.skipped.items()]
        proof = self.proof
        return dataclasses.replace(
            facts,
            status=Status.CORRECT if untimed else facts.status,
            evidence="; ".join(["proven, not timed", *notes]) if untimed else facts.evidence,
            checks=dict(proof.checks),
            errors=dict(proof.errors),
            max_error=proof.max_error,
        )

    def time(self, stock: Stock, facts: Verdict) -> Verdict:
        """Race, then the full measurement when the kernel may win. Raises Failed on a cheat."""
        job, bench, timed = self._job, self._bench, self._arena.layout.timed
        cases = [c for c in bench.timed_cases(finalist=job.finalist) if self.proof.proven(c)]
        rotation = Rotation(self._arena, self.proof, cases, job.seed + self._turn)
        best = bench.ground.stock_side(bench.implementations[stock.best], self._arena)
        kernel = bench.ground.candidate_side(self._candidate, timed)
        pair = Pair(best, kernel, len(timed), rotation.before_quad)
        others = Contention([self._candidate.pid])
        interval = pair.measure(_RACE)
        rotation.verify()
        if self._goes_on(interval, pair, stock):
            if job.quick:
                self.proof.full()
            cap_s = job.limits.finalist_time_s / ROUNDS if job.finalist else job.limits.time_s
            interval = pair.measure(Rule(job.limits.half_width, cap_s))
            rotation.verify()
        return self._conclude(pair, interval, stock, facts, others.share())

    def _goes_on(self, interval: Interval, pair: Pair, stock: Stock) -> bool:
        if self._job.finalist:
            return True
        if surely_worse(interval, pair.stock_us, self._job.best_us) or interval.high < _HOPELESS:
            return False
        return not self._job.quick or is_faster(interval, stock.noise)

    def _conclude(
        self, pair: Pair, interval: Interval, stock: Stock, facts: Verdict, others: float
    ) -> Verdict:
        notes = []
        if pair.kernel_us < LAUNCH_BOUND_US:
            notes.append(f"launch-bound: under {LAUNCH_BOUND_US:g} µs, ranked as {LAUNCH_BOUND_US:g} µs")
            interval = interval.shifted(-math.log(rank_us(pair.kernel_us) / pair.kernel_us))
        speedup, low, high = interval.speedup
        faster = is_faster(interval, stock.noise)
        call_us = None
        if (overhead_s := self._bench.call_overhead_s) is not None:
            call_us = pair.kernel_us + overhead_s * 1e6
            if faster and not is_faster(interval.shifted(-math.log(call_us / pair.kernel_us)), stock.noise):
                faster = False
                notes.append(
                    f"faster alone, but its guard costs {overhead_s * 1e6:.1f} µs: a call takes"
                    f" {call_us:.1f} µs and {stock.best} {pair.stock_us:.1f} µs"
                )
        if not faster and not notes and interval.high > 0:
            notes.append(
                f"a tie with {stock.best} (within twice the interval or the noise); ties go to stock"
            )
        if others > NOTEWORTHY:
            notes.append(f"other processes used {others:.0%} of the processors meanwhile: times are rough")
        notes += [f"inputs '{family}' not used: {why}" for family, why in self.proof.skipped.items()]
        samples = interval.samples
        return dataclasses.replace(
            self.proven(facts),
            status=Status.FASTER if faster else Status.SLOWER,
            evidence="; ".join(notes),
            timing=Timing(
                pair.kernel_us, stock.best, pair.stock_us, speedup, low, high, samples, "kernel", call_us
            ),
        )
