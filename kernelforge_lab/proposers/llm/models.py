"""Which of several models to call next: the one that brought most per dollar so far."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

# A first belief of one try that half succeeded keeps one lucky or unlucky answer from deciding.
_PRIOR_WIN: Final = 0.5
_PRIOR_WEIGHT: Final = 1.0
_EXPLORATION: Final = 0.7

# Judging costs device time whatever the model costs, so a free model is not infinitely good.
_TRIAL_USD: Final = 0.005


@dataclass
class ModelBandit:
    """Upper confidence bound on wins per dollar; ties go to the model named first. Safe from any thread."""

    models: Sequence[str]
    calls: dict[str, int] = field(default_factory=dict)
    wins: dict[str, float] = field(default_factory=dict)
    usd: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def choose(self) -> str:
        def worth(model: str) -> float:
            total = sum(self.calls.values())
            calls = self.calls.get(model, 0)
            mean = (_PRIOR_WEIGHT * _PRIOR_WIN + self.wins.get(model, 0.0)) / (_PRIOR_WEIGHT + calls)
            bound = mean + _EXPLORATION * math.sqrt(math.log(1 + total) / (1 + calls))
            return bound / (self._usual_usd(model) + _TRIAL_USD)

        with self._lock:
            return max(self.models, key=worth)

    def paid(self, model: str, usd: float) -> None:
        with self._lock:
            self.calls[model] = self.calls.get(model, 0) + 1
            self.usd[model] = self.usd.get(model, 0.0) + usd

    def won(self, model: str, win: float) -> None:
        """``win`` in [0, 1], as the strategy bandit counts it."""
        with self._lock:
            self.wins[model] = self.wins.get(model, 0.0) + win

    def _usual_usd(self, model: str) -> float:
        """Mean cost of this model's calls; before the first, of everybody's."""
        calls = self.calls.get(model, 0)
        if calls:
            return self.usd[model] / calls
        total = sum(self.calls.values())
        return sum(self.usd.values()) / total if total else 0.0
