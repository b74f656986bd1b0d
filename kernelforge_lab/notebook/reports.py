"""A run as a file that stays: HTML to read, a notebook to run again, Markdown to paste."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from ..exc import ForgeError, ProblemError

Json = dict[str, Any]

FORMATS: Final = ("html", "ipynb", "md")


def render(events: Sequence[Json], suffix: str) -> str:
    """The text of a report of these events; ``suffix`` is one of FORMATS. Raises ProblemError."""
    makers: dict[str, Callable[[Sequence[Json]], str]] = {
        "html": _html,
        "ipynb": _notebook,
        "md": _markdown,
    }
    if suffix not in makers:
        known = ", ".join(f".{name}" for name in FORMATS)
        raise ProblemError(f"report: there is no report of kind {suffix!r}.", f"End the name with {known}.")
    return makers[suffix](events)


def write(events: Sequence[Json], path: str | Path) -> Path:
    """Write a report. Raises ProblemError for an unknown suffix, ForgeError where nothing can be written."""
    target = Path(path).expanduser()
    text = render(events, target.suffix.lstrip(".").lower())
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ForgeError(
            f"The report could not be written to {target}: {error.strerror}.", "Name another file."
        ) from error
    return target


def _html(events: Sequence[Json]) -> str:
    from .report import report

    return report(events)


def _notebook(events: Sequence[Json]) -> str:
    from .report_notebook import notebook

    return notebook(events)


def _markdown(events: Sequence[Json]) -> str:
    from .report_text import markdown

    return markdown(events)
