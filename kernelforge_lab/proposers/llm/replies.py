"""From a model's reply to a kernel's source, or to a typed reason why it is none. Never raises."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ...exc import KernelSourceError
from ...kernels.format import SOURCE_BYTES_MAX, parse
from ...kernels.region import Region
from ..outcome import Outcome
from . import edits

# A kernel file is a few KB; far above that a model repeats itself.
REPLY_CHARS_MAX: Final = 150_000
_IDEA_CHARS: Final = 300

_FENCE: Final = re.compile(r"^\s{0,3}(`{3,}|~{3,})\s*([\w+#.\-]*)[^`~]*$")
_FORGE: Final = re.compile(r"^\s*//\s*forge\s*:", re.MULTILINE)
_PYTHON: Final = re.compile(
    r"^\s*(?:@triton|import triton|import torch|from torch|def \w+\(|tl\.)", re.MULTILINE
)
_HOST: Final = re.compile(r"\bint\s+main\s*\(|<<<|torch::|PYBIND11_MODULE|TORCH_LIBRARY|\bcuda[A-Z]\w+\s*\(")
_REFUSAL: Final = re.compile(
    r"\b(?:I can't|I cannot|I won't|as an AI|I(?:'m| am) (?:sorry|unable|not able))\b",
    re.IGNORECASE,
)
_IDEA: Final = re.compile(r"^\s*(?:\*\*)?idea(?:\*\*)?\s*:\s*(?:\*\*)?\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)

# What typesetting does to code on its way through chats and word processors.
_TYPOGRAPHY: Final = str.maketrans(
    {
        "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2018": "'", "\u2019": "'", "\u00a0": " ",
        "\u2009": " ", "\u202f": " ", "\u200b": None, "\u2060": None, "\ufeff": None, "\u2028": "\n",
        "\0": None,
    }
)  # fmt: skip


@dataclass(frozen=True)
class Parsed:
    """``source`` only with outcome KERNEL; ``reason`` is for the model and for people."""

    outcome: Outcome
    source: str = ""
    reason: str = ""
    idea: str = ""


def read(
    text: str, region: Region, target: str, *, parent: str = "", finish: str = "", threads: int = 1
) -> Parsed:
    """Read a reply about ``region``.

    ``parent`` is the source that edits apply to, ``finish`` the API's word for why the reply ended.
    """
    text = text.encode("utf-8", "replace").decode().translate(_TYPOGRAPHY).replace("\r\n", "\n")
    cut = finish in ("length", "max_tokens")
    if finish == "content_filter":
        return Parsed(Outcome.REFUSED, reason="the endpoint's content filter stopped the reply")
    if not text.strip():
        if cut:
            return Parsed(Outcome.OUT_OF_TOKENS, reason="all output tokens went into reasoning; no text came")
        return Parsed(Outcome.EMPTY, reason="the reply is empty")
    if len(text) > REPLY_CHARS_MAX:
        reason = f"the reply has {len(text)} characters; a kernel has a few thousand"
        return Parsed(Outcome.TOO_LONG, reason=reason)
    idea = _idea(text)
    found = _source(text, parent, cut)
    if found.outcome is not Outcome.KERNEL:
        return Parsed(found.outcome, "", found.reason, idea)
    wrong = _wrong(found.source, region, target, threads, cut)
    if wrong:
        return Parsed(wrong.outcome, "", wrong.reason, idea)
    if parent and found.source.strip() == parent.strip():
        return Parsed(Outcome.UNCHANGED, "", "the kernel is the parent, unchanged", idea)
    if edits.has_edits(text) and idea:
        # An edit seldom touches the parent's idea line.
        return Parsed(Outcome.KERNEL, found.source, "", idea)
    declared = " ".join(parse(found.source).ideas)[:_IDEA_CHARS]
    return Parsed(Outcome.KERNEL, found.source, "", declared or idea)


def _source(text: str, parent: str, cut: bool) -> Parsed:
    """The one kernel file in the reply, or the parent with the reply's edits."""
    blocks, unclosed = _fences(text)
    files = [code for _, code in blocks if _FORGE.search(code) and not edits.has_edits(code)]
    files = [code for i, code in enumerate(files) if code.strip() not in {f.strip() for f in files[:i]}]
    if len(files) == 1:
        return Parsed(Outcome.KERNEL, files[0])
    if len(files) > 1:
        reason = f"the reply has {len(files)} different kernel files in fences"
        return Parsed(Outcome.TWO_KERNELS, reason=reason)
    if edits.has_edits(text):
        return _edited(text, parent, cut)
    if unclosed is not None and _FORGE.search(unclosed):
        if cut or not _balanced(unclosed):
            return Parsed(Outcome.TRUNCATED, reason="the reply ends in the middle of the kernel")
        return Parsed(Outcome.KERNEL, unclosed)
    if _FORGE.match(text.lstrip()) and not blocks:
        # The whole reply is the file.
        return Parsed(Outcome.KERNEL, text.strip() + "\n")
    return _nothing(text, [*(code for _, code in blocks), *([unclosed] if unclosed else [])], cut)


def _edited(text: str, parent: str, cut: bool) -> Parsed:
    if not parent:
        return Parsed(Outcome.BAD_EDIT, reason="there is no parent to edit; give the whole kernel file")
    try:
        return Parsed(Outcome.KERNEL, edits.apply(parent, edits.read_edits(text)))
    except edits.EditError as error:
        if cut:
            return Parsed(Outcome.TRUNCATED, reason="the reply ends in the middle of an edit")
        return Parsed(Outcome.BAD_EDIT, reason=str(error))


def _nothing(text: str, codes: list[str], cut: bool) -> Parsed:
    """Why a reply without a kernel file has none."""
    code = "\n".join(codes)
    if _PYTHON.search(code):
        return Parsed(Outcome.WRONG_LANGUAGE, reason="the reply is Python or Triton; a kernel file is wanted")
    if cut:
        return Parsed(Outcome.TRUNCATED, reason="the reply was cut off before the kernel was complete")
    if code.strip():
        if _HOST.search(_bare(code)):
            return Parsed(Outcome.HOST_CODE, reason="the reply has host code; only device code is wanted")
        reason = "the code has no // forge: lines, so nothing would be launched"
        return Parsed(Outcome.BAD_FORGE_LINE, reason=reason)
    if _REFUSAL.search(text):
        return Parsed(Outcome.REFUSED, reason=" ".join(text.split())[:200])
    if _FORGE.search(text):
        return Parsed(Outcome.NO_CODE, reason="the kernel file is not in a ``` fence")
    return Parsed(Outcome.NO_CODE, reason="the reply has no code in it")


def _wrong(source: str, region: Region, target: str, threads: int, cut: bool) -> Parsed | None:
    bare = _bare(source)
    if cut and not _balanced(source):
        return Parsed(Outcome.TRUNCATED, reason="the reply ends in the middle of the kernel")
    if _PYTHON.search(source) and "{" not in bare:
        return Parsed(Outcome.WRONG_LANGUAGE, reason="the kernel is Python or Triton")
    host = _HOST.search(bare)
    if host:
        reason = f"{host[0].strip()!r} is host code; launches are declared by // forge: launch"
        return Parsed(Outcome.HOST_CODE, reason=reason)
    if len(source.encode()) > SOURCE_BYTES_MAX:
        return Parsed(Outcome.TOO_LONG, reason=f"the kernel file is larger than {SOURCE_BYTES_MAX} bytes")
    try:
        file = parse(source)
        if file.target != target or (target == "cpu" and "__global__" in bare):
            return Parsed(Outcome.WRONG_TARGET, reason=f"the kernel is not for the target {target}")
        file.resolve(region, (), threads=threads)
    except KernelSourceError as error:
        return Parsed(Outcome.BAD_FORGE_LINE, reason=str(error))
    for launch in file.launches:
        if not re.search(rf"\b{launch.function}\s*\(", bare):
            reason = f"line {launch.line} launches {launch.function}, which the source does not define"
            return Parsed(Outcome.WRONG_NAME, reason=reason)
    if not _balanced(source):
        return Parsed(Outcome.TRUNCATED, reason="the kernel's braces do not close")
    return None


def _fences(text: str) -> tuple[list[tuple[str, str]], str | None]:
    """Closed fences as (language, code), and the code after a fence that never closes."""
    blocks: list[tuple[str, str]] = []
    fence, language, lines = "", "", [""]
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not match[2]:
                blocks.append((language, "\n".join(lines) + "\n"))
                fence = ""
            else:
                lines.append(line)
        elif match:
            fence, language, lines = match[1], match[2].lower(), []
    return blocks, "\n".join(lines) + "\n" if fence else None


def _balanced(source: str) -> bool:
    bare = _bare(source)
    return bare.count("{") == bare.count("}")


def _bare(source: str) -> str:
    """Without comments and strings."""
    return _COMMENT.sub(" ", source)


def _idea(text: str) -> str:
    match = _IDEA.search(text)
    if match:
        return match[1].strip().strip("*")[:_IDEA_CHARS]
    before = re.split(r"^\s*(?:```|~~~|<{5,9})", text, maxsplit=1, flags=re.MULTILINE)[0]
    first = next((line.strip() for line in before.splitlines() if line.strip()), "")
    return "" if _FORGE.match(first) else first[:_IDEA_CHARS]
