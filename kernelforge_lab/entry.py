"""The two functions people start from: forge a call, load a past run."""

from __future__ import annotations

import difflib
import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from .environment import is_interactive
from .events import ENDED, RunState
from .exc import ProblemError
from .log import EventLog
from .options import Options
from .run import Run

# A search says something every few seconds; one that was silent this long has gone with its process.
_SILENT_S: Final = 60.0


def forge(function: Any, *args: Any, kwargs: Mapping[str, Any] | None = None, **more: Any) -> Run:
    """Search faster kernels for the call ``function(*args, **kwargs)``; returns the Run.

    Keyword arguments with the name of an option (see ``Options``) are options, the others go to the
    function; ``kwargs`` takes what would clash. The capture takes a few seconds, the search goes on in
    the background unless ``wait=True`` (the default where nobody is watching).

    Raises ProblemError for wrong options and CaptureError when the call cannot be captured.
    """
    if not callable(function):
        kind = type(function).__name__
        raise ProblemError(
            f"function: a {kind} cannot be called.", "Give a model or a function, then its inputs."
        )
    options = {name: value for name, value in more.items() if name in Options.names()}
    given = {name: value for name, value in more.items() if name not in options} | dict(kwargs or {})
    _check_names(function, given, options)
    run = Run(Options(**options)).start(function, args, given)
    wait = run.options.wait
    if wait if wait is not None else not is_interactive():
        run.wait()
    return run


def load(run_id: str | None = None) -> Run:
    """A run from the store by its id or the beginning of it; None is the newest.

    Everything but what needs the model works: frame, table, node, report, export. Raises ProblemError
    when there is no such run and StoreError when the store cannot be read.
    """
    from .store import Store

    store = Store()
    try:
        known = store.runs()
        hits = [row for row in known if run_id is None or row.id.startswith(run_id)]
        if run_id is None or run_id in {row.id for row in hits}:
            hits = [row for row in hits if run_id in (None, row.id)][:1]
        if len(hits) != 1:
            listed = ", ".join(f"{row.id} ({row.title})" for row in known[:8]) or "none"
            what = f"{len(hits)} runs match {run_id!r}" if hits else f"there is no run {run_id or ''!r}"
            raise ProblemError(f"run_id: {what}.", f"The newest are: {listed}.")
        events = store.events(hits[0].id)
    finally:
        store.close()
    log = EventLog.of_past(hits[0].id, events)
    state = log.latest("run_state")
    if state and state["state"] not in ENDED and time.time() - events[-1]["at_s"] > _SILENT_S:
        log.emit(RunState("stopped", "its kernel has gone, and the search with it; what was found is kept"))
    return Run(log=log)


def _check_names(function: Callable[..., Any], given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """A name that neither the function nor the options know is named here, not deep in the model."""
    try:
        parameters = inspect.signature(getattr(function, "forward", function)).parameters
    except (TypeError, ValueError):
        return
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in given:
        if name not in parameters and not takes_any:
            near = difflib.get_close_matches(name, [*Options.names(), *parameters], n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise ProblemError(
                f"{name!r} is neither an option nor an argument of {type(function).__name__}.",
                f"{hint}The options are {', '.join(sorted(Options.names()))}.",
            )
    for name in options:
        if name in parameters and name not in given:
            raise ProblemError(
                f"{name!r} is an option and also an argument of the function.",
                f"For the function's, write kwargs={{{name!r}: …}}; for the option, use Options and Run.",
            )
