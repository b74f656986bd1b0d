"""Inputs, oracle, tolerance and decoys: what tells a right kernel from a wrong one (no kernel runs here)."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelforge_lab.judge import decoys
from kernelforge_lab.judge.arena import HostArena
from kernelforge_lab.judge.inputs import FAMILIES, family, full_stats, make_storages, nudged, view_storage
from kernelforge_lab.judge.layout import ARMED_PLACES, PAGE_BYTES, plan_layout, storage_bytes
from kernelforge_lab.judge.oracle import Oracle, check_error
from kernelforge_lab.judge.tolerance import bound, longest_sum, measure
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.kernels.spec import TensorSpec
from kernelforge_lab.kernels.stats import InputStats

from .numerics import FUNCTIONS, row_region
from .regions import TEXTS, region

BUDGET = 1 << 28


def inputs(
    target: Region, name: str, seed: int = 0, stats: tuple[InputStats, ...] = ()
) -> list[torch.Tensor]:
    made = make_storages(target, full_stats(target, stats), family(name), seed)
    return [view_storage(d, s) for d, s in zip(made, target.inputs, strict=True)]


@pytest.mark.parametrize("name", TEXTS)
def test_every_family_has_the_layout_of_the_region(name: str) -> None:
    for how in FAMILIES:
        for tensor, spec in zip(inputs(region(name), how.name), region(name).inputs, strict=True):
            assert tuple(tensor.shape) == spec.shape
            assert tuple(tensor.stride()) == spec.strides
            assert str(tensor.dtype) == f"torch.{spec.dtype}"
            if not how.special:
                assert bool(tensor.isfinite().all())


def test_seeds_are_reproducible_and_different() -> None:
    one, again, other = (inputs(region("add"), "recorded", seed)[0] for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_integers_stay_in_their_recorded_range() -> None:
    lookup = Region.parse(
        "region(in0: f32[50,8], in1: i64[300]) {\n"
        "  t0 = aten.embedding.default(in0, in1) : f32[300,8]\n  return t0\n}"
    )
    stats = (InputStats(), InputStats(low=3, high=41, mean=20, std=9))
    for how in FAMILIES:
        index = inputs(lookup, how.name, stats=stats)[1]
        assert 3 <= int(index.min()) <= int(index.max()) <= 41


def test_recorded_minus_infinities_of_a_mask_appear_again() -> None:
    stats = (InputStats(low=0, high=0, mean=0, std=0, zeros=0.5, inf=0.5),)
    mask = inputs(region("relu"), "recorded", stats=stats)[0]
    assert 0.3 < float((mask == -math.inf).float().mean()) < 0.7


def test_a_weight_recorded_as_ones_varies_in_the_varied_family() -> None:
    stats = (InputStats(), InputStats(1.0, 1.0, 1.0, 0.0))
    assert float(inputs(region("add"), "recorded", stats=stats)[1].std()) == 0
    assert float(inputs(region("add"), "varied", stats=stats)[1].std()) > 0.1


def test_a_variance_stays_positive() -> None:
    stats = (InputStats(), InputStats(low=0.5, high=2.0, mean=1.0, std=1.0))
    for name in ("recorded", "varied"):
        assert float(inputs(region("add"), name, stats=stats)[1].min()) >= 0


def test_changing_in_place_reaches_every_floating_input() -> None:
    target = region("rmsnorm")
    before = make_storages(target, full_stats(target, ()), family("varied"), 0)
    after = nudged(target, before)
    for old, new in zip(before, after, strict=True):
        assert not torch.equal(old, new)
        assert torch.equal(old[:16], new[:16])


def test_an_expanded_input_is_made_too() -> None:
    tensor = inputs(region("transposed_add"), "varied")[1]
    assert tensor.stride() == (0, 1)
    assert torch.equal(tensor[0], tensor[-1])


@given(
    st.lists(st.integers(0, 5), min_size=0, max_size=3),
    st.sampled_from(["float32", "bfloat16", "int64", "bool"]),
    st.integers(0, 3),
    st.integers(0, 5000),
)
@settings(max_examples=60, deadline=None)
def test_guards_surround_every_tensor(shape: list[int], dtype: str, offset: int, rotate: int) -> None:
    plain = TensorSpec.contiguous(tuple(shape), dtype)
    spec = TensorSpec(plain.shape, dtype, plain.strides, offset)
    target = Region((spec, TensorSpec.contiguous((3,))), (), ("in0",))
    layout = plan_layout(target, (("ws", "float32", 7),), rotate, 1 << 20)
    used: list[tuple[int, int]] = []
    for index, place in enumerate(layout.places):
        for slot in place.slots.values():
            assert slot.size == storage_bytes(slot.spec)
            assert slot.start % 64 == 0
            assert slot.band_low <= slot.start <= slot.start + slot.size <= slot.band_high <= layout.total
            used.append((slot.band_low, slot.band_high))
            if index < ARMED_PLACES:
                assert (slot.band_low - PAGE_BYTES, PAGE_BYTES) in place.closed
                assert (slot.band_high, PAGE_BYTES) in place.closed
            else:
                assert slot.band_high > slot.start + slot.size
                assert slot.band_low < slot.start
    used.sort()
    assert all(end <= start for (_, end), (start, _) in pairwise(used))
    assert len(layout.timed) >= 2


def test_a_fault_is_named_after_the_nearest_tensor() -> None:
    layout = plan_layout(region("add"), (), 0, 1 << 20)
    out = layout.places[0].slots["out0"]
    assert layout.locate(out.band_high) == ("output", "out0", out.band_high - out.start - out.size + 1)
    low = layout.places[1].slots["in1"]
    assert layout.locate(low.start - 4) == ("input", "in1", -4)
    assert layout.locate(low.start) == ("input", "in1", 0)
    assert layout.locate(layout.total + 10**7) is None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_eager_passes_and_every_decoy_is_refused(function: str, dtype: str) -> None:
    target = row_region(function, 255, dtype)
    oracle = Oracle(target, (), 0, BUDGET)
    assert decoys.undecided(oracle) == ""
    for name in oracle.full_names():
        case = oracle.case(name)
        given = [view_storage(d, s) for d, s in zip(case.storages, target.inputs, strict=True)]
        with torch.no_grad():
            out = oracle.eager(*given)
        if not case.skipped:
            fraction, error = check_error(case, 0, out[0])
            assert fraction <= 1, (name, error)


def test_a_wide_logsumexp_is_judged_by_wider_inputs() -> None:
    oracle = Oracle(row_region("logsumexp", 32768, "bfloat16"), (), 0, BUDGET)
    assert decoys.undecided(oracle) == ""


def test_a_decoy_that_is_right_everywhere_refuses_the_region() -> None:
    nothing = Region.parse("region(in0: i64[9]) {\n  t0 = aten.mul.Tensor(in0, 0) : i64[9]\n  return t0\n}")
    assert "zeros" in decoys.undecided(Oracle(nothing, (), 0, BUDGET))


def test_what_is_constant_but_for_nan_can_be_judged() -> None:
    """A kernel that writes zeros there is caught by the NaN it does not pass on."""
    nothing = Region.parse("region(in0: f32[9]) {\n  t0 = aten.mul.Tensor(in0, 0) : f32[9]\n  return t0\n}")
    assert decoys.undecided(Oracle(nothing, (), 0, BUDGET)) == ""


def test_a_copy_is_a_region_too() -> None:
    clone = Region.parse("region(in0: f32[9,5]) {\n  t0 = aten.clone.default(in0) : f32[9,5]\n  return t0\n}")
    assert decoys.undecided(Oracle(clone, (), 0, BUDGET)) == ""


@pytest.mark.parametrize(
    "text",
    [
        "region() {\n  t0 = aten.arange.default(1, device=device:cpu) : i64[1]\n  return t0\n}",
        "region(in0: f32[9]) {\n  t0 = aten.zeros_like.default(in0) : f32[9]\n  return t0\n}",
    ],
    ids=["no_input", "no_value_of_an_input"],
)
def test_zeros_are_right_where_no_input_decides(text: str) -> None:
    assert decoys.undecided(Oracle(Region.parse(text), (), 0, BUDGET)) == ""


def test_an_exponential_beyond_its_dtype_is_judged() -> None:
    text = "region(in0: f32[64]) {\n  t0 = aten.exp.default(in0) : f32[64]\n  return t0\n}"
    steep = (InputStats(low=0, high=700, mean=400, std=150),)
    assert decoys.undecided(Oracle(Region.parse(text), steep, 0, BUDGET)) == ""


def test_zeros_do_not_pass_a_softmax_over_many_classes() -> None:
    oracle = Oracle(region("softmax"), (), 0, BUDGET)
    case = oracle.case("recorded")
    fraction, error = check_error(case, 0, torch.zeros(4, 32768))
    assert fraction > 1e4
    assert error.l2 == pytest.approx(1.0)


def test_masks_of_nan_and_inf_are_compared_exactly() -> None:
    want = torch.tensor([1.0, math.nan, math.inf, -math.inf], dtype=torch.float64)
    assert measure(want.float(), want, 1.0).mask_at == -1
    for place, wrong in ((0, math.nan), (1, 0.0), (2, -math.inf), (3, math.nan)):
        got = want.float().clone()
        got[place] = wrong
        assert measure(got, want, 1.0).mask_at == place


def test_an_overflow_of_the_dtype_may_follow_eager_or_the_oracle() -> None:
    want = torch.tensor([1e5, 2.0], dtype=torch.float64)
    eager = torch.tensor([math.inf, 2.0], dtype=torch.float16)
    assert measure(eager, want, 2.0, eager).mask_at == -1
    mid = torch.tensor([60000.0, 2.0], dtype=torch.float64)
    assert measure(mid.half(), mid, 2.0, eager).mask_at == -1
    assert measure(torch.tensor([-math.inf, 2.0], dtype=torch.float16), want, 2.0, eager).mask_at == 0


@given(st.floats(1e-6, 1e6), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_errors_do_not_depend_on_the_scale_of_the_data(scale: float, seed: int) -> None:
    want = torch.randn(500, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    noise = torch.randn(500, dtype=torch.float64, generator=torch.Generator().manual_seed(seed + 1)) * 1e-4
    rms = float(want.square().mean().sqrt())
    plain = measure(want + noise, want, rms)
    scaled = measure((want + noise) * scale, want * scale, rms * scale)
    assert scaled.l2 == pytest.approx(plain.l2, rel=1e-6)
    assert scaled.worst == pytest.approx(plain.worst, rel=1e-6)
    assert scaled.at == plain.at


def test_the_bound_follows_eagers_error_and_never_falls_below_the_dtypes() -> None:
    exact, rough = measure(torch.ones(3), torch.ones(3, dtype=torch.float64), 1.0), None
    rough = measure(torch.full((3,), 1.01), torch.ones(3, dtype=torch.float64), 1.0)
    tight = bound("float32", exact, [], 1, 1.0)
    assert 0 < tight.worst < 1e-5
    assert bound("float32", rough, [], 1, 1.0).worst == pytest.approx(0.02, rel=1e-3)
    assert bound("bfloat16", exact, [], 1, 1.0).worst < 2 * 2**-7


@pytest.mark.parametrize(
    "function,length", [("softmax", 255), ("layer_norm", 255), ("rms_norm", 255), ("sum", 255), ("gelu", 1)]
)
def test_the_longest_sum_is_known(function: str, length: int) -> None:
    assert longest_sum(row_region(function, 255)) == length


def test_integer_results_are_exact_except_where_eager_and_oracle_disagree() -> None:
    oracle = Oracle(region("argmax"), (), 0, BUDGET)
    case = oracle.case("recorded")
    right = case.expected[0].clone()
    assert check_error(case, 0, right)[0] == 0
    right[3] += 1
    fraction, error = check_error(case, 0, right)
    assert fraction == math.inf
    assert error.at == 3


@pytest.mark.parametrize("name", ["add", "transposed_add", "half_sum"])
def test_a_place_gives_the_data_that_was_written_to_it(name: str) -> None:
    """Stock is timed on these tensors: each place has its own memory, as the kernel's has."""
    target = region(name)
    arena = HostArena(plan_layout(target, (), 1 << 20, 1 << 22))
    seen = set()
    for seed, place in enumerate(arena.layout.places):
        storages = make_storages(target, full_stats(target, ()), family("recorded"), seed)
        arena.write_inputs(place, storages)
        for slot, data in zip(place.of_kind("input"), storages, strict=True):
            tensor = arena.tensor(slot)
            assert torch.equal(tensor, view_storage(data, slot.spec))
            assert tensor.data_ptr() == arena.bytes.data_ptr() + slot.pointer
            seen.add(tensor.data_ptr())
    assert len(seen) == len(arena.layout.places) * len(target.inputs)
    arena.close()
