"""The live view of a run: a thin anywidget over the event log. Everything seen is drawn in js/."""

from __future__ import annotations

import contextvars
import json
import pathlib
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final, Protocol

import anywidget
import traitlets

from ..exc import ForgeError, ProblemError
from ..steering import steer
from . import wire
from .pump import Log, Pump
from .reports import FORMATS
from .summary import Summary

Json = dict[str, Any]

_STATIC: Final = pathlib.Path(__file__).parent.parent / "static"
# The snapshot of a long run must stay something a browser opens at once.
SNAPSHOT_SOURCE_CHARS: Final = 4_000_000


class ShownRun(Protocol):
    """What a widget needs of ``kernelforge_lab.Run``."""

    @property
    def log(self) -> Any: ...

    def pause(self) -> Any: ...

    def resume(self) -> Any: ...

    def stop(self) -> Any: ...

    def report(self, path: str) -> Any: ...


class RunWidget(anywidget.AnyWidget):
    """One model per run; every display of the run is a view of it."""

    _esm = _STATIC / "widget.js"
    _css = _STATIC / "widget.css"

    status = traitlets.Unicode("starting").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    summary = traitlets.Dict().tag(sync=True)
    # False for a run read back from the store: there is nothing to pause or to give a budget.
    steerable = traitlets.Bool(True).tag(sync=True)
    # Never stored: computed whenever a front end asks for state (page reload, second browser, saving).
    snapshot = traitlets.Bytes(b"").tag(sync=True, to_json=lambda _value, widget: widget.pack())

    def __init__(
        self,
        run: ShownRun,
        *,
        on_finish: Callable[[Summary], None] | None = None,
        bundle: Callable[[Any], Json] | None = None,
    ) -> None:
        # The run owns the widget's life, not the other way round.
        self._run = weakref.ref(run)
        self._log: Log = run.log
        self._packed = 0
        self._on_finish = on_finish
        self._bundle = bundle
        # A finished run is shown by its first state; nobody may be there to hear an update.
        so_far = Summary(self._log.since(0))
        steerable = bool(getattr(run, "is_steerable", True))
        super().__init__(
            status=so_far.state, title=so_far.title, summary=so_far.as_json(), steerable=steerable
        )
        self._pump = Pump(self._log, self)
        self.on_msg(self._on_message)
        self._pump.start(self._packed)

    def pack(self) -> bytes:
        """The whole run so far as UTF-8 JSON."""
        events = self._log.since(0)
        self._packed = len(events)
        saved = wire.saved(events, total_chars=SNAPSHOT_SOURCE_CHARS)
        return json.dumps(saved, ensure_ascii=False, separators=(",", ":")).encode()

    # ---- Sink: called from the pump thread only ----
    def send_message(self, message: Json) -> None:
        self.send(message)

    def show_summary(self, summary: Summary) -> None:
        if self.title != summary.title:
            self.title = summary.title
        if self.status != summary.state:
            self.status = summary.state
        self.summary = summary.as_json()

    def finish(self, summary: Summary) -> None:
        # So that nbclient, papermill and "save widget state" keep the finished run.
        self.send_state("snapshot")
        if self._on_finish is not None:
            self._on_finish(summary)

    # ---- messages from the view: on the main thread or a kernel subshell; tiny and thread-safe ----
    def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
        kind = content.get("kind") if isinstance(content, dict) else None
        run = self._run()
        if kind == "hello":
            have = content.get("have", 0)
            self._pump.hello(have if isinstance(have, int) and have >= 0 else 0, _subshell_context())
        elif kind == "want" and content.get("what") == "source":
            self._send_source(content.get("node"))
        elif kind == "want" and content.get("what") == "calls":
            self._send_calls(content.get("node"))
        elif run is not None and kind == "want" and content.get("what") == "bundle":
            # A picture is drawn for it.
            threading.Thread(target=self._send_bundle, args=(run,), name="kernelforge-bundle").start()
        elif run is not None and isinstance(kind, str) and kind != "want":
            # Stopping may wait for a worker; the front end's channel must not.
            name = f"kernelforge-{kind[:20]}"
            threading.Thread(target=self._obey, args=(run, content), name=name, daemon=True).start()

    def _obey(self, run: Any, command: Json) -> None:
        """Do what the person clicked, and say what became of it."""
        answer: Json = {"v": wire.VERSION, "kind": "answer", "to": command["kind"], "error": "", "text": ""}
        try:
            if command["kind"] == "report":
                answer["text"] = f"Report written to {run.report(_report_name(run.log.run, command))}"
            else:
                steer(run, command)
        except ForgeError as error:
            answer["error"] = str(error)
        except Exception as error:  # noqa: BLE001 - shown to the person instead of dying in a thread
            answer["error"] = repr(error)
        if answer["error"] or answer["text"]:
            self._pump.post(answer)

    def _send_bundle(self, run: Any) -> None:
        if self._bundle is not None:
            self._pump.post({"v": wire.VERSION, "kind": "bundle", "data": self._bundle(run)})

    def _send_calls(self, node: Any) -> None:
        calls = [e for e in self._log.since(0) if e["kind"] == "model_called" and e["node"] == node]
        self._pump.post({"v": wire.VERSION, "kind": "calls", "node": node, "calls": calls})

    def _send_source(self, node: Any) -> None:
        for event in self._log.since(0):
            if event["kind"] == "node_added" and event["node"] == node:
                source = event["source"]
                self._pump.post({"v": wire.VERSION, "kind": "source", "node": node, "source": source})
                return

    def close(self) -> None:
        if hasattr(self, "_pump"):
            self._pump.close()
        super().close()


def _report_name(run: str, command: Json) -> str:
    """A file of this run's in the kernel's folder; a front end never names paths."""
    suffix = command.get("format", "html")
    if suffix not in FORMATS:
        raise ProblemError(f"report: {suffix!r} is not one of {', '.join(FORMATS)}.")
    return f"kernelforge-{run}.{suffix}"


def _subshell_context() -> contextvars.Context | None:
    """A copy of this handler's context when ipykernel runs it on a subshell (see ``Pump.hello``)."""
    from IPython.core.getipython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    if kernel is None:
        return None
    header = kernel.get_parent().get("header", {})
    return contextvars.copy_context() if header.get("subshell_id") else None
