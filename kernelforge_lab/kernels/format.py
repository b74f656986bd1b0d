"""The kernel file format: device code plus ``// forge:`` lines that declare how it is launched.

::

    // forge: target cpu
    // forge: idea one pass over the row, kept in registers
    // forge: tune BLOCK 128 256 512
    // forge: workspace partial float32 ROWS*2
    // forge: launch row_stats args=(in0, partial)
    // forge: launch normalise args=(in0, partial, in1, out0, COLS)
    // forge: atomics

A ``cuda`` launch also has ``grid=(…) block=(…)`` and may have ``smem=…`` (bytes). ``parse`` reads the
lines alone; ``KernelFile.resolve`` puts in a region's sizes and chosen parameters. Everything malformed
is a KernelSourceError with its line, the reason and what was expected; nothing else is ever raised.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Final

from ..exc import KernelSourceError
from .expression import Expression, ExpressionError, parse_expression
from .plan import KernelFile, Launch, LaunchPlan, ResolvedLaunch, Workspace
from .spec import DTYPES
from .symbols import is_reserved

__all__ = ["KernelFile", "Launch", "LaunchPlan", "ResolvedLaunch", "Workspace", "parse"]

TARGETS: Final = ("cpu", "cuda")
SOURCE_BYTES_MAX: Final = 256 * 1024
TUNES_MAX: Final = 16
TUNE_VALUES_MAX: Final = 64
TUNE_VALUE_MAX: Final = 2**31 - 1
LAUNCHES_MAX: Final = 64
ARGS_MAX: Final = 64
WORKSPACES_MAX: Final = 16
_DIRECTIVE: Final = re.compile(r"\s*//\s*forge\s*:(.*)", re.DOTALL)
_WORDS: Final = ("target", "tune", "workspace", "launch", "atomics", "idea")
_NO_COLON: Final = re.compile(rf"\s*//\s*forge\s+({'|'.join(_WORDS)})\b")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TENSOR: Final = re.compile(r"(?:in|out)(?:0|[1-9][0-9]*)", re.ASCII)
_TUNE_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII)
_WORKSPACE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


def parse(source: str) -> KernelFile:
    """Read the ``// forge:`` lines of ``source``. Raises KernelSourceError, and nothing else."""
    _check_text(source)
    reader = _Reader()
    for number, text in enumerate(source.split("\n"), start=1):
        match = _DIRECTIVE.fullmatch(text.rstrip("\r"))
        if match is not None:
            reader.read(number, match[1].strip())
        elif missing := _NO_COLON.match(text):
            raise KernelSourceError(number, "a forge line without its colon", f"// forge: {missing[1]} …")
    return reader.finish(source)


class _Reader:
    """Collects the lines; names are checked at the end, so that the order of lines is free."""

    def __init__(self) -> None:
        self.target = ""
        self.target_line = 1
        self.tunes: dict[str, tuple[int, ...]] = {}
        self.tune_lines: dict[str, int] = {}
        self.workspaces: dict[str, Workspace] = {}
        self.launch_lines: list[tuple[int, str]] = []
        self.atomics = False
        self.ideas: list[str] = []

    def read(self, line: int, text: str) -> None:
        word, _, rest = text.partition(" ")
        rest = rest.strip()
        if word == "target":
            self._target(line, rest)
        elif word == "tune":
            self._tune(line, rest)
        elif word == "workspace":
            self._workspace(line, rest)
        elif word == "launch":
            if len(self.launch_lines) == LAUNCHES_MAX:
                raise KernelSourceError(line, "too many launch lines", f"at most {LAUNCHES_MAX}")
            self.launch_lines.append((line, rest))
        elif word == "atomics":
            if rest:
                raise KernelSourceError(line, f"unexpected {rest!r} after atomics", "nothing after it")
            self.atomics = True
        elif word == "idea":
            self.ideas.append(rest[:500])
        else:
            near = difflib.get_close_matches(word, _WORDS, n=1)
            expected = near[0] if near else ", ".join(_WORDS[:-1]) + " or " + _WORDS[-1]
            reason = f"unknown forge line {word!r}" if word else "an empty forge line"
            raise KernelSourceError(line, reason, expected)

    def finish(self, source: str) -> KernelFile:
        if not self.target:
            raise KernelSourceError(1, "no target line", "// forge: target cpu (or cuda)")
        if not self.launch_lines:
            raise KernelSourceError(1, "no launch line", "// forge: launch FUNCTION args=(in0, out0)")
        launches = tuple(
            _parse_launch(line, text, self.target, self.workspaces) for line, text in self.launch_lines
        )
        return KernelFile(
            source=source,
            target=self.target,
            tunes=self.tunes,
            workspaces=tuple(self.workspaces.values()),
            launches=launches,
            atomics=self.atomics,
            ideas=tuple(self.ideas),
            tune_lines=self.tune_lines,
            target_line=self.target_line,
        )

    def _target(self, line: int, rest: str) -> None:
        if rest not in TARGETS:
            raise KernelSourceError(line, f"unknown target {rest!r}", " or ".join(TARGETS))
        if self.target:
            raise KernelSourceError(line, "a second target line", "one target line per file")
        self.target = rest
        self.target_line = line

    def _tune(self, line: int, rest: str) -> None:
        name, *values = rest.split() or [""]
        if not _TUNE_NAME.fullmatch(name):
            raise KernelSourceError(
                line, f"{name!r} cannot name a parameter", "capitals, digits and _, as in: tune BLOCK 128 256"
            )
        if is_reserved(name):
            raise KernelSourceError(line, f"{name} is one of the region's own symbols", "another name")
        if name in self.tunes:
            raise KernelSourceError(line, f"a second tune line for {name}", "all its values on one line")
        if len(self.tunes) == TUNES_MAX:
            raise KernelSourceError(line, "too many tune lines", f"at most {TUNES_MAX}")
        if not values:
            raise KernelSourceError(line, f"{name} has no values", f"integers, as in: tune {name} 1 2 4")
        if len(values) > TUNE_VALUES_MAX:
            raise KernelSourceError(line, f"{name} has {len(values)} values", f"at most {TUNE_VALUES_MAX}")
        numbers = [_tune_value(line, name, value) for value in values]
        if len(set(numbers)) < len(numbers):
            raise KernelSourceError(line, f"{name} lists a value twice", "every value once")
        self.tunes[name] = tuple(numbers)
        self.tune_lines[name] = line

    def _workspace(self, line: int, rest: str) -> None:
        name, dtype, numel = ([*rest.split(None, 2), "", "", ""])[:3]
        if not _WORKSPACE_NAME.fullmatch(name) or _TENSOR.fullmatch(name):
            raise KernelSourceError(
                line,
                f"{name!r} cannot name a workspace",
                "a lower-case name other than in0 or out0, as in: workspace partial float32 ROWS*2",
            )
        if name in self.workspaces:
            raise KernelSourceError(line, f"a second workspace named {name}", "another name")
        if len(self.workspaces) == WORKSPACES_MAX:
            raise KernelSourceError(line, "too many workspaces", f"at most {WORKSPACES_MAX}")
        if dtype not in DTYPES:
            raise KernelSourceError(line, f"unknown dtype {dtype!r}", "one of " + ", ".join(DTYPES))
        if not numel:
            raise KernelSourceError(
                line,
                f"workspace {name} has no size",
                f"a number of elements, as in: workspace {name} {dtype} ROWS*2",
            )
        self.workspaces[name] = Workspace(name, dtype, _expression(line, numel), line)


_KEY: Final = re.compile(r"\s*([A-Za-z_]+)\s*=\s*", re.ASCII)
_LAUNCH_FORM: Final = {
    "cpu": "launch FUNCTION args=(in0, out0)",
    "cuda": "launch FUNCTION grid=(…) block=(…) args=(in0, out0)",
}


def _parse_launch(line: int, text: str, target: str, workspaces: Mapping[str, Workspace]) -> Launch:
    match = _IDENTIFIER.match(text)
    if match is None:
        raise KernelSourceError(line, "launch names no function", _LAUNCH_FORM[target])
    function = match[0]
    values = _key_values(line, text[match.end() :], target)
    if "args" not in values:
        raise KernelSourceError(line, f"launch {function} has no args", _LAUNCH_FORM[target])
    items = _split_tuple(line, "args", values["args"])
    if len(items) > ARGS_MAX:
        raise KernelSourceError(line, f"launch {function} has {len(items)} args", f"at most {ARGS_MAX}")
    args = tuple(_parse_arg(line, item, workspaces) for item in items)
    if target == "cpu":
        return Launch(function, args, line)
    dims = {}
    for key in ("grid", "block"):
        if key not in values:
            raise KernelSourceError(line, f"launch {function} has no {key}", _LAUNCH_FORM[target])
        parts = _split_tuple(line, key, values[key])
        if not 1 <= len(parts) <= 3:
            raise KernelSourceError(line, f"{key} has {len(parts)} entries", "1 to 3")
        dims[key] = tuple(_expression(line, part) for part in parts)
    smem = _expression(line, values["smem"]) if "smem" in values else None
    return Launch(function, args, line, dims["grid"], dims["block"], smem)


def _key_values(line: int, text: str, target: str) -> dict[str, str]:
    """``grid=(…) smem=A*4 args=(…)`` as a dict; values end at the next key."""
    allowed = ("args",) if target == "cpu" else ("grid", "block", "smem", "args")
    starts = list(_KEY.finditer(text))
    before = text[: starts[0].start()] if starts else text
    if before.strip():
        raise KernelSourceError(line, f"unexpected {before.strip()!r} in launch", _LAUNCH_FORM[target])
    values: dict[str, str] = {}
    for i, match in enumerate(starts):
        key = match[1]
        if key not in allowed:
            what = f"a {target} launch takes no {key}" if key in ("grid", "block", "smem") else ""
            raise KernelSourceError(
                line, what or f"unknown launch key {key!r}", " ".join(f"{a}=" for a in allowed)
            )
        if key in values:
            raise KernelSourceError(line, f"{key} is given twice", f"{key} once")
        end = starts[i + 1].start() if i + 1 < len(starts) else len(text)
        values[key] = text[match.end() : end].strip()
    return values


def _split_tuple(line: int, key: str, text: str) -> list[str]:
    """The comma-separated items of ``(a, f(b, c))`` at the outer level."""
    if not text.startswith("("):
        raise KernelSourceError(line, f"{key} is {text!r}", f"a list in parentheses: {key}=(…)")
    items, depth, start = [], 0, 1
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 or (depth == 1 and char == ","):
            items.append(text[start:i].strip())
            start = i + 1
        if depth == 0:
            break
    if depth:
        raise KernelSourceError(line, f"{key} has an unclosed parenthesis", "')'")
    if text[start:].strip():
        raise KernelSourceError(
            line, f"unexpected {text[start:].strip()!r} after {key}=(…)", "nothing after ')'"
        )
    if items == [""]:
        return []
    if "" in items:
        raise KernelSourceError(line, f"{key} has an empty entry", "an entry between the commas")
    return items


def _parse_arg(line: int, text: str, workspaces: Mapping[str, Workspace]) -> str | Expression:
    if text in workspaces or _TENSOR.fullmatch(text):
        return text
    # Symbols are all upper-case: a lower-case word can only be a misspelt tensor or workspace.
    if _WORKSPACE_NAME.fullmatch(text):
        known = f"a workspace ({', '.join(workspaces)})" if workspaces else "a declared workspace"
        raise KernelSourceError(
            line, f"unknown name {text!r} in args", f"in0…, out0…, {known} or an integer expression"
        )
    return _expression(line, text)


def _expression(line: int, text: str) -> Expression:
    try:
        return parse_expression(text)
    except ExpressionError as error:
        raise KernelSourceError(line, error.reason, error.expected) from None


def _tune_value(line: int, name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text, re.ASCII) or int(text) > TUNE_VALUE_MAX:
        raise KernelSourceError(
            line, f"{text[:40]!r} is no value for {name}", f"whole numbers from 0 to {TUNE_VALUE_MAX}"
        )
    return int(text)


def _check_text(source: str) -> None:
    try:
        size = len(source.encode())
    except UnicodeEncodeError as error:
        line = source.count("\n", 0, error.start) + 1
        raise KernelSourceError(line, "a character that is not valid Unicode", "UTF-8 text") from None
    if size > SOURCE_BYTES_MAX:
        raise KernelSourceError(1, f"the source has {size} bytes", f"at most {SOURCE_BYTES_MAX}")
    if "\0" in source:
        line = source.count("\n", 0, source.index("\0")) + 1
        raise KernelSourceError(line, "a NUL character", "text")
