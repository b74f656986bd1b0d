"""One search as the person holds it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from . import conversation
from .conversation import Conversation
from .events import GuardCounts, Log, RunStarted, RunState, StepMeasured
from .exc import ForgeError, ProblemError, StoreError
from .export import export
from .history import History, NodeRecord
from .log import EventLog
from .options import AUTO, Options, matching
from .proposers.human import HumanProposer, Submission
from .resume import Resuming
from .rooms import Rooms
from .search.agent import Agent, Proven
from .search.budget import Budget, Ledger
from .search.forest import Forest
from .search.judge import OpenOnUse
from .steering import Steering

if TYPE_CHECKING:
    import pandas as pd

    from .capture.workload import Workload
    from .deploy.apply import Forged
    from .deploy.winner import Winner

# Inductor's version of a region replaces eager only for a gain that the step can show.
_COMPILED_GAIN: Final = 1.05

# The A/B of the whole model takes this part of the time cap, and no longer than this.
_STEP_SHARE: Final = 0.12
_STEP_MOST_S: Final = 20.0

_POLL_S: Final = 0.1


class Run(Steering, Conversation, Resuming):
    """A search for faster kernels of one model call; made by ``forge()`` and ``%%forge``.

    It works in a thread of its own: ``wait`` or ``await`` it, ``pause``, ``resume``, ``stop`` it; look at
    it with ``table``, ``frame``, ``node`` and ``best``; steer it with ``add_budget``, ``switch``, ``pin``,
    ``prune`` and ``continue_from``; use it with ``apply``, ``report`` and ``export``.
    ``log`` is the event stream that everything shown is made from.
    """

    def __init__(
        self, options: Options | None = None, *, log: EventLog | None = None, rooms: Rooms | None = None
    ) -> None:
        self.options = options or Options()
        self.log = log or _new_log()
        self.workload: Workload | None = None
        self.forged: Forged | None = None
        self._rooms = rooms or Rooms()
        self._call: tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]] | None = None
        self._agent: Agent | None = None
        self._human = HumanProposer()
        self._strict = self.options.strict
        self._graphs = False

    # ---- life ----

    def start(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Run:
        """Capture ``function(*args, **kwargs)`` (in this thread), then search in the background.

        Raises CaptureError or ProblemError; the run is then ``failed``.
        """
        if self._call is not None:
            raise ForgeError("This run was started already.", "Make another one with forge().")
        kwargs = dict(kwargs or {})
        self._call = (function, args, kwargs)
        self.log.emit(RunState("starting", "capturing the model"))
        try:
            rooms = self._rooms
            if self.options.target == AUTO:
                chosen = rooms.target(function, args, kwargs)
                self.options = replace(self.options, target=chosen)
            options = self.options
            proposers = rooms.proposers(options)
            workload = rooms.capture(function, args, kwargs, target=options.target, level=options.level)
            regions = [item.region for item in workload.regions]
            wanted = matching(options.regions, regions)
            device, threads = rooms.device(options)
            memory = rooms.memory(options, self.id)
        except BaseException as error:
            self.log.emit(RunState("failed", str(error) or type(error).__name__))
            raise
        self.workload = workload
        self.log.emit(self._started(workload, device, [p.name for p in proposers]))
        forest = Forest(
            workload.regions,
            proposers,
            options.target,
            roofs=workload.roofs,
            seed=options.seed,
            wanted=wanted,
            memory=memory,
        )
        ledger = Ledger(Budget(options.trials, options.minutes * 60, options.budget_usd))
        self._agent = Agent(
            forest,
            OpenOnUse(lambda: rooms.judge(options)),
            ledger,
            self.log.emit,
            human=self._human,
            finish=self._measure if options.measure else None,
            parallel=conversation.set_up(proposers, ledger, self.log, workload.ceiling),
            threads=threads,
            memory=memory,
            places=rooms.places(options),
        )
        self._agent.start()
        return self

    @property
    def id(self) -> str:
        return self.log.run

    @property
    def state(self) -> str:
        """starting, running, paused, stopping, measuring, finished, stopped or failed."""
        return str((self.log.latest("run_state") or {"state": "starting"})["state"])

    @property
    def history(self) -> History:
        """The events so far, read as nodes, regions and the measured step."""
        return History(self.log.events)

    @property
    def is_running(self) -> bool:
        return self._agent is not None and self._agent.is_alive

    @property
    def is_steerable(self) -> bool:
        """False for a run from the store: its search and its model are not here."""
        return self._agent is not None or self.state == "starting"

    def wait(self, timeout: float | None = None) -> Run:
        """Block until the run has ended, ``timeout`` seconds have passed, or the person interrupts."""
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            while self.is_running and (deadline is None or time.monotonic() < deadline):
                left = _POLL_S if deadline is None else max(0.0, min(_POLL_S, deadline - time.monotonic()))
                self._running_agent.done.wait(left)
        except KeyboardInterrupt:
            _say("The run is still running in the background; run.stop() to stop it.")
        return self

    def __await__(self) -> Generator[Any, None, Run]:
        """``await run`` leaves the notebook's buttons alive, which ``wait`` does not."""
        return self._ended().__await__()

    async def _ended(self) -> Run:
        while self.is_running:  # noqa: ASYNC110 - the agent is a thread and knows no event loop
            await asyncio.sleep(_POLL_S)
        return self

    def pause(self) -> Run:
        """Start no further work until ``resume``; paused time costs nothing."""
        if self.is_running:
            self._running_agent.pause()
        return self

    def resume(
        self,
        function: Callable[..., Any] | None = None,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Run:
        """Go on after ``pause``, or after ``stop`` while there is budget left.

        A run from the store (``load``) goes on where it stood, also when its process was killed. With the
        model and its inputs (as for ``start``) its step is measured in the end and ``apply`` works. Today's
        proposers go on, whatever wrote the kernels so far; what was paid stays paid.

        Raises StoreError while another process is at work on the run, ProblemError when too little of it
        was stored.
        """
        if self._agent is None and self.log.latest("run_started"):
            if function is not None:
                self._call = (function, tuple(args), dict(kwargs or {}))
            self._agent = self._take_up()
        agent = self._running_agent
        if agent.is_alive:
            agent.resume()
        else:
            agent.start()
        return self

    def stop(self) -> Run:
        """End the search within a second; what was found stays, and ``apply`` still works."""
        if self.is_running:
            self._running_agent.stop()
        return self

    # ---- what is known ----

    @property
    def spent_usd(self) -> float:
        return float((self.log.latest("meter") or {"spent_usd": 0.0})["spent_usd"])

    def frame(self) -> pd.DataFrame:
        """Every kernel tried, one row each; see ``History.frame``."""
        return self.history.frame()

    def table(self) -> pd.DataFrame:
        """Every region with its best proven kernel; see ``History.table``."""
        return self.history.table()

    def node(self, node: int) -> NodeRecord:
        """A kernel by its number: ``print(run.node(17))`` shows its verdict and source."""
        nodes = self.history.nodes
        if node not in nodes:
            known = f"Numbers go from 1 to {max(nodes)}." if nodes else "There are no nodes yet."
            raise ProblemError(f"node: there is no node {node!r}.", known)
        return nodes[node]

    def best(self, region: str | None = None) -> NodeRecord | None:
        """The best kernel so far of a region (named by hash or ops; needless when there is only one)."""
        history = self.history
        return history.best(history.find(region))

    def summary(self) -> dict[str, Any]:
        """The run in one JSON object, as the command line prints it."""
        return self.history.summary()

    def _ipython_display_(self) -> None:
        """The live panel, also without ``%load_ext``."""
        from .notebook import bundle

        bundle.show(self)

    def __repr__(self) -> str:
        history = self.history
        step = history.step
        gain = f", step {step['speedup']:.2f}× ({step['low']:.2f}–{step['high']:.2f})" if step else ""
        return f"<Run {self.id} {history.started.get('title', '')}: {history.state}{gain}>"

    # ---- what can be done with it ----

    def submit(
        self, source: str, region: str | None = None, *, parent: int | None = None, idea: str = ""
    ) -> int:
        """Hand in a kernel of your own; returns its node number. It is judged next, whatever the budget.

        ``region`` is a hash, a prefix of one or a part of its ops; not needed with ``parent`` (the node
        it was made from) or when there is only one region.
        """
        agent = self._running_agent
        history = self.history
        if parent is not None:
            region = self.node(parent).region
        place = history.find(region).hash
        node = agent.forest.new_id()
        self._human.offer(Submission(node, place, source, parent, idea))
        if not agent.is_alive:
            agent.start(search=False)
        return node

    def apply(self, strict: bool = False, *, graphs: bool = False) -> Any:
        """The model with the winners installed, if that was measured faster and equal; else as it was.

        ``strict`` makes installed kernels raise instead of falling back. ``graphs`` (cuda) replays the step
        as a CUDA graph, one per shape of the inputs. Winners that were not re-measured yet (after ``stop``)
        are so now. Raises ProblemError for ``graphs`` on a cpu.
        """
        if self._call is None:
            raise ForgeError(
                "This run was loaded from the store; its model is not here.",
                "Use forge() on the model again.",
            )
        if self.is_running:
            raise ForgeError("The run is still running.", "Call run.wait() or run.stop() first.")
        if graphs and self.options.target != "cuda":
            raise ProblemError(
                f"apply: graphs=True records CUDA graphs, and this run is for {self.options.target}.",
                "Leave graphs out: on a cpu a call has no launch cost that a graph could save.",
            )
        function, _, _ = self._call
        agent = self._agent
        if agent is None:
            return function
        if agent.has_unproven:
            agent.start(search=False)
            self.wait()
        strict = strict or self.options.strict
        if agent.finished != agent.bench.proven or (strict, graphs) != (self._strict, self._graphs):
            agent.finished = dict(agent.bench.proven)
            event = self._measure(agent.finished, strict=strict, graphs=graphs)
            if event is not None:
                self.log.emit(event)
        if self.forged is None or not self.forged.installed:
            step = self.log.latest("step_measured")
            _say((step and step["message"]) or "No kernel was faster than stock: the model is unchanged.")
            return function
        self.guard_counts()
        return self.forged.model

    def guard_counts(self) -> GuardCounts | None:
        """Calls the installed kernels served, and fallbacks with their reasons; news also go to the log."""
        if self.forged is None or not self.forged.installed:
            return None
        counts = self.forged.counts()
        known = self.log.latest("guard_counts")
        if known is None or (known["hits"], known["fallbacks"]) != (counts.hits, counts.fallbacks):
            self.log.emit(counts)
        return counts

    def report(self, path: str | Path = "report.html") -> Path:
        """Write the run as a report; the suffix says which: ``.html``, ``.ipynb`` or ``.md``.

        Raises ProblemError for another suffix and ForgeError when the file cannot be written.
        """
        from .notebook.reports import write

        self.guard_counts()
        return write(self.log.events, path)

    def roofline(self) -> Any:
        """Altair chart: every correct kernel under the roofs measured on this device."""
        from .notebook import charts

        return charts.roofline(self)

    def progress(self) -> Any:
        """Altair chart: the best step so far against the kernels judged."""
        from .notebook import charts

        return charts.progress(self)

    def breakdown(self) -> Any:
        """Altair chart: where the step's time goes, what is gained and what is still possible."""
        from .notebook import charts

        return charts.breakdown(self)

    def costs_chart(self) -> Any:
        """Altair chart: the best step so far against US dollars."""
        from .notebook import charts

        return charts.costs(self)

    def export(self, folder: str | Path, *, wheel: bool = False, arch: str | None = None) -> Path:
        """Write the winners as a Python package that needs torch alone; its path.

        With ``wheel`` also as a wheel inside ``folder``, whose path it then is. ``arch`` is the SM to compile
        cuda kernels for where there is no GPU (``sm_90``).
        """
        return export(self.history, folder, wheel=wheel, arch=arch, layers=self._layers())

    def _layers(self) -> dict[str, list[dict[str, Any]]]:
        """Layers that are one winner, where the model is here; none may cost the person the export."""
        if self._call is None or self.is_running:
            return {}
        from .export.layers import layer_plans

        history = self.history
        try:
            return layer_plans(*self._call, [history.region(record) for record, _ in history.winners()])
        except Exception as error:  # noqa: BLE001 - the model is the person's own code
            self.log.emit(
                Log("warning", f"No layers are named in the export: {type(error).__name__}: {error}")
            )
            return {}

    # ---- inside ----

    @property
    def _running_agent(self) -> Agent:
        if self._agent is None:
            raise ForgeError(
                "This run has no search that could go on.", "It was loaded or never started; use forge()."
            )
        return self._agent

    def _started(self, workload: Workload, device: str, proposers: list[str]) -> RunStarted:
        roofs = workload.roofs
        return RunStarted(
            self.id,
            self.options.title or workload.title,
            self.options.target,
            device,
            self.options.level,
            self.options.seed,
            proposers,
            self.options.budget_json,
            workload.step_ms,
            workload.busy,
            workload.ceiling,
            roofs.as_json(),
            [{**item.as_json(), "stats": [asdict(s) for s in item.stats]} for item in workload.regions],
            [
                {"name": op.name, "count": op.count, "time_us": op.time_us, "share": op.share}
                for op in workload.vendor
            ],
            list(workload.uncaptured),
            workload.advice,
        )

    def _measure(
        self, proven: Proven, *, strict: bool | None = None, graphs: bool = False
    ) -> StepMeasured | None:
        """A/B of the whole model with the winners in place; None when there was nothing to measure."""
        assert self._call is not None
        function, args, kwargs = self._call
        winners = self._winners(proven)
        self._strict, self._graphs = self.options.strict if strict is None else strict, graphs
        if not winners:
            self.forged = None
            return None
        self.forged = self._rooms.apply(
            function,
            args,
            kwargs,
            winners,
            target=self.options.target,
            level=self.options.level,
            strict=self._strict,
            graphs=graphs,
            limit_s=min(_STEP_MOST_S, _STEP_SHARE * 60 * self.options.minutes),
        )
        for note in self.forged.notes:
            self.log.emit(Log("info", note))
        return self.forged.measured

    def _winners(self, proven: Proven) -> dict[str, Winner]:
        """Per region the fastest proven: the forged kernel, or inductor's where that beats eager."""
        from .deploy.winner import Winner

        agent = self._running_agent
        winners = {}
        for name, search in agent.forest.regions.items():
            stock = agent.bench.stocks.get(name)
            if name in proven:
                winners[name] = Winner(search.item.region, *proven[name])
            elif stock and stock.best != "eager":  # compiled in one of its modes
                eager_us = stock.times_us.get("eager", 0.0)
                if eager_us > _COMPILED_GAIN * stock.best_us:
                    winners[name] = Winner(search.item.region, "compiled")
        return winners


def new_id() -> str:
    """Sorts by time and is short enough to type."""
    return f"{time.strftime('%y%m%d-%H%M%S')}-{uuid.uuid4().hex[:4]}"


def _new_log() -> EventLog:
    from .store import Store

    try:
        return EventLog(new_id(), Store())
    except StoreError as error:
        log = EventLog(new_id())
        log.emit(Log("warning", f"This run is not being saved: {error}"))
        return log


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the person asked, in a cell or a shell
