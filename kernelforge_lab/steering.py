"""What a person can say to a search while it runs, or after it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from .exc import ProblemError

if TYPE_CHECKING:
    from .history import History, NodeRecord
    from .search.agent import Agent


class Steering:
    """The part of a Run that steers its agent. Every method returns at once; events tell what came of it."""

    if TYPE_CHECKING:

        @property
        def _running_agent(self) -> Agent: ...

        @property
        def history(self) -> History: ...

        def node(self, node: int) -> NodeRecord: ...

    def add_budget(self, *, trials: int = 0, minutes: float = 0.0, usd: float = 0.0) -> Self:
        """Raise the caps; a search that had ended for want of budget goes on. Raises ProblemError."""
        from .search.orders import MoreBudget

        if min(trials, minutes, usd) < 0 or not (trials or minutes or usd):
            raise ProblemError(
                "add_budget: nothing was added.", "Give trials, minutes or usd, each more than 0."
            )
        self._running_agent.order(MoreBudget(int(trials), 60 * float(minutes), float(usd)))
        return self

    def switch(self, region: str, on: bool = True) -> Self:
        """Search a region (again), or stop searching it; named by hash, a prefix of it or its ops."""
        from .search.orders import SwitchRegion

        name = self.history.find(region).hash
        agent = self._running_agent
        if on or agent.is_alive:
            agent.order(SwitchRegion(name, on))
        return self

    def pin(self, node: int) -> Self:
        """Let the search of the node's region go on from this node for as long as it has ideas there."""
        return self._mark(node, "pinned")

    def prune(self, node: int) -> Self:
        """Never build on this node or anything below it again. A best kernel there stays the best."""
        return self._mark(node, "pruned")

    def unmark(self, node: int) -> Self:
        """Take back ``pin`` or ``prune``."""
        return self._mark(node, "")

    def continue_from(self, node: int, hint: str = "") -> Self:
        """Write one more kernel from this node now. The hint holds for everything written below it."""
        from .search.orders import ContinueFrom

        self._running_agent.order(ContinueFrom(self.node(node).id, str(hint).strip()), search=False)
        return self

    def _mark(self, node: int, mark: str) -> Self:
        from .search.orders import MarkNode

        if self.node(node).status == "stock" and mark == "pruned":
            raise ProblemError("node: stock cannot be pruned.", "Switch the region off instead.")
        self._running_agent.order(MarkNode(node, mark))
        return self


def steer(run: Any, command: dict[str, Any]) -> None:
    """Obey a command of a front end: the method's name and its arguments, nothing else gets through.

    Raises ProblemError for what is no command, and what the method raises.
    """
    name, arguments = str(command.get("kind")), command.get("arguments", {})
    allowed = _COMMANDS.get(name)
    if allowed is None or not isinstance(arguments, dict):
        raise ProblemError(f"command: {name!r} is not one.", f"There are: {', '.join(_COMMANDS)}.")
    # Written by a page: a wrong type must not get as far as the search.
    for key, value in arguments.items():
        kinds = allowed.get(key)
        if kinds is None or isinstance(value, bool) != (kinds == (bool,)) or not isinstance(value, kinds):
            raise ProblemError(f"command {name}: {key}={value!r} does not fit.")
    getattr(run, name)(**arguments)


_NUMBER = (int, float)
_COMMANDS: dict[str, dict[str, tuple[type, ...]]] = {
    "pause": {},
    "resume": {},
    "stop": {},
    "add_budget": {"trials": (int,), "minutes": _NUMBER, "usd": _NUMBER},
    "switch": {"region": (str,), "on": (bool,)},
    "pin": {"node": (int,)},
    "prune": {"node": (int,)},
    "unmark": {"node": (int,)},
    "continue_from": {"node": (int,), "hint": (str,)},
    "submit": {"source": (str,), "region": (str,), "parent": (int,), "idea": (str,)},
    "guard_counts": {},
}
