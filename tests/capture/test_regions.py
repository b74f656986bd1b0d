"""What belongs into a region, and what does not."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernelforge_lab.kernels.region import Region

from .helpers import op_names, outside, split, stock, texts

X = torch.randn(4, 8)
W = torch.randn(8, 8)


def test_everything_between_two_heavy_operators_is_one_region() -> None:
    def residual_norm(x: torch.Tensor, w: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        y = x + x @ w
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6) * gain
        return y @ w

    graph = split(residual_norm, X, W, torch.randn(8))
    assert op_names(graph) == [["add", "pow", "mean", "add", "rsqrt", "mul", "mul"]]
    assert outside(graph) == ["mm", "mm"]


def test_the_text_says_all_there_is() -> None:
    graph = split(lambda x, w: F.silu(x @ w) * 2, X, W)
    (text,) = texts(graph)
    assert text == (
        "region(in0: f32[4,8]) {\n"
        "  t0 = aten.silu.default(in0) : f32[4,8]\n"
        "  t1 = aten.mul.Tensor(t0, 2) : f32[4,8]\n"
        "  return t1\n"
        "}"
    )


def test_independent_branches_are_not_merged_sideways() -> None:
    graph = split(lambda x, w: (F.silu(x @ w), F.silu((x + 0) @ w.t())), X, W)
    assert op_names(graph) == [["silu"], ["add"], ["silu"]]


def test_a_heavy_operator_ends_a_region_even_on_a_skip_connection() -> None:
    graph = split(lambda x, w: x.relu() + x.relu().neg() @ w, X, W)
    assert op_names(graph) == [["relu", "neg"], ["add"]]


def test_views_strictly_between_members_are_inside() -> None:
    graph = split(lambda x: x.exp().view(8, 4).transpose(0, 1).neg(), X)
    assert op_names(graph) == [["exp", "view", "transpose", "neg"]]
    assert outside(graph) == []


def test_leading_and_trailing_views_are_outside() -> None:
    graph = split(lambda x: x.transpose(0, 1).exp().unsqueeze(0).squeeze(0) @ x, X)
    assert op_names(graph) == [["exp"]]
    assert outside(graph) == ["transpose", "unsqueeze", "squeeze", "mm"]


def test_a_view_that_is_also_read_outside_is_made_twice() -> None:
    def both(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        turned = x.exp().transpose(0, 1)
        return turned.neg(), w @ turned

    graph = split(both, X, W)
    assert op_names(graph) == [["exp", "transpose", "neg"]]
    assert outside(graph) == ["transpose", "mm"]
    assert [spec.is_contiguous for spec in graph.steps[0].region.outputs] == [True, False]  # type: ignore[union-attr]


def test_parameter_only_work_sinks_into_every_reader() -> None:
    def layers(x: torch.Tensor, w: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        gain = gain.double().float() + 1
        x = (x * gain) @ w
        return (x * gain) @ w

    x, w, gain = X, W, torch.randn(8)
    assert op_names(split(layers, x, w, gain, static=(1, 2))) == [["_to_copy", "_to_copy", "add", "mul"]] * 2
    assert op_names(split(layers, x, w, gain)) == [["_to_copy", "_to_copy", "add", "mul"], ["mul"]]


def test_a_cast_weight_that_a_heavy_operator_reads_is_a_region_of_its_own() -> None:
    graph = split(lambda x, w: x @ w.float(), X, W.double(), static=(1,))
    assert op_names(graph) == [["_to_copy"]]


def test_constants_are_made_again_by_every_reader() -> None:
    def two(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        position = torch.arange(8)
        return ((x + position) @ w) * position

    assert op_names(split(two, X, W)) == [["arange", "add"], ["arange", "mul"]]


def test_overlapping_views_become_one_input() -> None:
    """RoPE reads q and both halves of q: three inputs would count its bytes twice."""

    def rope(x: torch.Tensor, w: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        q = x @ w
        return q * cos + torch.cat([-q[:, 4:], q[:, :4]], -1) * sin

    (text,) = texts(split(rope, X, W, torch.randn(4, 8), torch.randn(4, 8)))
    assert Region.parse(text).inputs == Region.parse(text).inputs[:1] * 3
    assert text.count("aten.slice.Tensor") == 2


def test_views_that_share_nothing_stay_outside() -> None:
    def swiglu(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        hidden = x @ w
        return F.silu(hidden[:, :4]) * hidden[:, 4:]

    graph = split(swiglu, X, W)
    assert op_names(graph) == [["silu", "mul"]]
    assert [str(s) for s in Region.parse(texts(graph)[0]).inputs] == ["f32[4,4;8,1]", "f32[4,4;8,1@4]"]


def test_results_nobody_reads_have_no_spec() -> None:
    (text,) = texts(split(lambda x: F.layer_norm(x, (8,)).relu(), X))
    assert "aten.native_layer_norm.default(in0, [8], None, None, 1e-05) : (f32[4,8], _, _)" in text


def test_a_result_read_outside_only_is_still_returned() -> None:
    (text,) = texts(split(lambda x: torch.var_mean(x, -1), X))
    assert "return t0.0, t0.1" in text


def test_random_operators_are_never_inside_and_keep_their_order() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        a = torch.rand_like(x) * x
        b = torch.rand_like(a + 1)
        return a.relu() + b

    graph = split(noisy, X)
    assert outside(graph) == ["rand_like", "rand_like"]
    torch.manual_seed(3)
    expected = noisy(X)
    torch.manual_seed(3)
    assert torch.equal(stock(graph)([X])[0], expected)


def test_unsupported_dtypes_stay_on_pytorch_with_the_reason() -> None:
    graph = split(lambda x: (x * 2).abs(), torch.randn(4, dtype=torch.complex64))
    assert texts(graph) == []
    assert ("aten.mul.Tensor", "dtype complex64") in graph.kept


def test_equal_layers_are_one_region() -> None:
    def deep(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for _ in range(5):
            x = F.gelu(x @ w) + 1
        return x

    graph = split(deep, X, W)
    assert len(texts(graph)) == 5 and len(graph.regions) == 1


def test_storage_offset_and_strides_of_size_one_do_not_tell_regions_apart() -> None:
    whole = torch.randn(2, 64, 16)
    first = split(lambda x: x.exp(), whole[0:1])
    second = split(lambda x: x.exp(), whole[1:2])
    assert texts(first) == texts(second) == texts(split(lambda x: x.exp(), torch.randn(1, 64, 16)))


def test_equal_calls_are_computed_once_but_two_outputs_stay_two() -> None:
    graph = split(lambda x, w: (x.exp(), x.exp(), x.sin() @ w, x.sin() @ w.t()), X, W)
    assert sorted(op_names(graph)) == [["exp"], ["exp"], ["sin"]]
    one, two, *_ = stock(graph)([X, W])
    assert one.data_ptr() != two.data_ptr()


def test_level_op_makes_every_call_its_own_region() -> None:
    graph = split(lambda x, w: F.silu(x @ w).t() * 2, X, W, level="op")
    assert op_names(graph) == [["mm"], ["silu"], ["mul"]]
    assert outside(graph) == ["t"]
