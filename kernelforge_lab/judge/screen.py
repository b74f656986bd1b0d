"""The screen before the compiler: what no kernel needs and a hostile source would use.

A compiler reads files (``#include``, ``#embed``), takes machine code (``asm``) and places functions where
the loader runs them (attributes), so a source is read as tokens before any compiler sees it. What is
allowed is listed, everything else is refused with its line.
"""

from __future__ import annotations

import re
from typing import Final

_DIRECTIVES: Final = frozenset(
    "define undef if ifdef ifndef elif else endif error warning include pragma".split()
)
_HEADERS: Final = {
    "cpu": frozenset(
        "algorithm array atomic bit cassert cfloat climits cmath complex cstddef cstdint cstdio cstdlib"
        " cstring functional limits memory new numeric tuple type_traits utility vector omp.h"
        " immintrin.h x86intrin.h xmmintrin.h emmintrin.h arm_neon.h arm_sve.h assert.h float.h limits.h"
        " math.h stddef.h stdint.h stdio.h stdlib.h string.h".split()
    ),
    "cuda": frozenset(
        "algorithm cassert cfloat climits cmath cstddef cstdint cstring limits type_traits utility assert.h"
        " float.h limits.h math.h stddef.h stdint.h string.h cuda.h cuda_runtime.h device_launch_parameters.h"
        " cuda_bf16.h cuda_fp16.h mma.h cooperative_groups.h".split()
    ),
}
# Of OpenMP alone on the cpu: others change how floating point works, or the section code lies in.
_PRAGMAS: Final = {"cpu": ("omp",), "cuda": ("unroll", "nounroll", "once", "nv_diag_suppress")}
_ATTRIBUTES: Final = frozenset(
    "aligned alignas always_inline assume_aligned cold const deprecated device fallthrough flatten gnu global"
    " hot likely malloc may_alias maybe_unused nodiscard noinline noreturn nothrow omp optimize pure restrict"
    " shared target unlikely unused vector_size visibility".split()
)
_FORBIDDEN: Final = {
    "cpu": {
        **dict.fromkeys(("asm", "__asm", "__asm__"), "inline assembly"),
        **dict.fromkeys(("__has_include", "__has_include_next", "__has_embed"), "a look at the file system"),
        **dict.fromkeys(("syscall", "dlopen", "dlsym", "__builtin_apply"), "a way around the sandbox"),
    },
    "cuda": dict.fromkeys(
        ("__has_include", "__has_include_next", "__has_embed"), "a look at the file system"
    ),
}
# After splicing. Raw strings, digit separators and stray backslashes are refused: literals are this simple.
_TOKEN: Final = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|//[^\n]*|/\*(?s:.*?)\*/')
_SPLICE: Final = re.compile(r"\\[ \t\r\f\v]*\n")
_HIDING: Final = (
    (re.compile(r"%:|\?\?"), "digraphs and trigraphs hide"),
    (re.compile(r"##"), "pasting tokens (##) hides"),
    (re.compile(r"\\"), "a backslash hides"),
    (re.compile(r'R"'), "a raw string hides"),
    (re.compile(r"[0-9a-fA-F]'[0-9a-fA-F]"), "a digit separator (') hides"),
)
_WORD: Final = re.compile(r"[^\W\d]\w*")


def screen(source: str, target: str) -> str:
    """Why ``source`` is not compiled, with its line; "" when nothing speaks against it."""
    lines = _logical_lines(source)
    for number, text in lines:
        reason = _judge(text, target)
        if reason:
            return f"line {number}: {reason}"
    whole = "\n".join(text for _, text in lines)
    at, reason = min(filter(None, (_attributes(whole), _pragma_operator(whole, target))), default=(0, ""))
    return f"line {lines[whole.count(chr(10), 0, at)][0]}: {reason}" if reason else ""


def _judge(text: str, target: str) -> str:
    for pattern, what in _HIDING:
        if pattern.search(text):
            return f"{what} what a line says; write it out"
    directive = re.match(r"\s*#\s*(\w*)(.*)", text)
    if directive is not None:
        reason = _directive(directive[1], directive[2].strip(), target)
        if reason:
            return reason
    if target == "cuda" and "<<<" in text:
        return "a launch (<<<>>>) is host code; declare it with // forge: launch"
    # Also inside strings: kernels have no use for them, and a missed quote must not hide a word.
    for word in _WORD.findall(text):
        what = _FORBIDDEN[target].get(word, "")
        if what:
            return f"{word} is {what}, which no kernel may use"
    return ""


def _directive(name: str, rest: str, target: str) -> str:
    if not name and not rest:
        return ""
    if name not in _DIRECTIVES:
        return f"#{name} is not allowed; these are: {', '.join(sorted(_DIRECTIVES))}"
    if name == "include":
        header = re.fullmatch(r"<([\w.]+)>", rest)
        if header is None or header[1] not in _HEADERS[target]:
            return (
                f"#include {rest[:60]} is not allowed; arithmetic needs <cmath>, <cstdint>, <omp.h> and such"
            )
    if name in ("define", "undef") and (named := _WORD.match(rest)) and named[0].strip("_") in _ATTRIBUTES:
        return f"#{name} {named[0]} would change what attributes mean"
    if name == "pragma" and rest.split(" ", 1)[0] not in _PRAGMAS[target]:
        return f"#pragma {rest[:40]} is not allowed; only {', '.join(_PRAGMAS[target])} are"
    return ""


def _attributes(text: str) -> tuple[int, str] | None:
    """(position, reason) of the first attribute that is not listed, or whose list is hidden by a macro."""
    for match in re.finditer(r"__(?:attribute|declspec)\w*\s*|\[\s*\[", text):
        rest = text[match.end() : match.end() + 400]
        is_call = match[0].startswith("_")
        if is_call and not rest.startswith("("):
            return match.start(), "an attribute without its list"
        inside = _parenthesised(rest) if is_call else re.split(r"\]\s*\]", rest, maxsplit=1)[0]
        for word in _WORD.findall(inside):
            if word.strip("_") not in _ATTRIBUTES:
                return match.start(), f"the attribute {word} is not allowed"
    return None


def _parenthesised(text: str) -> str:
    """What the parentheses that ``text`` begins with enclose; all of it when they do not close."""
    depth = 0
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return text[:i]
    return text


def _pragma_operator(text: str, target: str) -> tuple[int, str] | None:
    for match in re.finditer(r"\b_(?:_p|P)ragma(?:__)?\b(\s*\(\s*\"\s*\w+)?", text):
        if (match[1] or "").split('"')[-1].strip() not in _PRAGMAS[target]:
            return match.start(), f"_Pragma is allowed for {', '.join(_PRAGMAS[target])} only"
    return None


def _logical_lines(source: str) -> list[tuple[int, str]]:
    """(number, text) of lines as the preprocessor sees them: spliced at backslashes, without comments."""
    spliced: list[str] = []
    numbers: list[int] = []
    number = 1
    for whole in _SPLICE.sub("\0", source).split("\n"):
        spliced.append(whole.replace("\0", ""))
        numbers.append(number)
        number += 1 + whole.count("\0")

    def blank(match: re.Match[str]) -> str:
        text = match[0]
        return " " + "\n" * text.count("\n") if text.startswith(("//", "/*")) else text

    return list(zip(numbers, _TOKEN.sub(blank, "\n".join(spliced)).split("\n"), strict=True))
