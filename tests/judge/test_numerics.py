"""Issue 4's table: template kernels of the usual row functions at every width and dtype, on every family of inputs.

``KERNELFORGE_WRITE_DOCS=1`` writes what was measured into docs/judge.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelforge_lab.judge.job import Job, Limits
from kernelforge_lab.judge.pool import JudgePool
from kernelforge_lab.judge.verdict import Status, Verdict
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.proposers.base import Ask
from kernelforge_lab.proposers.templates.proposer import TemplatesProposer

from .numerics import FUNCTIONS, SHORT, WIDTHS, row_region

DOCS = Path(__file__).parents[2] / "docs" / "judge.md"
BEGIN, END = "<!-- numerics: begin -->", "<!-- numerics: end -->"
LIMITS = Limits(call_s=10.0, compile_s=0.0)


@pytest.fixture(scope="module")
def pool() -> Iterator[JudgePool]:
    with JudgePool("cpu", threads=2) as pool:
        yield pool


@pytest.fixture(scope="module")
def table() -> Iterator[dict[tuple[str, str], list[float]]]:
    rows: dict[tuple[str, str], list[float]] = {}
    yield rows
    if os.environ.get("KERNELFORGE_WRITE_DOCS") and len(rows) == len(FUNCTIONS) * len(SHORT):
        text = DOCS.read_text()
        DOCS.write_text(
            re.sub(
                f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{as_markdown(rows)}\n{END}", text, flags=re.DOTALL
            )
        )


def as_markdown(rows: dict[tuple[str, str], list[float]]) -> str:
    head = "| function | dtype | " + " | ".join(map(str, WIDTHS)) + " |"
    lines = [head, "| --- | --- |" + " ---: |" * len(WIDTHS)]
    for (function, dtype), errors in rows.items():
        lines.append(f"| {function} | {dtype} | " + " | ".join(f"{error:.2f}" for error in errors) + " |")
    return "\n".join(lines)


def judged(pool: JudgePool, function: str, dtype: str, width: int) -> Verdict:
    region = row_region(function, width, dtype)
    templates = TemplatesProposer()
    strategy = templates.strategies(region, "cpu", None)[0]
    kernel = templates.propose(Ask(region, "cpu", strategy, None, None, (), threads=2))
    assert isinstance(kernel, Kernel)
    return pool.submit(Job(region, kernel, limits=LIMITS, timed=False)).result(timeout=120)


@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_template_is_accepted_at_every_width(
    pool: JudgePool, table: dict[tuple[str, str], list[float]], function: str, dtype: str
) -> None:
    """A region is judged only when every decoy is refused on it, so a verdict also says that."""
    errors = []
    for width in WIDTHS:
        verdict = judged(pool, function, dtype, width)
        assert verdict.status is Status.CORRECT, (width, verdict.evidence)
        families = {"recorded", "mean 1e4", "large", "tiny", "equal rows", "zeros", "one outlier"}
        families |= {"nan and inf", "masked rows"}
        tried = {name.removeprefix("values: ") for name in verdict.checks} | skipped(verdict)
        assert families <= tried
        errors.append(verdict.max_error or 0.0)
    table[function, dtype] = errors


def skipped(verdict: Verdict) -> set[str]:
    """Families on which eager itself is useless, named in the verdict."""
    return set(re.findall(r"inputs '([^']+)' not used", verdict.evidence))
