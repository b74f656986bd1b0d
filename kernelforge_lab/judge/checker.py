"""The trusted process's work: takes a job through the gates of judging.md and answers with a verdict."""

from __future__ import annotations

import dataclasses
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from .. import targets
from ..exc import CompileError, ForgeError, KernelSourceError
from ..kernels.format import parse
from ..kernels.kernel import Kernel
from ..kernels.region import Region
from ..kernels.stats import InputStats
from ..targets.base import Built
from . import roof
from .arena import Arena
from .bench import Bench
from .candidate import Candidate, CandidateDied
from .certificate import Certificate
from .checks import Failed
from .compile_ahead import CompileAhead
from .contention import NOTEWORTHY, Contention
from .finalist import ROUNDS, agree
from .ground import ground_of
from .job import Job, Limits, Stock
from .layout import place_bytes
from .lock import DeviceLock
from .screen import screen
from .timing import fastest
from .trial import Trial
from .verdict import Status, Verdict

_BENCHES_KEPT: Final = 3
_FLOOR_TRIES: Final = 4
_BUSY_FACTOR: Final = 5.0


class Checker:
    """Judges jobs for one target, one at a time. The ground holds the next runner ready."""

    def __init__(self, target: str, threads: int | None) -> None:
        self.target = targets.get(target, threads=threads)
        self.device = self.target.device()
        self.ground = ground_of(self.target, self.device)
        self._lock = DeviceLock(self.ground.lock_name)
        modes = list(self.ground.stock_modes().values())
        self.compile_ahead = CompileAhead(self.device.threads, self.ground.torch_device, modes)
        self._benches: OrderedDict[tuple[str, tuple[InputStats, ...]], Bench] = OrderedDict()

    def close(self) -> None:
        self.compile_ahead.close()
        self.ground.close()

    def prepare(self, region: Region, stats: tuple[InputStats, ...], limits: Limits, seed: int = 0) -> Stock:
        """Measure stock for a region, once."""
        return self._stock(self._bench(region, stats, limits, seed))

    def judge(self, job: Job) -> Verdict:
        """The verdict; never raises for what a kernel does. Raises NoCompilerError."""
        begin = time.perf_counter()
        verdict = self._judge(job)
        return dataclasses.replace(verdict, seconds=time.perf_counter() - begin)

    def _judge(self, job: Job) -> Verdict:
        try:
            atomics = parse(job.kernel.source).atomics
            objection = screen(job.kernel.source, self.target.name)
            if objection:
                return Verdict(Status.REJECTED, objection)
            built = self.target.build(job.kernel, job.region)
        except KernelSourceError as error:
            return Verdict(Status.PARSE_ERROR, str(error))
        except CompileError as error:
            return Verdict(Status.COMPILE_ERROR, str(error))
        facts = Verdict(Status.UNVERIFIED, binary_hash=built.binary_hash, resources=dict(built.resources))
        if built.foreign:
            names = ", ".join(built.foreign[:5])
            evidence = f"the kernel uses {names}: only arithmetic, memory and OpenMP are allowed"
            return dataclasses.replace(facts, status=Status.REJECTED, evidence=evidence)
        bench = self._bench(job.region, job.stats, job.limits, job.seed)
        if bench.refused:
            return dataclasses.replace(facts, evidence=bench.refused)
        # The same code is another kernel when it says that the order of its sums is open.
        code = f"{built.binary_hash} {'atomics' if atomics else ''}"
        twin = bench.twins.setdefault(code, job.kernel.hash)
        if twin != job.kernel.hash and not job.finalist:
            evidence = f"the same machine code as kernel {twin}"
            return dataclasses.replace(facts, status=Status.DUPLICATE, evidence=evidence)
        if 4 * place_bytes(job.region, built.plan.workspaces) > bench.limits.memory_bytes:
            evidence = "its workspaces need more memory than the judge may hold"
            return dataclasses.replace(facts, evidence=evidence)
        if job.finalist and job.timed:
            return self._final(job, bench, built, facts, atomics=atomics)
        return self._launch(job, bench, built, facts, atomics=atomics)[0]

    def _final(self, job: Job, bench: Bench, built: Built, facts: Verdict, *, atomics: bool) -> Verdict:
        """A finalist's verdict, with its certificate when every fresh process found it faster."""
        verdicts: list[Verdict] = []
        seeds: set[int] = set()
        for turn in range(ROUNDS):
            verdict, used = self._launch(job, bench, built, facts, atomics=atomics, turn=turn)
            verdicts.append(verdict)
            seeds |= used
            if verdict.status is not Status.FASTER:
                break
        verdict = verdicts[0] if len(verdicts) == 1 else agree(*verdicts)
        if verdict.status is not Status.FASTER or bench.stock is None:
            return verdict
        certificate = Certificate.issue(
            job.region,
            job.kernel,
            built,
            self.device,
            verdicts=verdicts,
            noise=bench.stock.noise,
            floor_us=bench.stock.floor_us,
            seeds=sorted(seeds),
            stats=job.stats,
        )
        return dataclasses.replace(verdict, certificate=certificate.as_json())

    def _launch(
        self, job: Job, bench: Bench, built: Built, facts: Verdict, *, atomics: bool, turn: int = 0
    ) -> tuple[Verdict, set[int]]:
        """(verdict, seeds of the inputs used) of one fresh process."""
        trial: Trial | None = None
        candidate: Candidate | None = None
        try:
            arena = bench.arena(built.plan.workspaces)
            candidate = self._start(built, arena, bench, fresh=job.finalist)
            trial = Trial(job, bench, candidate, arena, atomics=atomics, turn=turn)
            trial.prove()
            if not job.timed:
                return trial.proven(facts, untimed=True), trial.proof.seeds
            # Compiling stock takes seconds; a wrong kernel does not wait for it.
            stock = self._stock(bench)
            facts = dataclasses.replace(facts, stocks_us=dict(stock.times_us))
            with self._quiet():
                verdict = trial.time(stock, facts)
            return self._believe(verdict, bench), trial.proof.seeds
        except (CandidateDied, Failed) as stop:
            known = trial.proven(facts) if trial else facts
            return dataclasses.replace(known, status=stop.status, evidence=stop.evidence), set()
        finally:
            if candidate is not None:
                self._end(candidate)

    def _start(self, built: Built, arena: Arena, bench: Bench, *, fresh: bool = False) -> Candidate:
        """The kernel in a runner. Raises CandidateDied."""
        runner = self.ground.take_runner(fresh=fresh)
        try:
            return Candidate(runner, built, arena, threads=self.device.threads, limit_s=bench.call_limit_s)
        except (CandidateDied, ForgeError):
            self.ground.give_back(runner, clean=False)
            raise

    def _end(self, candidate: Candidate) -> None:
        self.ground.give_back(candidate.runner, clean=candidate.alive)

    def _stock(self, bench: Bench) -> Stock:
        if bench.stock is None:
            problem = bench.refused
            cap_s = bench.limits.compile_s
            if not problem and cap_s > 0:
                problem = self.compile_ahead.wait(bench.region, cap_s)
            elif not problem:
                problem = "torch.compile was not asked for"
            with self._quiet():
                bench.measure_stock(problem)
                if not bench.refused:
                    bench.note_floor(self._floor(bench)[0])
        assert bench.stock is not None
        return bench.stock

    def _floor(self, bench: Bench) -> tuple[float, float]:
        """(µs of touching everything once, share of the processors that others used meanwhile)."""
        arena = bench.arena(())
        shares = [0.0]

        def fastest_s(kernel: Kernel) -> float:
            candidate = self._start(self.target.build(kernel, bench.region), arena, bench)
            try:
                self.ground.wait_ready()
                others, timed = Contention([candidate.pid]), arena.layout.timed
                seconds = fastest(self.ground.candidate_side(candidate, timed), len(timed))
                shares.append(others.share())
                return seconds
            finally:
                self._end(candidate)

        floor_us = roof.measure_floor_us(self.ground.touch_kernels(bench.region), fastest_s)
        return floor_us, max(shares)

    def _believe(self, verdict: Verdict, bench: Bench) -> Verdict:
        """A kernel below the physical limit is not believed, if the limit holds when measured again.

        The limit only counts when measured undisturbed: beside other busy processes touching memory once
        takes longer than an honest kernel did a moment ago (seen: 416 µs for what takes 140).
        """
        measured = verdict.timing
        for _ in range(_FLOOR_TRIES):
            floor_us = bench.stock.floor_us if bench.stock else 0.0
            if measured is None or not roof.is_impossible(measured.kernel_us, floor_us):
                return verdict
            with self._quiet():
                again_us, others = self._floor(bench)
            bench.note_floor(min(floor_us, again_us or floor_us))
            # Other processes made the limit look three times too slow, never more (see above).
            certain = others < NOTEWORTHY or measured.kernel_us < again_us / _BUSY_FACTOR
            if certain and roof.is_impossible(measured.kernel_us, again_us):
                return dataclasses.replace(
                    verdict,
                    status=Status.IMPOSSIBLE,
                    evidence=f"{measured.kernel_us:.1f} µs, but merely reading the inputs and writing the"
                    f" outputs takes {again_us:.1f} µs here",
                )
        note = "the machine was too busy to compare it with the physical limit"
        evidence = "; ".join(filter(None, (verdict.evidence, note)))
        return dataclasses.replace(verdict, evidence=evidence)

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """For timing: nothing compiles, no runner starts up, nobody else on this machine measures."""
        self.ground.wait_ready()
        with self._lock.held(), self.compile_ahead.paused(), self.ground.threads():
            yield

    def _bench(self, region: Region, stats: tuple[InputStats, ...], limits: Limits, seed: int) -> Bench:
        # Other recorded inputs are another proof; seed and limits are those of the first job.
        key = (region.hash, stats)
        found = self._benches.get(key)
        if found is None:
            for other in self._benches.values():
                other.drop_arena()
            while len(self._benches) >= _BENCHES_KEPT:
                self._benches.popitem(last=False)
            allowed = self.ground.memory_bytes(limits.memory_bytes)
            found = Bench(region, stats, seed, dataclasses.replace(limits, memory_bytes=allowed), self.ground)
            self._benches[key] = found
        self._benches.move_to_end(key)
        return found
