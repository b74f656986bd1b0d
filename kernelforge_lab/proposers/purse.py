"""Money: reserved before a call, settled after it, so that a cap holds while calls are in flight."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

# A sum this small is rounding, not money.
_ROUNDING_USD: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Ticket:
    """A reservation; settled once."""

    number: int
    region: str
    usd: float


@dataclass
class Purse:
    """Caps in US dollars per run, per region and per day; safe from any thread.

    ``run_usd`` may be a function, for a budget that grows; ``region_usd`` and ``day_usd`` None: no such
    cap. ``spent_elsewhere`` is what other runs of today have spent (asked at every reservation when
    there is a day's cap).
    """

    run_usd: float | Callable[[], float]
    region_usd: float | None = None
    day_usd: float | None = None
    spent_elsewhere: Callable[[], float] = lambda: 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _tickets: dict[int, Ticket] = field(default_factory=dict, repr=False)
    _spent: dict[str, float] = field(default_factory=dict, repr=False)
    _next: int = field(default=0, repr=False)

    @property
    def spent_usd(self) -> float:
        """Of settled calls; what is in flight is in ``reserved_usd``."""
        with self._lock:
            return sum(self._spent.values())

    @property
    def reserved_usd(self) -> float:
        with self._lock:
            return sum(ticket.usd for ticket in self._tickets.values())

    def left_usd(self, region: str) -> float:
        """What a new call for this region may cost at most."""
        elsewhere = self.spent_elsewhere() if self.day_usd is not None else 0.0
        with self._lock:
            return max(0.0, min(left for left, _ in self._left(region, elsewhere)))

    def reserve(self, region: str, usd: float) -> Ticket | str:
        """Set ``usd`` aside, or say (for people) which cap forbids it."""
        elsewhere = self.spent_elsewhere() if self.day_usd is not None else 0.0
        with self._lock:
            left, cap = min(self._left(region, elsewhere))
            if usd > left + _ROUNDING_USD:
                rest = max(left, 0.0)
                return f"a call of up to ${usd:.4f} does not fit in what is left of {cap} (${rest:.4f})"
            self._next += 1
            ticket = Ticket(self._next, region, usd)
            self._tickets[ticket.number] = ticket
            return ticket

    def settle(self, ticket: Ticket, usd: float) -> None:
        """The call is over and cost ``usd``; the reservation is gone. A second settling does nothing."""
        with self._lock:
            if self._tickets.pop(ticket.number, None) is not None:
                self._spent[ticket.region] = self._spent.get(ticket.region, 0.0) + usd

    def carry(self, spent: Mapping[str, float]) -> None:
        """Dollars by region that an earlier part of the run has paid; prices of today do not change them."""
        with self._lock:
            self._spent = dict(spent)

    def _left(self, region: str, elsewhere: float) -> list[tuple[float, str]]:
        spent = sum(self._spent.values())
        held = sum(ticket.usd for ticket in self._tickets.values())
        run_usd = self.run_usd() if callable(self.run_usd) else self.run_usd
        caps = [(run_usd - spent - held, f"the run's ${run_usd:.2f}")]
        if self.region_usd is not None:
            here = sum(ticket.usd for ticket in self._tickets.values() if ticket.region == region)
            caps.append(
                (
                    self.region_usd - self._spent.get(region, 0.0) - here,
                    f"the region's ${self.region_usd:.2f}",
                )
            )
        if self.day_usd is not None:
            caps.append((self.day_usd - elsewhere - spent - held, f"today's ${self.day_usd:.2f}"))
        return caps
