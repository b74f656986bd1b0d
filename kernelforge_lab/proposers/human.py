"""The person as a proposer: kernels they hand in wait here for the agent, who judges them first."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass

from ..kernels.kernel import Kernel
from ..kernels.region import Region
from .base import Ask

STRATEGY = "by hand"


@dataclass(frozen=True)
class Submission:
    """A kernel somebody wrote: the node number it was promised, its region and, if any, its parent node."""

    node: int
    region: str
    source: str
    parent: int | None = None
    idea: str = ""

    def kernel(self, target: str) -> Kernel:
        return Kernel(self.source, self.region, target, proposer="human", strategy=STRATEGY, idea=self.idea)


class HumanProposer:
    """Never asked by the policy: a person's kernel is judged when it comes, whatever the budget."""

    name = "human"

    def __init__(self) -> None:
        self.listener: Callable[[], None] = lambda: None
        self._waiting: queue.SimpleQueue[Submission] = queue.SimpleQueue()

    def offer(self, submission: Submission) -> None:
        """Hand in a kernel; from any thread."""
        self._waiting.put(submission)
        self.listener()

    @property
    def waiting(self) -> bool:
        return not self._waiting.empty()

    def take(self) -> Submission | None:
        try:
            return self._waiting.get_nowait()
        except queue.Empty:
            return None

    def refuses(self, region: Region, target: str) -> str | None:  # noqa: ARG002
        return None

    def strategies(self, region: Region, target: str, parent: Kernel | None) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def propose(self, ask: Ask) -> Kernel | None:  # noqa: ARG002
        return None
