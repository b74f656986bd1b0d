"""SEARCH/REPLACE edits of a source, forgiving about white space and about nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_START: Final = re.compile(r"^\s*<{5,9}\s*SEARCH\s*$")
_MIDDLE: Final = re.compile(r"^\s*={5,9}\s*$")
_END: Final = re.compile(r"^\s*>{5,9}\s*REPLACE\s*$")


@dataclass(frozen=True)
class Edit:
    search: tuple[str, ...]
    replace: tuple[str, ...]


class EditError(Exception):
    """An edit that cannot be read or has no single place in the source; the message is for the model."""


def has_edits(text: str) -> bool:
    return any(_START.match(line) for line in text.splitlines())


def read_edits(text: str) -> list[Edit]:
    """Every block in a reply. Raises EditError for a block that does not end."""
    edits: list[Edit] = []
    search: list[str] | None = None
    replace: list[str] | None = None
    for line in text.splitlines():
        if search is None:
            if _START.match(line):
                search = []
        elif replace is None:
            if _MIDDLE.match(line):
                replace = []
            else:
                search.append(line)
        elif _END.match(line):
            edits.append(Edit(tuple(search), tuple(replace)))
            search = replace = None
        else:
            replace.append(line)
    if search is not None:
        raise EditError(f"edit {len(edits) + 1} has no end (>>>>>>> REPLACE)")
    return edits


def apply(source: str, edits: Sequence[Edit]) -> str:
    """The source with every edit made, in order. Raises EditError naming the edit that has no place."""
    lines = source.splitlines()
    for number, edit in enumerate(edits, start=1):
        start, length = _place(lines, edit.search, number)
        lines[start : start + length] = edit.replace
    return "\n".join(lines) + "\n"


def _place(lines: Sequence[str], search: Sequence[str], number: int) -> tuple[int, int]:
    wanted = _trimmed(search)
    if not wanted:
        raise EditError(f"edit {number} searches for nothing")
    for normal in (str, str.rstrip, lambda line: " ".join(line.split())):
        have, want = [normal(line) for line in lines], [normal(line) for line in wanted]
        hits = [i for i in range(len(have) - len(want) + 1) if have[i : i + len(want)] == want]
        if len(hits) == 1:
            return hits[0], len(want)
        if hits:
            places = f"the searched lines occur {len(hits)} times"
            raise EditError(f"edit {number}: {places}; add lines around them")
    raise EditError(f"edit {number}: the source has no such lines: {wanted[0].strip()[:80]!r} …")


def _trimmed(lines: Sequence[str]) -> list[str]:
    """Without empty lines at both ends."""
    kept = list(lines)
    while kept and not kept[0].strip():
        kept.pop(0)
    while kept and not kept[-1].strip():
        kept.pop()
    return kept
