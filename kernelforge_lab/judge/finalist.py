"""Best-of-N bias: the best of many measurements is partly luck, so a winner is measured twice more.

Each time in a fresh process; both have to find it faster, and the lower of the two counts.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from .verdict import Status, Verdict

ROUNDS: Final = 2


def agree(first: Verdict, second: Verdict) -> Verdict:
    """The verdict of two fresh processes on one kernel."""
    if second.status is not Status.FASTER or first.timing is None or second.timing is None:
        evidence = (
            f"faster in one fresh process, but not in a second: {second.evidence or second.status.value}"
        )
        return dataclasses.replace(second, evidence=evidence)
    lower, higher = sorted(
        (first, second), key=lambda verdict: verdict.timing.speedup if verdict.timing else 0.0
    )
    assert lower.timing is not None and higher.timing is not None
    evidence = lower.evidence
    if higher.timing.low > lower.timing.high:
        spread = f"{lower.timing.speedup:.2f}× and {higher.timing.speedup:.2f}×"
        evidence = "; ".join(
            filter(None, (evidence, f"two fresh processes found {spread}; the lower counts"))
        )
    checks = {
        name: first.checks.get(name, 0) + second.checks.get(name, 0)
        for name in {**first.checks, **second.checks}
    }
    errors = {
        name: max(first.errors.get(name, 0.0), second.errors.get(name, 0.0))
        for name in {**first.errors, **second.errors}
    }
    worst = max(first.max_error or 0.0, second.max_error or 0.0)
    return dataclasses.replace(lower, evidence=evidence, checks=checks, errors=errors, max_error=worst)
