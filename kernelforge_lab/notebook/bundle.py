"""What a run looks like as a notebook output, in every form a front end may want.

====================================  ============================================================
our own type                          saved run, drawn by the labextension without a kernel
widget view                           the live view (JupyterLab without our extension, VS Code, …)
text/html                             script-free picture, table and best sources (GitHub, nbconvert)
text/plain                            one paragraph
====================================  ============================================================
"""

from __future__ import annotations

import threading
import weakref
from html import escape
from typing import Any, Final

from ..history import RegionRecord
from . import picture, wire
from .summary import Summary, gain
from .widget import RunWidget, ShownRun

Json = dict[str, Any]

RUN_MIME: Final = "application/vnd.kernelforge.run.v1+json"
WIDGET_MIME: Final = "application/vnd.jupyter.widget-view+json"
# A notebook is diffed and mailed: room for the sources that won and some of the others.
_SAVED_SOURCE_CHARS: Final = 150_000
_HTML_SOURCE_CHARS: Final = 6_000

_widgets: weakref.WeakKeyDictionary[Any, RunWidget] = weakref.WeakKeyDictionary()
_handles: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()


def widget_of(run: ShownRun) -> RunWidget:
    """The run's one widget, made on first use."""
    widget = _widgets.get(run)
    if widget is None:
        reference = weakref.ref(run)

        def refresh(_summary: Summary) -> None:
            held = reference()
            if held is not None:
                update_displays(held)

        widget = _widgets[run] = RunWidget(run, on_finish=refresh, bundle=mimebundle)
    return widget


def mimebundle(run: ShownRun) -> Json:
    """The MIME bundle of a run as it stands now."""
    widget = widget_of(run)
    events = run.log.events
    summary = Summary(events)
    saved = wire.saved(events, total_chars=_SAVED_SOURCE_CHARS, prefer=summary.best_nodes)
    return {
        RUN_MIME: {**saved, "model_id": widget.model_id},
        WIDGET_MIME: {"version_major": 2, "version_minor": 1, "model_id": widget.model_id},
        "text/html": html(summary),
        "text/plain": summary.text(),
    }


def show(run: ShownRun) -> None:
    """Display a run so that this output becomes the final one when the run ends."""
    from IPython.display import display

    handle = display(mimebundle(run), raw=True, display_id=True)
    if handle is not None:
        _handles.setdefault(run, []).append(handle)


def update_displays(run: ShownRun) -> None:
    """Replace what every display of the run stores (thread-safe: display handles find their output)."""
    handles = _handles.get(run)
    if handles:
        bundle = mimebundle(run)
        for handle in handles:
            handle.update(bundle, raw=True)


def stop(model_id: str = "") -> None:
    """Stop the run that the widget of this model shows; without an id every run that is shown."""
    for run, widget in list(_widgets.items()):
        if not model_id or widget.model_id == model_id:
            # In a thread: this may run on a kernel's subshell, which must answer at once.
            threading.Thread(target=run.stop, name="kernelforge-stop", daemon=True).start()


def html(summary: Summary) -> str:
    """Picture, table and winning sources without script or style, so that sanitisers keep it."""
    won = [r for r in summary.ranked if gain(r) > 1 and r.best in summary.nodes]
    sources = "".join(_source_html(summary, r) for r in won[:3])
    return f"<div>{picture.img_tag(summary)}<p>{escape(summary.text())}</p>{sources}</div>"


def _source_html(summary: Summary, region: RegionRecord) -> str:
    assert region.best is not None
    node = summary.nodes[region.best]
    interval = f" ({region.low:.2f}–{region.high:.2f})" if region.low and region.high else ""
    title = (
        f"{region.info['title']} ×{region.info['count']}: {gain(region):.2f}×{interval} by {node.proposer}"
    )
    source = node.source[:_HTML_SOURCE_CHARS]
    return f"<details><summary>{escape(title)}</summary><pre>{escape(source)}</pre></details>"
