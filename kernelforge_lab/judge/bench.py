"""Everything that judging kernels of one region shares: its oracle, its arena, its stock times."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..kernels.region import Region
from ..kernels.stats import InputStats
from . import decoys, oracle, stock, timing
from .arena import Arena
from .ground import Ground
from .job import Limits, Stock
from .layout import plan_layout
from .oracle import Case, Oracle
from .timing import Pair, Rule

if TYPE_CHECKING:
    from torch import Tensor

# Finalists get inputs that no earlier judgement of the region has used.
_FINALIST_SEED_STEP: Final = 7919
_CONTROL: Final = Rule(half_width=0.004, time_s=0.6, quads_min=8, quads_max=24)
_CONTROL_TRIES: Final = 3
_CONTROL_CALM: Final = 0.01
# A time limit far above the slowest honest kernel: this many times eager.
_LIMIT_FACTOR: Final = 50
_GIB: Final = 2**30

Workspaces = tuple[tuple[str, str, int], ...]


class Bench:
    """Made once per region. ``refused`` says why its kernels cannot be judged ("" when they can)."""

    def __init__(
        self, region: Region, stats: tuple[InputStats, ...], seed: int, limits: Limits, ground: Ground
    ) -> None:
        self.region = region
        self.limits = limits
        self.twins: dict[str, str] = {}
        self.implementations: dict[str, stock.Implementation] = {}
        self.ground = ground
        self._arena: Arena | None = None
        self._oracles: dict[bool, Oracle] = {}
        self.stock: Stock | None = None
        self._stats = stats
        self._seed = seed
        self.eager_s = 0.0
        # Of one guarded call; None until stock is measured, and on devices that work behind the host's back.
        self.call_overhead_s: float | None = None
        self.refused = self._too_big() or self._examine()

    def oracle(self, *, finalist: bool = False) -> Oracle:
        """The region's oracle; finalists have their own, on seeds that no search has seen."""
        if finalist not in self._oracles:
            seed = self._seed + (_FINALIST_SEED_STEP if finalist else 0)
            budget = self.limits.memory_bytes // 4
            device = self.ground.torch_device
            self._oracles[finalist] = Oracle(self.region, self._stats, seed, budget, device)
        return self._oracles[finalist]

    def arena(self, workspaces: Workspaces) -> Arena:
        """The arena of the last kernel when it fits this one's workspaces, else a new one; guards whole."""
        if self._arena is None or self._arena.layout.workspaces != workspaces:
            self.drop_arena()
            budget, ground = self.limits.memory_bytes // 4, self.ground
            layout = plan_layout(self.region, workspaces, ground.rotate_bytes, budget, ground.geometry)
            self._arena = ground.arena(layout)
        else:
            for place in self._arena.layout.places:
                self._arena.repair_bands(place)
        return self._arena

    def drop_arena(self) -> None:
        if self._arena is not None:
            self._arena.close()
        self._arena = None

    @property
    def call_limit_s(self) -> float:
        """Time limit of one launch."""
        return min(self.limits.call_max_s, max(self.limits.call_s, _LIMIT_FACTOR * self.eager_s))

    def timed_cases(self, *, finalist: bool = False) -> list[Case]:
        """Cases whose data timing runs on."""
        chosen = self.oracle(finalist=finalist)
        return [chosen.case("recorded"), chosen.case("recorded", 1), chosen.case("varied")]

    def _too_big(self) -> str:
        if not any(spec.numel for spec in self.region.outputs):
            return "the region's outputs are empty: there is nothing to compute"
        need, limit = oracle.memory_needed(self.region), self.limits.memory_bytes
        if need > limit:
            return f"verifying it needs {need / _GIB:.1f} GiB and the limit is {limit / _GIB:.1f} GiB"
        return ""

    def _examine(self) -> str:
        inputs = self._fill(self.arena(()))
        chosen = self.oracle()
        problem = oracle.metadata_problem(self.region, chosen.eager(*inputs)) or decoys.undecided(chosen)
        self.implementations["eager"] = chosen.eager
        eager = self.ground.stock_side(chosen.eager, self.arena(()))
        self.eager_s = timing.time_alone(eager, places=1, blocks=1)
        return problem

    def _fill(self, arena: Arena) -> list[Tensor]:
        """Recorded inputs in every place; those of the first timed place as tensors."""
        cases = [self.oracle().case("recorded", offset) for offset in (0, 1)]
        for index, place in enumerate(arena.layout.places):
            arena.write_inputs(place, cases[index % 2].storages)
        first = arena.layout.places[arena.layout.timed[0]]
        return [arena.tensor(slot) for slot in first.of_kind("input")]

    def measure_stock(self, problem: str) -> None:
        """Fill in ``stock``. ``problem``: why there is no compiled baseline ("": compile, it is cached)."""
        unknown = Stock(self.region.hash)
        if self.refused:
            self.stock = dataclasses.replace(unknown, refused=self.refused)
            return
        arena = self.arena(())
        inputs = self._fill(arena)
        attempts = []
        for name, options in self.ground.stock_modes().items():
            compiled = stock.Compiled(self.region, inputs, problem, options)
            attempts.append(compiled)
            if compiled.function is not None:
                self.implementations[name] = compiled.function
        self.call_overhead_s = self.ground.call_overhead_s(self.region, inputs)
        places = len(arena.layout.timed)
        sides = {name: self.ground.stock_side(f, arena) for name, f in self.implementations.items()}
        times = {name: timing.time_alone(side, places) * 1e6 for name, side in sides.items()}
        best = min(times, key=times.__getitem__)
        twin = self.ground.stock_side(self.implementations[best], arena)
        noise = _noise(lambda: Pair(sides[best], twin, places))
        self.stock = dataclasses.replace(
            unknown,
            times_us=times,
            compiled_kernels=attempts[0].kernels,
            compile_s=sum(attempt.seconds for attempt in attempts),
            reason=attempts[0].reason,
            noise=noise,
        )

    def note_floor(self, floor_us: float) -> None:
        if self.stock is not None:
            self.stock = dataclasses.replace(self.stock, floor_us=floor_us)


def _noise(pair: Callable[[], Pair]) -> float:
    """The A/A control: |log-ratio| of stock against itself. A disturbed minute does not stay the floor."""
    floor = math.inf
    for _ in range(_CONTROL_TRIES):
        floor = min(floor, abs(pair().measure(_CONTROL).median))
        if floor < _CONTROL_CALM:
            break
    return floor
