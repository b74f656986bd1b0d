"""The thread that searches: launches work, collects results, obeys pause, stop and the budget."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from ..events import Event, Log, RegionState, RunState
from ..exc import ForgeError
from ..judge.verdict import Verdict
from ..kernels.kernel import Kernel
from ..proposers.base import PaidProposer
from ..proposers.human import HumanProposer
from .budget import Ledger
from .forest import Flight, Forest
from .judge import Judge
from .memory import Memory
from .orders import MarkNode, Order, Orders
from .pace import Pace
from .tree import Action
from .work import Bench, Work, spawn

# The thread wakes at least this often to see a deadline; controls and results wake it at once.
_TICK_S: Final = 0.2

# After the time cap, work under way may still end within this time before it is abandoned.
_GRACE_S: Final = 5.0

# What finishing takes on two cores: a finalist, and the A/B of the whole model.
_FINALIST_S: Final = 6.0
_STEP_S: Final = 20.0

# The judge itself failing this often in a row is not bad luck with one kernel.
_JUDGE_FAILURES: Final = 3

Proven = Mapping[str, tuple[Kernel, Verdict]]
Finish = Callable[[Proven], Event | None]


class _Stopped(Exception):
    """The person said stop."""


@dataclass
class _Task:
    """Work under way: its coroutine and the future it waits for."""

    work: Work
    future: Future[Any]
    flight: Flight


class Agent:
    """Searches ``forest`` with ``judge`` until the budget, the person or the trees end it.

    The search state is touched by its own daemon thread only; ``pause``, ``resume``, ``stop`` and the
    human proposer's queue are safe from anywhere and act within a moment, also while a judgement is
    under way (it is then abandoned, not waited for). ``finish`` gets the proven winners at the end, in
    a thread of its own, and returns an event to emit (the measured step) or None. ``parallel`` is how many
    questions to models may be under way at once, ``places`` how many kernels the judge takes at once now.
    """

    def __init__(
        self,
        forest: Forest,
        judge: Judge,
        ledger: Ledger,
        emit: Callable[[Event], object],
        *,
        human: HumanProposer | None = None,
        finish: Finish | None = None,
        parallel: int = 1,
        threads: int = 0,
        memory: Memory | None = None,
        places: Callable[[], int] = lambda: 1,
    ) -> None:
        self.forest, self.ledger, self.emit = forest, ledger, emit
        self.human = human or HumanProposer()
        self.human.listener = self._wake_up
        self.bench = Bench(forest, judge, ledger, emit, threads=threads, memory=memory)
        self.orders = Orders(self.bench)
        self.orders.listener = self._wake_up
        self.done = threading.Event()
        self._judge = judge
        self._finish = finish
        self.finished: Proven | None = None
        self._parallel = max(1, parallel)
        self._places = places
        self._tasks: list[_Task] = []
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._pause = threading.Event()
        self._thread: threading.Thread | None = None
        self._state = ""
        self._meter = Pace(emit, ledger)
        self._judge_failures = 0
        self._search_is_over = False

    def start(self, *, search: bool = True) -> None:
        """Start the thread, also again after it ended; nothing happens while it runs.

        Without ``search`` it only judges what people handed in, proves winners and finishes.
        """
        if self.is_alive:
            return
        self.done.clear()
        self._stop.clear()
        self._pause.clear()
        self._search_is_over = not search
        self._thread = threading.Thread(target=self._main, name="kernelforge-agent", daemon=True)
        self._thread.start()

    def order(self, order: Order, *, search: bool = True) -> None:
        """Obey ``order`` soon; an agent that has ended starts again for it (``search`` as in ``start``)."""
        self.orders.give(order)
        if not self.is_alive:
            if isinstance(order, MarkNode):
                list(self.orders.obey())
            else:
                self.start(search=search)

    def pause(self) -> None:
        """No further work starts until ``resume``; the run's clock stands still."""
        self._pause.set()
        self._wake_up()

    def resume(self) -> None:
        self._pause.clear()
        self._wake_up()

    def stop(self) -> None:
        """End now; what is under way is abandoned, what was found is kept."""
        self._stop.set()
        self._wake_up()

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive() and not self.done.is_set()

    @property
    def has_unproven(self) -> bool:
        """Whether a best kernel still waits for its measurement in a fresh process (after a stop)."""
        return any(s.best and s.state in ("searching", "ending") for s in self.forest.regions.values())

    def _main(self) -> None:
        state, message = "finished", ""
        try:
            self.ledger.start()
            while True:
                self._search()
                self._prove()
                message = self._measure()
                # An order that came while the winners were measured is not lost.
                if not (self.orders.waiting or self.human.waiting):
                    break
        except _Stopped:
            self._abandon("the run was stopped")
            state, message = "stopped", "stopped by you; what was found is kept"
        except Exception as error:  # noqa: BLE001 - the thread's last line of defence
            self._abandon("the run failed")
            reason = str(error) if isinstance(error, ForgeError) else repr(error)
            state, message = "failed", f"{reason} (what was found so far is kept)"
        finally:
            self.ledger.hold()
            self._meter.tell("", force=True)
            self._become(state, message)
            self.done.set()
            self._judge.close()

    def _search(self) -> None:
        if not self._search_is_over:
            for search in self.forest.regions.values():
                self.bench.tell(search)
        self._become("running")
        why = ""
        while True:
            self._controls()
            self._collect()
            self._start_wishes()
            self.ledger.finish_s = self._finish_s()
            over = "the search has ended" if self._search_is_over else self.ledger.exhausted()
            if over and not why:
                why = over
            if not why:
                self._launch()
            if not self._tasks:
                break
            # Used-up trials or dollars are no reason to drop work that was paid for; used-up time is.
            is_late = self.ledger.elapsed_s > self.ledger.search_s + _GRACE_S
            if why and not self._search_is_over and is_late:
                self._drop_tasks()
                break
            self._wait()
        self._say_why_it_ended(why)

    def _say_why_it_ended(self, why: str) -> None:
        for search in self.forest.regions.values():
            search.cut_short = search.cut_short or (search.is_active and not self._search_is_over)
            if search.is_active and search.tree is None:
                self.bench.close(search, f"not searched: {why}", state="off")
            elif search.is_active:
                search.reason = f"the run ended: {why}"

    def _prove(self) -> None:
        """Re-measure the winners of regions whose search ended with the run, biggest share first."""
        pending = [s for s in self.forest.regions.values() if s.tree and s.state in ("searching", "ending")]
        for search in sorted(pending, key=lambda s: -s.item.share):
            self._start(self.bench.final(search), Flight(search.hash, None))
        while self._tasks:
            self._controls()
            self._collect()
            if self._tasks:
                self._wait()

    def _measure(self) -> str:
        """Let ``finish`` measure the whole model, unless it already did with these very winners."""
        proven = dict(self.bench.proven)
        if self._finish is None or proven == self.finished:
            return self._outcome(len(proven))
        finish = self._finish
        self._become("measuring")
        self.bench.doing = "the whole model, stock against forged"
        future = spawn(lambda: finish(proven))
        future.add_done_callback(self._wake_up)
        while not future.done():
            self._controls()
            self._wait()
        try:
            event: Event | None = future.result()
        except Exception as error:  # noqa: BLE001 - the winners are proven, whatever the model does
            self.emit(Log("error", f"the whole model could not be measured: {error!r}"))
            return f"{self._outcome(len(proven))}, but the whole model could not be measured: {error}"
        self.finished = proven
        if event is not None:
            self.emit(event)
        return str(getattr(event, "message", "")) or self._outcome(len(proven))

    def _outcome(self, winners: int) -> str:
        if winners:
            return f"{winners} region{'s have' if winners > 1 else ' has'} a faster kernel"
        if not any(search.tree and len(search.tree.nodes) > 1 for search in self.forest.regions.values()):
            return "no kernel was tried (the regions say why); the model stays as it is"
        return "no kernel was faster than stock; the model stays as it is"

    def _launch(self) -> None:
        """Fill the free places. Regions that are through prove their winner at once."""
        places = max(1, self._places())
        while len(self._tasks) < max(self._parallel, places):
            flights = [task.flight for task in self._tasks]
            flying = sum(flight.action is not None for flight in flights)
            if self.ledger.trials + flying >= self.ledger.budget.trials:
                return
            chosen = self.forest.next(flights, self.ledger)
            for ended in self.forest.ended(flights):
                self._start(self.bench.final(ended), Flight(ended.hash, None))
            if chosen is None:
                return
            search, action = chosen
            judging = sum(not self._is_paid(f.action) for f in flights if f.action)
            if not self._is_paid(action) and judging >= places:
                # A device does one thing at a time; only questions to models overlap.
                return
            work = self.bench.trial(search, action) if action else self.bench.prepare(search)
            self._start(work, Flight(search.hash, action))

    def _is_paid(self, action: Action | None) -> bool:
        """Whether the action waits for a model on another machine rather than for this one."""
        return action is not None and isinstance(self.forest.proposers.get(action.proposer), PaidProposer)

    def _start_wishes(self) -> None:
        """What people handed in or ordered."""
        for work, flight in self.orders.obey():
            self._start(work, flight)
        while submission := self.human.take():
            self._start(self.bench.by_hand(submission), Flight(submission.region, None))

    def _start(self, work: Work, flight: Flight) -> None:
        try:
            future = next(work)
        except StopIteration:
            return
        future.add_done_callback(self._wake_up)
        self._tasks.append(_Task(work, future, flight))

    def _collect(self) -> None:
        for task in list(self._tasks):
            while task.future.done():
                if not self._advance(task):
                    self._tasks.remove(task)
                    break

    def _advance(self, task: _Task) -> bool:
        """Give a task the result it waited for; False when its work is over."""
        try:
            try:
                result = task.future.result()
            except Exception as error:  # noqa: BLE001 - the coroutine decides
                task.future = task.work.throw(error)
            else:
                task.future = task.work.send(result)
        except StopIteration:
            self._judge_failures = 0
            return False
        except Exception as error:  # noqa: BLE001 - counted, and raised when it repeats
            self._failed(task.flight, error)
            return False
        task.future.add_done_callback(self._wake_up)
        return True

    def _failed(self, flight: Flight, error: Exception) -> None:
        """The judge (not a kernel) failed: that action is given up; three in a row fail the run."""
        self._judge_failures += 1
        if self._judge_failures >= _JUDGE_FAILURES:
            raise error
        search = self.forest.regions[flight.region]
        if flight.action:
            self.forest.fruitless(search, flight.action)
        elif search.tree is None or search.state == "final":
            self.bench.close(search, f"it could not be measured: {error}")
        self.emit(Log("error", f"{search.item.region.title}: {error!r}"))

    def _controls(self) -> None:
        """Obey stop and pause."""
        if self._pause.is_set() and not self._stop.is_set():
            before = self._state
            self.ledger.hold()
            self._become("paused")
            while self._pause.is_set() and not self._stop.is_set():
                self._wake.wait(_TICK_S)
                self._wake.clear()
            self.ledger.start()
            if not self._stop.is_set():
                self._become(before)
        if self._stop.is_set():
            self._become("stopping")
            raise _Stopped

    def _wait(self) -> None:
        self._meter.tell(self.bench.doing)
        self._wake.wait(_TICK_S)
        self._wake.clear()

    def _wake_up(self, _future: object = None) -> None:
        self._wake.set()

    def _become(self, state: str, message: str = "") -> None:
        self._state = state
        self.emit(RunState(state, message))

    def _drop_tasks(self) -> None:
        self.bench.stop_calls()
        for task in self._tasks:
            task.future.cancel()
            task.work.close()
        self._tasks.clear()

    def _abandon(self, why: str) -> None:
        """Drop what is under way. States stay as they are inside, so that the agent can be started again."""
        self._drop_tasks()
        for search in self.forest.regions.values():
            if search.is_active and search.tree is None:
                search.state = "waiting"
                self.emit(RegionState(search.hash, "off", f"not searched: {why}"))
            elif search.state in ("searching", "ending", "final"):
                search.state = "searching" if search.state == "searching" else "ending"
                unproven = " before its best kernel was re-measured" if search.best else ""
                self.emit(RegionState(search.hash, "done", why + unproven))

    def _finish_s(self) -> float:
        unproven = sum(s.state == "searching" and s.best is not None for s in self.forest.regions.values())
        return unproven * _FINALIST_S + (_STEP_S if self._finish else 0.0)
