"""A verdict in the words a model can act on: typed, trimmed, without anything else."""

from __future__ import annotations

import re
from typing import Final

from ...judge.verdict import Status, Verdict

_LINES: Final = 24
_CHARS: Final = 2_000
_PATH: Final = re.compile(r"(?<![\w/])/(?:[\w.\-]+/)+")

_MEANING: Final = {
    Status.PARSE_ERROR: "The // forge: lines could not be read.",
    Status.REJECTED: "The source uses something that kernels may not use.",
    Status.COMPILE_ERROR: "It does not compile.",
    Status.LAUNCH_ERROR: "It could not be launched.",
    Status.CRASHED: "It crashed.",
    Status.TIMEOUT: "It did not end in time.",
    Status.OUT_OF_BOUNDS: "It wrote or read outside its tensors.",
    Status.UNWRITTEN: "It left output elements unwritten.",
    Status.MUTATED_INPUT: "It changed an input.",
    Status.WRONG: "Its results are wrong.",
    Status.NONDETERMINISTIC: "Two calls with equal inputs gave different results.",
    Status.UNVERIFIED: "It could not be verified.",
    Status.IMPOSSIBLE: "It was faster than the hardware allows, so it does not do all the work.",
    Status.DUPLICATE: "It is the same as an earlier kernel.",
    Status.SLOWER: "It is correct, but not faster than stock.",
    Status.FASTER: "It is correct and faster than stock.",
}


def describe(verdict: Verdict) -> str:
    """Meaning, numbers, and the judge's evidence with paths and length trimmed."""
    lines = [_MEANING.get(verdict.status, verdict.status.value)]
    if verdict.timing and verdict.status.is_correct:
        t = verdict.timing
        lines.append(
            f"{t.kernel_us:.1f} µs against {t.stock_us:.1f} µs of {t.stock}: {t.speedup:.2f}× "
            f"(95 % interval {t.low:.2f}–{t.high:.2f})."
        )
    if verdict.resources:
        lines.append(
            "Compiler: " + ", ".join(f"{k} {v:g}" for k, v in sorted(verdict.resources.items())) + "."
        )
    if verdict.evidence:
        lines.append(trimmed(verdict.evidence))
    return "\n".join(lines)


def brief(verdict: Verdict | None) -> str:
    """One line, for lists of siblings."""
    if verdict is None:
        return "not judged yet"
    if verdict.timing and verdict.status.is_correct:
        return f"{verdict.timing.speedup:.2f}× stock"
    first = trimmed(verdict.evidence).splitlines()
    return verdict.status.value + (f": {first[0][:160]}" if first else "")


def trimmed(text: str) -> str:
    """Without folders of this machine; at most 24 lines and 2,000 characters."""
    lines = _PATH.sub("", text).splitlines()
    kept = lines[:_LINES]
    if len(lines) > _LINES:
        kept.append(f"… ({len(lines) - _LINES} more lines)")
    return "\n".join(kept)[:_CHARS]
