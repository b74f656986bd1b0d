"""The guard: proves itself on live data first, then serves; whatever does not fit is stock, and counted."""

from __future__ import annotations

import threading

import pytest
import torch

from kernelforge_lab.deploy.counts import Counts
from kernelforge_lab.deploy.guard import Guard, wants_aligned
from kernelforge_lab.exc import GuardError

from .helpers import REGION, FakeLaunch, inputs, model


def guard(launch: FakeLaunch | None = None, **options: bool | int) -> tuple[Guard, Counts]:
    counts = Counts()
    return Guard(REGION, launch or FakeLaunch(), counts, **options), counts  # type: ignore[arg-type]


def test_the_first_calls_run_in_shadow_and_return_eagers_answer() -> None:
    guarded, counts = guard(FakeLaunch(1 + 1e-7))
    x, gain = inputs()
    for _ in range(2):
        assert not guarded.is_live
        assert torch.equal(guarded.call(x, gain)[0], model(x, gain))
    assert guarded.is_live
    guarded.call(x, gain)
    assert counts.hits == 1 and counts.fallbacks == {"shadow check": 2}


def test_a_live_kernel_gets_fresh_outputs_of_the_regions_layout() -> None:
    guarded, counts = guard(shadow=0)
    x, gain = inputs()
    (one,), (two,) = guarded.call(x, gain), guarded.call(x, gain)
    assert one.data_ptr() != two.data_ptr() and one.shape == (64, 256) and one.is_contiguous()
    torch.testing.assert_close(one, model(x, gain))
    assert counts.hits == 2 and counts.fallbacks == {}


@pytest.mark.parametrize("factor", [1.001, 0.0, float("nan")])
def test_a_kernel_that_disagrees_is_off_for_good(factor: float) -> None:
    launch = FakeLaunch(factor)
    guarded, counts = guard(launch)
    x, gain = inputs()
    for _ in range(4):
        assert torch.equal(guarded.call(x, gain)[0], model(x, gain))
    assert launch.calls == 1 and counts.hits == 0
    ((reason, count),) = counts.fallbacks.items()
    assert reason.startswith("shadow mismatch") and count == 4


def test_the_bound_is_relative_to_the_data() -> None:
    """Outputs of 1e-20 would pass any absolute tolerance."""
    guarded, counts = guard(FakeLaunch(1.01))
    x, gain = inputs()
    guarded.call(x, gain * 1e-20)
    assert any(reason.startswith("shadow mismatch") for reason in counts.fallbacks)


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda x, g: (x.double(), g.double()), "dtype"),
        (lambda x, g: (x[:32], g), "shape"),
        (lambda x, g: (x.t().contiguous().t(), g), "strides"),
    ],
)
def test_what_does_not_fit_runs_stock_and_is_counted(change: object, reason: str) -> None:
    guarded, counts = guard(shadow=0)
    changed = change(*inputs())  # type: ignore[operator]
    assert torch.equal(guarded.call(*changed)[0], model(*changed))
    assert counts.hits == 0 and counts.fallbacks == {reason: 1}
    strict, _ = guard(shadow=0, strict=True)
    with pytest.raises(GuardError, match=reason):
        strict.call(*changed)


def test_strides_of_size_one_dimensions_are_no_reason() -> None:
    from kernelforge_lab.kernels.region import Region

    region = Region.parse(
        "region(in0: f32[1,64,256], in1: f32[256]) {\n"
        "  t0 = aten.mul.Tensor(in0, in1) : f32[1,64,256]\n"
        "  t1 = aten.silu.default(t0) : f32[1,64,256]\n  return t1\n}"
    )
    counts = Counts()
    guarded = Guard(region, FakeLaunch(), counts, shadow=0)
    x, gain = inputs()
    guarded.call(x.as_strided((1, 64, 256), (7, 256, 1)), gain)
    assert counts.hits == 1 and counts.fallbacks == {}


def test_alignment_is_checked_only_for_kernels_that_speak_of_it() -> None:
    x, gain = torch.randn(NUMEL_PLUS_ONE)[1:].view(64, 256), torch.randn(256)
    for aligned, expected in ((True, {"alignment": 1}), (False, {})):
        guarded, counts = guard(shadow=0, aligned=aligned)
        torch.testing.assert_close(guarded.call(x, gain)[0], model(x, gain))
        assert counts.fallbacks == expected
    assert wants_aligned("v = _mm256_load_ps(p);") and wants_aligned("#pragma omp simd aligned(p)")
    assert not wants_aligned("v = _mm256_loadu_ps(p);")


NUMEL_PLUS_ONE = 64 * 256 + 1


def test_a_kernel_that_raises_costs_nobody_their_result() -> None:
    for shadow in (0, 2):
        launch = FakeLaunch(error=OSError("gone"))
        guarded, counts = guard(launch, shadow=shadow)
        x, gain = inputs()
        for _ in range(3):
            assert torch.equal(guarded.call(x, gain)[0], model(x, gain))
        assert launch.calls == 1 and counts.fallbacks == {"kernel raised OSError": 3}


def test_threads_share_a_guard() -> None:
    guarded, counts = guard(exclusive=True)
    x, gain = inputs()
    expected = model(x, gain)
    right: list[bool] = []

    def work() -> None:
        right.extend(torch.allclose(guarded.call(x, gain)[0], expected) for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 200
    assert counts.hits + sum(counts.fallbacks.values()) == 200
    assert counts.fallbacks == {"shadow check": 2}
