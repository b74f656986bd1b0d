"""The protocol of everything that writes kernels."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..judge.verdict import Verdict
from ..kernels.kernel import Kernel
from ..kernels.region import Region
from .outcome import Outcome

if TYPE_CHECKING:
    from .purse import Purse

# Role (system, user, assistant) and text, in order.
Messages = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Facts:
    """What is known of a region's place in the model. Times in µs, ``share`` of the step, 0 when unknown.

    ``stocks_us`` are the measured baselines, ``floor_us`` the roofline limit and ``reachable_us`` what
    counts as done; ``bandwidth_gbps`` and ``gflops`` are this device's measured limits.
    """

    bottleneck: str = "memory"
    stocks_us: tuple[tuple[str, float], ...] = ()
    floor_us: float = 0.0
    reachable_us: float = 0.0
    share: float = 0.0
    count: int = 1
    bandwidth_gbps: float = 0.0
    gflops: float = 0.0


@dataclass(frozen=True)
class Repair:
    """An earlier answer to the same ask that the judge found wanting: ``turn`` 1 or 2, and what was said."""

    turn: int
    kernel: Kernel
    verdict: Verdict
    said: Messages


@dataclass(frozen=True)
class ModelCall:
    """One call of a language model, as it is kept: what was sent, what came, what it cost.

    ``cached_tokens`` are part of ``input_tokens``, ``reasoning_tokens`` of ``output_tokens``.
    ``is_estimate``: the server gave no usage, so tokens and ``usd`` are estimated from the text.
    """

    model: str
    prompt: str
    reply: str
    outcome: Outcome
    reason: str = ""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    is_estimate: bool = False


class Cancel:
    """Tells work in other threads to stop; callbacks run at once, in the thread that calls ``set``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._callbacks: list[Callable[[], None]] = []

    @property
    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        with self._lock:
            self._is_set = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when set (now, if it is already); returns the function that takes it back."""
        with self._lock:
            if not self._is_set:
                self._callbacks.append(callback)
                return lambda: self._forget(callback)
        callback()
        return lambda: None

    def _forget(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)


def _untold(_call: ModelCall) -> None:
    pass


@dataclass(frozen=True)
class Ask:
    """One request: what to write a kernel for, from which parent, trying what.

    ``parent`` None asks for a kernel from nothing (a root child). ``siblings`` are the kernels already
    tried under the parent with their verdicts. ``seed`` makes any random choice reproducible.
    ``threads`` is how many CPU threads the target may use (cpu) and is 0 elsewhere. ``purse`` pays for
    calls (None: nothing may be paid), ``cancel`` ends them, ``on_call`` is told of each as it ends.
    """

    region: Region
    target: str
    strategy: str
    parent: Kernel | None = None
    parent_verdict: Verdict | None = None
    siblings: tuple[tuple[Kernel, Verdict | None], ...] = ()
    seed: int = 0
    hint: str = ""
    threads: int = 0
    facts: Facts = field(default_factory=Facts)
    repair: Repair | None = None
    purse: Purse | None = field(default=None, compare=False)
    cancel: Cancel = field(default_factory=Cancel, compare=False)
    on_call: Callable[[ModelCall], None] = field(default=_untold, compare=False)


@dataclass(frozen=True)
class Proposal:
    """What a paid proposer answers: a kernel, or a typed reason why there is none; and what it cost.

    ``said`` is the conversation so far, for a repair. ``ends`` non-empty: the proposer cannot go on in
    this run (no key, no balance, budget spent), in words for people.
    """

    kernel: Kernel | None
    outcome: Outcome = Outcome.KERNEL
    reason: str = ""
    idea: str = ""
    calls: tuple[ModelCall, ...] = ()
    said: Messages = ()
    ends: str = ""

    @property
    def usd(self) -> float:
        return sum(call.usd for call in self.calls)

    @property
    def seconds(self) -> float:
        return sum(call.seconds for call in self.calls)


class Proposer(Protocol):
    """Writes kernels. Never runs them, never raises for a region it cannot handle."""

    @property
    def name(self) -> str: ...

    def refuses(self, region: Region, target: str) -> str | None:
        """Why this proposer cannot write a kernel for the region, or None when it can."""

    def strategies(self, region: Region, target: str, parent: Kernel | None) -> tuple[str, ...]:
        """Names of what could be tried, most promising first; () when nothing (more) is to be tried."""

    def propose(self, ask: Ask) -> Kernel | Proposal | None:
        """A kernel with its ``// forge:`` lines (tune lines included), or None when it has no answer.

        A proposer that pays for its answers returns a Proposal, also for failures.
        """


@runtime_checkable
class PaidProposer(Proposer, Protocol):
    """A proposer whose answers cost money and time on somebody else's machine."""

    def menu(self, region: Region, target: str, parent: Kernel | None, bottleneck: str) -> tuple[str, ...]:
        """``strategies``, for a region that is bound by ``bottleneck`` (memory, compute, latency)."""

    def learn(self, proposal: Proposal, win: float) -> None:
        """How good a proposal turned out to be, in [0, 1]."""
