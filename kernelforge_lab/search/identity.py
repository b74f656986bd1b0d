"""When two kernels are the same kernel: by their text before they are judged, by their code after."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from ..judge.verdict import Verdict
from ..kernels.kernel import Kernel

_FORGE: Final = re.compile(r"//\s*forge\s*:\s*(\w+)(.*)")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_AROUND_PUNCTUATION: Final = re.compile(r"\s*([^\w\s\"'])\s*")


def source_key(kernel: Kernel) -> str:
    """Equal for kernels that differ in comments, white space and idea text only."""
    text = "\0".join([kernel.region, kernel.target, normalised(kernel.source), repr(sorted(kernel.params))])
    return hashlib.sha256(text.encode()).hexdigest()


def binary_key(kernel: Kernel, verdict: Verdict) -> str | None:
    """Equal for kernels whose machine code and launches are equal; None when there is no machine code.

    Parameters count only where a launch or workspace line uses them: elsewhere they are in the code.
    """
    if not verdict.binary_hash:
        return None
    lines = [line for line in declarations(kernel.source) if line.split()[0] in ("launch", "workspace")]
    used = [(k, v) for k, v in sorted(kernel.params) if any(re.search(rf"\b{k}\b", line) for line in lines)]
    return repr((verdict.binary_hash, lines, used))


def declarations(source: str) -> list[str]:
    """The ``// forge:`` lines in normal form, without ``idea`` (text for people)."""
    found = (_FORGE.match(line.strip()) for line in source.splitlines())
    lines = (f"{m[1]} {' '.join(m[2].split())}" for m in found if m and m[1] != "idea")
    return [line.strip() for line in lines]


def normalised(source: str) -> str:
    """Source without comments and needless white space; preprocessor lines stay lines of their own."""
    code = _COMMENT.sub(lambda m: m[0] if m[0][0] in "\"'" else " ", source)
    lines, text, directive = declarations(source), "", False
    for line in (" ".join(line.split()) for line in code.splitlines()):
        if line.startswith("#") or directive:
            lines += [text, line]
            text, directive = "", line.endswith("\\")
        elif line:
            text = _AROUND_PUNCTUATION.sub(r"\1", f"{text} {line}".strip())
    return "\n".join(line for line in [*lines, text] if line)
