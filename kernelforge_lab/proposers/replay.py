"""Kernels of an earlier run again, in the places where they came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ..kernels.kernel import Kernel
from ..kernels.region import Region
from .base import Ask, Proposer

Params: TypeAlias = tuple[tuple[str, int], ...]
_Place: TypeAlias = tuple[str, str, Params]  # region, parent's source and parameters


class ReplayProposer:
    """Answers as one proposer of a recorded run did, by region, parent kernel and strategy.

    ``menu`` is the proposer whose answers were recorded, asked only for its (pure) lists of strategies;
    with it, the search makes the same choices again. Without it the recorded strategies are the menu.
    """

    def __init__(self, events: Iterable[Mapping[str, Any]], name: str, menu: Proposer | None = None) -> None:
        self.name = name
        self._menu = menu
        self._answers: dict[_Place, dict[str, Mapping[str, Any]]] = {}
        added = {event["node"]: event for event in events if event["kind"] == "node_added"}
        for event in added.values():
            if event["parent"] is not None and event["proposer"] == name:
                parent = added.get(event["parent"])
                text = (parent["source"], _params(parent["params"])) if parent else ("", ())
                self._answers.setdefault((event["region"], *text), {}).setdefault(event["strategy"], event)

    def refuses(self, region: Region, target: str) -> str | None:
        if self._menu:
            return self._menu.refuses(region, target)
        known = any(place[0] == region.hash for place in self._answers)
        return None if known else "the recorded run has no kernel for this region"

    def strategies(self, region: Region, target: str, parent: Kernel | None) -> tuple[str, ...]:
        if self._menu:
            return self._menu.strategies(region, target, parent)
        return tuple(self._answers.get(self._place(region, parent), {}))

    def propose(self, ask: Ask) -> Kernel | None:
        event = self._answers.get(self._place(ask.region, ask.parent), {}).get(ask.strategy)
        if event is None:
            return None
        params = _params(event["params"])
        return Kernel(
            event["source"], ask.region.hash, ask.target, params, self.name, ask.strategy, event["idea"]
        )

    @staticmethod
    def _place(region: Region, parent: Kernel | None) -> _Place:
        return (region.hash, parent.source, parent.params) if parent else (region.hash, "", ())


def _params(params: Mapping[str, int]) -> Params:
    return tuple(sorted(params.items()))
