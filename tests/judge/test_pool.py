"""The pool from the person's side: futures, dying workers, secrets, time limits."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelforge_lab.exc import WorkerDied
from kernelforge_lab.judge.candidate import RunnerProcess
from kernelforge_lab.judge.job import Job, Limits
from kernelforge_lab.judge.pool import JudgePool
from kernelforge_lab.judge.verdict import Status, Verdict
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region

from .regions import region

LIMITS = Limits(call_s=1.0, time_s=0.1, finalist_time_s=0.2, compile_s=0.0)
FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def pool() -> Iterator[JudgePool]:
    with JudgePool("cpu", threads=2) as pool:
        yield pool


def kernel(path: str, name: str = "add", extra: str = "") -> Kernel:
    return Kernel((FOLDER / path).read_text() + extra, region(name).hash, "cpu")


def judge(pool: JudgePool, path: str, **options: object) -> Verdict:
    task = Job(region("add"), kernel(path), limits=LIMITS, **options)  # type: ignore[arg-type]
    return pool.submit(task).result(timeout=60)


def test_a_good_kernel_is_judged_right_after_one_that_crashed(pool: JudgePool) -> None:
    assert judge(pool, "bad_kernels/null_pointer.cpp").status is Status.CRASHED
    assert judge(pool, "good_kernels/plain_add.cpp").status.is_correct


def test_a_hang_is_ended_within_two_seconds_of_its_limit(pool: JudgePool) -> None:
    verdict = judge(pool, "bad_kernels/infinite_loop.cpp")
    assert verdict.status is Status.TIMEOUT
    # The compiler's time is not the hang's.
    assert verdict.seconds < LIMITS.call_s + 2.0 + 5.0
    assert "1.0 s" in verdict.evidence


def test_the_same_machine_code_twice_is_a_duplicate(pool: JudgePool) -> None:
    assert judge(pool, "good_kernels/output_written_twice.cpp").status.is_correct
    twin = kernel("good_kernels/output_written_twice.cpp", extra="// another comment\n")
    verdict = pool.submit(Job(region("add"), twin, limits=LIMITS)).result(timeout=60)
    assert verdict.status is Status.DUPLICATE
    assert "same machine code" in verdict.evidence


def test_a_finalist_is_judged_again_on_other_seeds(pool: JudgePool) -> None:
    first = judge(pool, "good_kernels/plain_add.cpp")
    last = judge(pool, "good_kernels/plain_add.cpp", finalist=True)
    assert first.status.is_correct
    assert last.status.is_correct
    assert last.max_error != first.max_error


def test_a_quick_job_times_first_and_proves_the_rest_only_for_winners(pool: JudgePool) -> None:
    verdict = judge(pool, "good_kernels/output_written_twice.cpp", quick=True)
    assert verdict.status.is_correct
    if verdict.status is Status.FASTER:
        assert "values: one outlier" in verdict.checks
    assert "values: recorded" in verdict.checks


def test_every_check_is_counted(pool: JudgePool) -> None:
    verdict = judge(pool, "good_kernels/plain_add.cpp")
    assert verdict.check_count > 20
    assert {"all written", "guard bands", "inputs unchanged", "repeats", "timed outputs"} <= set(
        verdict.checks
    )


def test_stock_is_measured_with_its_noise(pool: JudgePool) -> None:
    stock = pool.prepare(region("relu"), limits=LIMITS).result(timeout=60)
    assert set(stock.times_us) == {"eager"}
    assert stock.best == "eager"
    assert stock.best_us > 0
    assert stock.reason == "torch.compile was not asked for"


def test_compiled_stock_has_generated_kernels() -> None:
    with JudgePool("cpu", threads=2) as pool:
        stock = pool.prepare(region("rmsnorm"), limits=Limits(compile_s=100.0)).result(timeout=200)
    assert "compiled" in stock.times_us, stock.reason
    assert stock.compiled_kernels > 0


@pytest.mark.parametrize(
    "text,why",
    [
        ("region(in0: f32[0,4]) {\n  t0 = aten.relu.default(in0) : f32[0,4]\n  return t0\n}", "empty"),
        ("region(in0: i64[3]) {\n  t0 = aten.mul.Tensor(in0, 0) : i64[3]\n  return t0\n}", "zeros"),
        ("region(in0: f32[3,4]) {\n  t0 = aten.relu.default(in0) : f32[4,3]\n  return t0\n}", "in eager"),
    ],
)
def test_a_region_that_cannot_be_judged_is_refused_with_the_reason(
    pool: JudgePool, text: str, why: str
) -> None:
    odd = Region.parse(text)
    assert why in pool.prepare(odd, limits=LIMITS).result(timeout=60).refused
    source = "// forge: target cpu\n// forge: launch k args=(out0)\nvoid k(OUT0_T* y) {}\n"
    verdict = pool.submit(Job(odd, Kernel(source, odd.hash, "cpu"), limits=LIMITS)).result(timeout=60)
    assert verdict.status is Status.UNVERIFIED
    assert why in verdict.evidence


def test_too_big_a_region_is_refused_before_memory_is_taken(pool: JudgePool) -> None:
    huge = Region.parse(
        "region(in0: f32[100000,100000]) {\n  t0 = aten.relu.default(in0) : f32[100000,100000]\n  return t0\n}"
    )
    assert "GiB" in pool.prepare(huge, limits=LIMITS).result(timeout=60).refused


def test_a_dead_worker_is_replaced_and_the_job_done_again() -> None:
    with JudgePool("cpu", threads=2) as pool:
        assert judge(pool, "good_kernels/plain_add.cpp").status.is_correct
        os.kill(pool._worker._process.pid, 9)
        assert judge(pool, "good_kernels/plain_add.cpp").status.is_correct


def test_closing_answers_everybody_and_leaves_no_process() -> None:
    pool = JudgePool("cpu", threads=2)
    futures = [
        pool.submit(Job(region("add"), kernel("bad_kernels/infinite_loop.cpp", extra=f"// {i}\n")))
        for i in range(3)
    ]
    time.sleep(0.2)
    pid = pool._worker._process.pid
    pool.close()
    for future in futures:
        assert future.cancelled() or isinstance(future.exception(timeout=10), WorkerDied)
    assert not Path(f"/proc/{pid}").exists()
    with pytest.raises(WorkerDied):
        pool.submit(Job(region("add"), kernel("good_kernels/plain_add.cpp"))).result(timeout=10)


def test_nothing_of_the_persons_environment_reaches_a_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("MY_TOKEN", "hush")
    runner = RunnerProcess(2)
    try:
        runner.wait_ready()
        proc = Path(f"/proc/{runner.process.pid}")
        environment = dict(
            item.split("=", 1) for item in proc.joinpath("environ").read_text().split("\0") if item
        )
        allowed = {"PATH", "LC_ALL", "LC_CTYPE", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_DYNAMIC"}
        assert set(environment) <= allowed | {"GOMP_SPINCOUNT", "KMP_BLOCKTIME"}
        assert not any((proc / "cwd").readlink().iterdir())
        assert "torch" not in proc.joinpath("maps").read_text().replace("torch.libs", "").replace(
            "torch/lib/", ""
        )
    finally:
        runner.kill()


def test_nothing_secret_reaches_the_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("HF_TOKEN", "hush")
    with JudgePool("cpu", threads=2) as pool:
        text = Path(f"/proc/{pool._worker._process.pid}/environ").read_text()
    assert "secret" not in text
    assert "hush" not in text


def test_verdicts_survive_json(pool: JudgePool) -> None:
    verdict = judge(pool, "good_kernels/plain_add.cpp")
    assert Verdict.from_json(json.loads(json.dumps(verdict.as_json()))) == verdict


def test_starting_a_pool_imports_no_torch_here() -> None:
    import subprocess

    code = (
        "import sys\nfrom kernelforge_lab.judge.pool import JudgePool\n"
        "p = JudgePool('cpu')\np.close()\nassert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_kernel_may_be_proven_without_being_timed(pool: JudgePool) -> None:
    verdict = judge(pool, "good_kernels/plain_add.cpp", timed=False)
    assert verdict.status is Status.CORRECT
    assert verdict.status.is_correct
    assert verdict.timing is None
    assert {"recorded", "large", "one outlier", "zeros"} <= set(verdict.errors)
    assert verdict.max_error == max(verdict.errors.values())


# Integers, so that adding the difference of a number and itself changes nothing: a right kernel need not read
# the 32 MB that the region's graph reads. The judge cannot know; a time below the limit is not believed.
UNREAD = Region.parse(
    "region(in0: i64[4194304], in1: i64[8]) {\n"
    "  t0 = aten.sub.Tensor(in0, in0) : i64[4194304]\n"
    "  t1 = aten.sum.default(t0) : i64[]\n"
    "  t2 = aten.add.Tensor(in1, t1) : i64[8]\n"
    "  return t2\n}"
)


def test_faster_than_the_memory_is_impossible(pool: JudgePool) -> None:
    source = (
        "// forge: target cpu\n// forge: launch k args=(in1, out0)\n"
        "void k(const int64_t* x, int64_t* y) { for (long i = 0; i < NUMEL; i++) y[i] = x[i]; }\n"
    )
    task = Job(UNREAD, Kernel(source, UNREAD.hash, "cpu"), limits=LIMITS)
    verdict = pool.submit(task).result(timeout=120)
    assert verdict.status is Status.IMPOSSIBLE, verdict.evidence
    assert "merely reading the inputs" in verdict.evidence


def launched(arguments: str, extra: str = "") -> Kernel:
    source = (
        f"// forge: target cpu\n// forge: tune SHIFT 0 1\n{extra}// forge: launch k args=({arguments})\n"
        "void k(const float* x, const float* w, float* y, long shift) {\n"
        "  for (long j = 0; j < NUMEL; j++) y[j] = x[j] + w[(j + shift * COLS) % COLS];\n}\n"
    )
    return Kernel(source, region("add").hash, "cpu")


def test_other_arguments_or_scratch_memory_make_another_kernel(pool: JudgePool) -> None:
    """The function's code is the same; what it is called with is not."""
    kernels = [
        launched("in0, in1, out0, 3"),
        launched("in0, in1, out0, 4"),
        launched("in0, in1, out0, 3", "// forge: workspace spare float32 8\n"),
        launched("in0, in1, out0, 3", "// forge: workspace spare float32 16\n"),
        launched("in0, in1, out0, SHIFT+5"),
        launched("in0, in1, out0, SHIFT+5").tuned(SHIFT=1),
    ]
    for each in kernels:
        verdict = pool.submit(Job(region("add"), each, limits=LIMITS, timed=False)).result(timeout=60)
        assert verdict.status is Status.CORRECT, verdict.evidence
    again = launched("in0, in1, out0, 1+2")
    verdict = pool.submit(Job(region("add"), again, limits=LIMITS, timed=False)).result(timeout=60)
    assert verdict.status is Status.DUPLICATE
