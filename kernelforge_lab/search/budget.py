"""The run's budget: what is spent, when to stop, how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ..proposers.purse import Purse

# Kept back for re-measuring the winners and the whole step, so that a run ends near its time cap.
_FINISH_SHARE: Final = 0.25
_FINISH_LEAST_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Budget:
    """Caps of a run: kernels judged, seconds (pauses not counted), US dollars (0: nothing may be paid)."""

    trials: int
    seconds: float
    usd: float = 0.0


@dataclass
class Ledger:
    """What a run has spent of its budget. ``clock`` is replaced in tests.

    ``purse`` pays for calls and is the one part that other threads touch; ``usd`` is what it had spent
    when the agent last looked.
    """

    budget: Budget
    clock: Callable[[], float] = time.monotonic
    trials: int = 0
    usd: float = 0.0
    finish_s: float = 0.0
    purse: Purse = field(init=False, repr=False)
    _before_s: float = field(default=0.0, repr=False)
    _since: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # The cap is read at every reservation: a person may add to the budget.
        self.purse = Purse(lambda: self.budget.usd)

    def carry(self, trials: int, elapsed_s: float, usd: Mapping[str, float]) -> None:
        """What the run had spent before it was taken up again; dollars by region."""
        self.trials, self._before_s = trials, elapsed_s
        self.purse.carry(usd)
        self.usd = self.purse.spent_usd

    def start(self) -> None:
        """The clock runs (again)."""
        if self._since is None:
            self._since = self.clock()

    def hold(self) -> None:
        """The clock stands still: a paused run pays nothing."""
        if self._since is not None:
            self._before_s += self.clock() - self._since
            self._since = None

    @property
    def elapsed_s(self) -> float:
        return self._before_s + (self.clock() - self._since if self._since is not None else 0.0)

    @property
    def search_s(self) -> float:
        """Seconds the search itself may take: the cap less what finishing is expected to need."""
        reserve = max(self.finish_s, _FINISH_LEAST_S)
        return self.budget.seconds - min(reserve, _FINISH_SHARE * self.budget.seconds)

    def exhausted(self) -> str | None:
        """Why no further kernel may be started, in plain words; None while there is budget."""
        if self.trials >= self.budget.trials:
            return f"all {self.budget.trials} trials are used"
        if self.elapsed_s >= self.search_s:
            return f"the time of {_duration(self.budget.seconds)} is used"
        if self.budget.usd and self.usd >= self.budget.usd:
            return f"the ${self.budget.usd:.2f} are spent"
        return None

    def cost(self, seconds: float, usd: float = 0.0) -> float:
        """One kernel that takes this much, as a fraction of the budget (so that time and money add up)."""
        paid = usd / self.budget.usd if self.budget.usd else 0.0
        return 1 / max(self.budget.trials, 1) + seconds / max(self.budget.seconds, 1e-9) + paid

    def eta_s(self) -> float | None:
        """Seconds until a cap is met at the pace so far; None before the first trial."""
        if not self.trials:
            return None
        by_trials = (self.budget.trials - self.trials) * self.elapsed_s / self.trials
        return max(0.0, min(by_trials, self.budget.seconds - self.elapsed_s))


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
