"""Events on their way to a view: superseded meters dropped, repeated sources sent once, long ones left out.

What is left out is said so (``source_node``, ``source_chars``, ``text_chars``), so a view can ask for it
or explain.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

Json = dict[str, Any]

VERSION: Final = 1
# A template's C++ has 1–4 kB; anything longer is fetched when somebody looks at it.
INLINE_SOURCE_CHARS: Final = 4_000


def pack(
    events: Sequence[Json],
    *,
    each_chars: int | None = INLINE_SOURCE_CHARS,
    total_chars: int | None = None,
    prefer: Collection[int] = (),
) -> list[Json]:
    """The same events, smaller. ``seq`` and order stay.

    ``each_chars``   longest source kept inline (None: any)
    ``total_chars``  room for all sources together (None: unlimited); nodes in ``prefer`` come first
    """
    last_meter = max((i for i, e in enumerate(events) if e["kind"] == "meter"), default=-1)
    # Spending is what a later chart needs of a meter, so those that moved it stay.
    kept_spent: float | None = None
    fits = _affordable(events, total_chars, prefer)
    first_with: dict[str, int] = {}
    out: list[Json] = []
    for i, event in enumerate(events):
        if event["kind"] == "meter":
            if i != last_meter and event["spent_usd"] == kept_spent:
                continue
            kept_spent = event["spent_usd"]
        elif event["kind"] == "model_called":
            out.append(_slim_call(event, 0 if total_chars is not None else each_chars))
            continue
        elif event["kind"] == "node_added" and event["source"]:
            out.append(_slim(event, each_chars, fits, first_with))
            continue
        out.append(event)
    return out


def _slim(
    event: Json, each_chars: int | None, fits: Collection[str] | None, first_with: dict[str, int]
) -> Json:
    source = event["source"]
    chars = len(source)
    owner = first_with.setdefault(source, event["node"])
    if owner != event["node"]:
        return {**event, "source": "", "source_node": owner, "source_chars": chars}
    if (each_chars is not None and chars > each_chars) or (fits is not None and source not in fits):
        return {**event, "source": "", "source_chars": chars}
    return event


def _slim_call(event: Json, each_chars: int | None) -> Json:
    """A call without its texts where they are long; their length stays, and a view asks for them."""
    chars = len(event["prompt"]) + len(event["reply"])
    if each_chars is None or chars <= each_chars:
        return event
    return {**event, "prompt": "", "reply": "", "text_chars": chars}


def _affordable(events: Sequence[Json], total_chars: int | None, prefer: Collection[int]) -> set[str] | None:
    if total_chars is None:
        return None
    added = [e for e in events if e["kind"] == "node_added"]
    added.sort(key=lambda e: e["node"] not in prefer)
    fits: set[str] = set()
    room = total_chars
    for event in added:
        source = event["source"]
        if source not in fits and len(source) <= room:
            fits.add(source)
            room -= len(source)
    return fits


def batch(events: Sequence[Json], have: int, *, reset: bool = False) -> Json:
    """A message that takes a view from ``have`` events to all of ``events`` (those after ``have``).

    With ``reset`` the view first forgets what it holds.
    """
    return {
        "v": VERSION,
        "kind": "reset" if reset else "events",
        "from": have,
        "to": have + len(events),
        "events": pack(events),
    }


def saved(
    events: Sequence[Json],
    *,
    each_chars: int | None = INLINE_SOURCE_CHARS,
    total_chars: int | None = None,
    prefer: Collection[int] = (),
) -> Json:
    """A whole run, as snapshots, saved notebooks and reports hold it."""
    packed = pack(events, each_chars=each_chars, total_chars=total_chars, prefer=prefer)
    return {"v": VERSION, "from": 0, "to": len(events), "events": packed}
