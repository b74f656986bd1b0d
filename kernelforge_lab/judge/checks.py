"""The correctness gates: run a candidate on cases and stop at the first thing that is wrong."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from ..kernels.spec import TensorSpec
from .arena import POISONS, Arena, equal_bytes
from .candidate import Candidate
from .inputs import view_storage
from .oracle import NUDGED, Case, Oracle, check_error
from .tolerance import Error
from .verdict import Status

if TYPE_CHECKING:
    import torch

# Repeats of one case beyond the first two runs; a race shows itself in one of a few.
_REPEATS: Final = 4


class Failed(Exception):
    """A gate said no."""

    def __init__(self, status: Status, evidence: str) -> None:
        super().__init__(evidence)
        self.status = status
        self.evidence = evidence


class Proof:
    """Collects what was checked. ``golden`` keeps proven output bytes by case for the timing gates."""

    def __init__(self, arena: Arena, candidate: Candidate, oracle: Oracle, *, atomics: bool) -> None:
        self.checks: Counter[str] = Counter()
        self.errors: dict[str, float] = {}
        self.seeds: set[int] = set()
        self.skipped: dict[str, str] = {}
        self.golden: dict[tuple[str, int], tuple[torch.Tensor, ...]] = {}
        self._arena = arena
        self._candidate = candidate
        self._oracle = oracle
        self._atomics = atomics
        self._done: set[str] = set()

    @property
    def max_error(self) -> float:
        """The worst error over its bound so far."""
        return max(self.errors.values(), default=0.0)

    def quick(self) -> None:
        """The cheap proof: writes everything, right on recorded, changed and special inputs, repeatable."""
        oracle = self._oracle
        first_case = oracle.case("recorded")
        first = self._attempt(first_case, 0, 0)
        second = self._attempt(first_case, 1, 1)
        self._written(first, second)
        self._compare(first_case, first)
        self._equal(first_case, first, second, "at another address, with other garbage in memory before")
        # New data at the same addresses, then the same memory changed in place.
        self._prove(oracle.case("recorded", 1), 0)
        self._prove(oracle.case("varied"), 0)
        self._prove(oracle.case(NUDGED), 0)
        self._repeat(first_case, first)
        self._done |= {"recorded", "varied"}
        self._families(oracle.quick_names())

    def full(self) -> None:
        """Every family that the quick proof left out."""
        self._families(self._oracle.full_names())
        self._prove(self._oracle.case("varied", 1), 1)

    def proven(self, case: Case) -> bool:
        return (case.name, case.seed) in self.golden

    def verify_place(self, place: int, case: Case) -> None:
        """After timing: the place's outputs are still those proven for ``case``, its inputs untouched."""
        slots = self._arena.layout.places[place]
        self._memory(case, place)
        got = tuple(self._arena.raw(slot).clone() for slot in slots.of_kind("output"))
        golden = self.golden[case.name, case.seed]
        self.checks["timed outputs"] += 1
        if self._atomics:
            self._compare(case, got)
            return
        for slot, now, before in zip(slots.of_kind("output"), got, golden, strict=True):
            if not equal_bytes(now, before):
                raise Failed(
                    Status.WRONG,
                    f"{slot.name} differs while being timed from what was proven on {case.label}:"
                    " work is skipped, cached or raced",
                )

    def _families(self, names: list[str]) -> None:
        for turn, name in enumerate(names):
            if name not in self._done:
                self._done.add(name)
                self._prove(self._oracle.case(name), turn % 2)

    def _prove(self, case: Case, place: int) -> None:
        if case.skipped:
            self.skipped[case.name] = case.skipped
            return
        self._compare(case, self._attempt(case, place, place))

    def _attempt(self, case: Case, place: int, poison: int) -> tuple[torch.Tensor, ...]:
        """One launch on fresh inputs into poisoned outputs; memory checked; the output bytes."""
        slots = self._arena.layout.places[place]
        self._arena.write_inputs(slots, case.storages)
        self._arena.poison(slots, POISONS[poison])
        self._candidate.run(place)
        self._memory(case, place)
        return tuple(self._arena.raw(slot).clone() for slot in slots.of_kind("output"))

    def _memory(self, case: Case, place: int) -> None:
        slots = self._arena.layout.places[place]
        self.checks["guard bands"] += 1
        broken = self._arena.broken_band(slots)
        if broken is not None:
            slot, distance = broken
            side = "past the end" if distance > 0 else "before the start"
            raise Failed(
                Status.OUT_OF_BOUNDS, f"wrote {abs(distance)} bytes {side} of {slot.name} on {case.label}"
            )
        self.checks["inputs unchanged"] += 1
        changed = self._arena.changed_input(slots, case.storages)
        if changed is not None:
            slot, at = changed
            element = at // slot.spec.itemsize_bytes
            raise Failed(
                Status.MUTATED_INPUT, f"changed {slot.name} (storage element {element}) on {case.label}"
            )

    def _written(self, first: tuple[torch.Tensor, ...], second: tuple[torch.Tensor, ...]) -> None:
        for k, (name, spec) in enumerate(self._outputs()):
            self.checks["all written"] += 1
            if spec.numel == 0:
                continue
            untouched = (first[k] == POISONS[0]) & (second[k] == POISONS[1])
            whole = untouched.view(-1, spec.itemsize_bytes).all(dim=1)
            elements = whole.as_strided(spec.shape, spec.strides, spec.offset).reshape(-1)
            count = int(elements.sum())
            if count:
                at = int(elements.nonzero()[0])
                raise Failed(
                    Status.UNWRITTEN,
                    f"{count} of {spec.numel} elements of {name} are never set (at most added to), the"
                    f" first at {_index(at, spec.shape)}",
                )
            gaps = whole.clone()
            gaps.as_strided(spec.shape, spec.strides, spec.offset).fill_(True)
            if not bool(gaps.all()):
                at = int((~gaps).nonzero()[0])
                raise Failed(
                    Status.OUT_OF_BOUNDS, f"wrote between the elements of {name} (storage element {at})"
                )

    def _compare(self, case: Case, raws: tuple[torch.Tensor, ...]) -> None:
        for k, (_, spec) in enumerate(self._outputs()):
            if spec.numel == 0:
                continue
            self.checks[f"values: {case.name}"] += 1
            out = view_storage(raws[k], spec)
            fraction, error = check_error(case, k, out)
            if fraction <= 1:
                self.errors[case.name] = max(self.errors.get(case.name, 0.0), fraction)
                self.seeds.add(case.seed)
                continue
            raise Failed(Status.WRONG, self._difference(case, k, out, fraction, error))
        if not case.skipped:
            self.golden.setdefault((case.name, case.seed), raws)

    def _difference(self, case: Case, k: int, out: torch.Tensor, fraction: float, error: Error) -> str:
        name, spec, limit = self._outputs()[k][0], self._oracle.region.outputs[k], case.bounds[k]
        at = error.mask_at if error.mask_at >= 0 else error.at
        got, want = out.reshape(-1)[at].item(), case.expected[k].reshape(-1)[at].item()
        text = f"{name}{_index(at, spec.shape)} is {got:.9g}, expected {want:.9g} on {case.label}"
        if error.mask_at >= 0:
            return text + "; NaN and inf must be where eager has them"
        if limit is None:
            return text + "; integers and booleans must be exact"
        return text + f"; error {fraction:.3g}x its bound ({limit.worst:.1e} of rms {limit.scale:.3g})"

    def _equal(
        self, case: Case, first: tuple[torch.Tensor, ...], other: tuple[torch.Tensor, ...], when: str
    ) -> None:
        self.checks["repeats"] += 1
        if self._atomics:
            self._compare(case, other)
            return
        for k, (name, spec) in enumerate(self._outputs()):
            if equal_bytes(first[k], other[k]) or spec.numel == 0:
                continue
            # Wrong there says more than different there.
            self._compare(case, other)
            at = int((first[k] != other[k]).nonzero()[0]) // spec.itemsize_bytes
            raise Failed(
                Status.NONDETERMINISTIC,
                f"{name} (storage element {at}) differs between runs on the same inputs, {when};"
                " declare '// forge: atomics' if the order of a sum is left open",
            )

    def _repeat(self, case: Case, first: tuple[torch.Tensor, ...]) -> None:
        for _ in range(_REPEATS):
            self._equal(case, first, self._attempt(case, 0, 0), "at the same address")

    def _outputs(self) -> list[tuple[str, TensorSpec]]:
        region = self._oracle.region
        return list(zip(region.output_names, region.outputs, strict=True))


def _index(flat: int, shape: tuple[int, ...]) -> str:
    """``[3, 17]`` of a flat index; "" for a 0-dim tensor."""
    parts: list[int] = []
    for size in reversed(shape):
        parts.append(flat % size)
        flat //= size
    return "[" + ", ".join(map(str, reversed(parts))) + "]" if shape else ""
