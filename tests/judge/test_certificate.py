"""What a finalist has to show, and what its certificate says and for whom it holds."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelforge_lab import targets
from kernelforge_lab.judge import certificate as certificates
from kernelforge_lab.judge.certificate import Certificate, certificate_of
from kernelforge_lab.judge.finalist import agree
from kernelforge_lab.judge.job import Job, Limits
from kernelforge_lab.judge.pool import JudgePool
from kernelforge_lab.judge.verdict import Status, Timing, Verdict
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.kernels.stats import InputStats

# Eager makes a sweep over memory for each step and the kernel one for all: a win on any machine, however busy.
STEPS = 40
SHAPE = "f32[256,1024]"
REGION = Region.parse(
    f"region(in0: {SHAPE}, in1: f32[1024]) {{\n"
    + "".join(
        f"  t{i} = aten.{'mul' if i % 2 else 'add'}.Tensor({f't{i - 1}' if i else 'in0'}, in1) : {SHAPE}\n"
        for i in range(STEPS)
    )
    + f"  return t{STEPS - 1}\n}}"
)
SOURCE = f"""// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* g, float* y) {{
#pragma omp parallel for
  for (long r = 0; r < ROWS; r++)
#pragma omp simd
    for (long c = 0; c < COLS; c++) {{
      float a = x[r * COLS + c];
      for (int i = 0; i < {STEPS // 2}; i++) a = (a + g[c]) * g[c];
      y[r * COLS + c] = a;
    }}
}}
"""
KERNEL = Kernel(SOURCE, REGION.hash, "cpu")
STATS = (InputStats(-3.0, 3.0), InputStats(0.5, 1.5, 1.0, 0.2))
# Wide intervals are enough here and soon reached.
LIMITS = Limits(call_s=10.0, time_s=0.3, finalist_time_s=6.0, half_width=0.3, compile_s=0.0)


@pytest.fixture(scope="module")
def verdict() -> Iterator[Verdict]:
    with JudgePool("cpu", threads=2) as pool:
        yield pool.submit(Job(REGION, KERNEL, STATS, seed=3, finalist=True, limits=LIMITS)).result(
            timeout=120
        )


def test_a_finalist_gets_a_certificate_of_two_fresh_processes(verdict: Verdict) -> None:
    paper = certificate_of(verdict)
    assert paper is not None
    assert (paper.region, paper.kernel, paper.target) == (REGION.hash, KERNEL.hash, "cpu")
    assert len(paper.source) == 64
    assert paper.device == targets.get("cpu", threads=2).device().name
    assert set(paper.versions) == {"torch", "compiler"}
    assert len(paper.timings) == 2
    assert all(t["low"] <= t["speedup"] <= t["high"] for t in paper.timings)
    assert min(t["speedup"] for t in paper.timings) == verdict.timing.speedup if verdict.timing else False
    assert sum(paper.checks.values()) == verdict.check_count > 50
    assert {"recorded", "one outlier", "tiny"} <= set(paper.errors)
    assert max(paper.errors.values()) == verdict.max_error
    assert len(paper.seeds) >= 2
    assert paper.stats == STATS
    assert paper.stocks_us["eager"] > 0
    assert paper.issued_at > 1.7e9


def test_a_certificate_survives_json_and_names_no_path(verdict: Verdict) -> None:
    text = json.dumps(verdict.as_json())
    again = Verdict.from_json(json.loads(text))
    paper = certificate_of(again)
    assert paper is not None
    assert json.loads(json.dumps(paper.as_json())) == json.loads(json.dumps(verdict.certificate))
    assert os.sep + "usr" not in json.dumps(verdict.certificate)
    assert str(Path.home()) not in json.dumps(verdict.certificate)


def issued(kernel: Kernel = KERNEL) -> Certificate:
    target = targets.get("cpu", threads=2)
    return Certificate.issue(REGION, kernel, target.build(kernel, REGION), target.device())


def objection(paper: Certificate, kernel: Kernel = KERNEL, region: Region = REGION) -> str:
    target = targets.get("cpu", threads=2)
    return paper.objection(region, kernel, target.build(KERNEL, REGION), target.device())


def test_it_holds_for_the_same_kernel_here() -> None:
    assert objection(issued()) == ""


@pytest.mark.parametrize(
    "change,why",
    [
        ({"region": "0" * 12}, "region"),
        ({"kernel": "0" * 12}, "kernel"),
        ({"fingerprint": "other", "device": "Another CPU"}, "Another CPU"),
        ({"versions": {"torch": "1.0", "compiler": "g++ 4"}}, "torch"),
        ({"versions": {}}, "unknown"),
        ({"binary": "0" * 16}, "machine code"),
    ],
)
def test_elsewhere_it_says_nothing_and_says_why(change: dict[str, object], why: str) -> None:
    assert why in objection(dataclasses.replace(issued(), **change))  # type: ignore[arg-type]


def test_another_source_or_parameter_is_another_kernel() -> None:
    assert "kernel" in objection(issued(), kernel=dataclasses.replace(KERNEL, source=SOURCE + "// more"))


def test_a_new_compiler_asks_for_another_judgement(monkeypatch: pytest.MonkeyPatch) -> None:
    paper = issued()
    monkeypatch.setattr(certificates, "versions", lambda target: {**paper.versions, "compiler": "g++ 99"})
    assert "g++ 99" in objection(paper)


def test_what_is_no_certificate_is_none() -> None:
    assert certificate_of(None) is None
    assert certificate_of(Verdict(Status.FASTER)) is None
    assert certificate_of(Verdict(Status.FASTER, certificate={"format": 1, "beer": 2})) is None
    old = {**issued().as_json(), "format": 99}
    assert certificate_of(Verdict(Status.FASTER, certificate=old)) is None


def test_a_certificate_adds_up_what_the_processes_checked() -> None:
    target = targets.get("cpu", threads=2)
    built, device = target.build(KERNEL, REGION), target.device()
    paper = Certificate.issue(
        REGION, KERNEL, built, device, verdicts=[faster(1.5), faster(1.4)], seeds=[1, 2]
    )
    assert paper.checks == {"repeats": 6}
    assert paper.errors == {"tiny": 0.1}
    assert [t["speedup"] for t in paper.timings] == [1.5, 1.4]


def faster(speedup: float, spread: float = 0.01) -> Verdict:
    timing = Timing(10.0, "eager", 10.0 * speedup, speedup, speedup - spread, speedup + spread, 40)
    return Verdict(Status.FASTER, checks={"repeats": 3}, max_error=0.1, errors={"tiny": 0.1}, timing=timing)


def test_of_two_fresh_processes_the_lower_counts() -> None:
    both = agree(faster(1.50), faster(1.20))
    assert both.timing is not None
    assert both.timing.speedup == 1.20
    assert "1.20× and 1.50×" in both.evidence
    assert both.checks == {"repeats": 6}
    assert agree(faster(1.20), faster(1.205)).evidence == ""


def test_a_win_that_does_not_repeat_is_none() -> None:
    again = Verdict(Status.SLOWER, "a tie with eager")
    both = agree(faster(1.50), again)
    assert both.status is Status.SLOWER
    assert "not in a second" in both.evidence
    assert "a tie" in both.evidence
