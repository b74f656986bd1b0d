"""``capture``: what it finds, what it says about the rest, and that it leaves no trace."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kernelforge_lab.capture import Workload, capture
from kernelforge_lab.exc import CaptureError


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.norm = nn.Linear(16, 16), nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.up(self.norm(F.gelu(self.up(x)))))


X = torch.randn(8, 16)


@pytest.fixture(scope="module")
def block() -> Workload:
    return capture(Block().eval(), (X,))


def test_regions_have_counts_times_shares_and_limits(block: Workload) -> None:
    assert block.title == "Block" and block.level == "region" and block.target == "cpu"
    assert {r.region.title: r.count for r in block.regions} == {"gelu·native_layer_norm": 1, "gelu": 1}
    for item in block.regions:
        assert item.eligible and item.time_us > 0 and 0 < item.share < 1
        assert item.floor_us > 0 and item.ceiling >= 1
        assert len(item.stats) == len(item.region.inputs)
    assert block.step_ms > 0 and 0 < block.busy <= 1 and block.ceiling >= 1


def test_library_operators_are_listed_beside(block: Workload) -> None:
    (linear,) = block.vendor
    assert (linear.name, linear.count) == ("aten.addmm.default", 2)
    assert linear.share + sum(r.share for r in block.regions) <= 1.05


def test_the_table_has_the_largest_gain_first(block: Workload) -> None:
    table = block.table()
    assert list(table["gain"]) == sorted(table["gain"], reverse=True)
    assert len(table) == 3 and table["note"].tolist().count("library") == 1


def test_a_region_as_json_has_what_the_widget_shows(block: Workload) -> None:
    data = block.regions[0].as_json()
    assert set(data) >= {"hash", "title", "text", "ops", "count", "time_us", "share", "floor_us", "ceiling"}
    assert set(data) >= {"eligible", "reason", "inputs", "outputs"}
    assert data["inputs"] == [str(s) for s in block.regions[0].region.inputs]


def test_level_op_lists_heavy_operators_as_regions() -> None:
    workload = capture(Block().eval(), (X,), level="op")
    assert {r.region.title for r in workload.regions} == {"addmm", "gelu", "native_layer_norm"}
    assert not workload.vendor


def test_statistics_are_those_of_the_real_inputs() -> None:
    workload = capture(lambda x, i: (x * 2).sin() * i, (torch.full((4, 4), 3.0), torch.arange(4)))
    floats, integers = workload.regions[0].stats
    assert (floats.low, floats.high, floats.mean, floats.std) == (3.0, 3.0, 3.0, 0.0)
    assert (integers.low, integers.high) == (0.0, 3.0) and integers.zeros == 0.25


# --- what it leaves behind ---------------------------------------------------------------------------


class Stateful(nn.Module):
    """Everything a forward may do to its owner and its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.calls = nn.BatchNorm1d(16), 0

    def forward(self, x: torch.Tensor, cache: dict[str, torch.Tensor]) -> torch.Tensor:
        self.calls += 1
        self.last = x
        x += 1
        cache["seen"] = x
        return F.dropout(self.norm(x), 0.5, self.training)


def test_the_model_its_inputs_and_every_rng_are_as_before() -> None:
    model, x, cache = Stateful().train(), torch.randn(8, 16), {"old": torch.zeros(2)}
    state, before = {k: v.clone() for k, v in model.state_dict().items()}, x.clone()
    torch.manual_seed(1)
    random.seed(1)
    rng, python = torch.get_rng_state(), random.getstate()
    workload = capture(model, (x, cache))
    assert torch.equal(rng, torch.get_rng_state()) and python == random.getstate()
    assert torch.equal(x, before) and list(cache) == ["old"]
    assert model.calls == 0 and not hasattr(model, "last") and model.training
    assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())
    assert any("random op" in reason for reason in workload.uncaptured)


def test_a_growing_key_value_cache_is_not_grown() -> None:
    class Cache:
        def __init__(self) -> None:
            self.keys: list[torch.Tensor] = []

    class Attention(nn.Module):
        def forward(self, x: torch.Tensor, cache: Cache) -> torch.Tensor:
            cache.keys.append(x)
            return torch.cat(cache.keys).relu() + 1

    cache = Cache()
    workload = capture(Attention(), (X, cache))
    assert cache.keys == [] and workload.regions


def test_a_model_used_under_gradients_is_captured_without_and_says_so() -> None:
    model = Block()
    workload = capture(model, (X,))
    assert any("without gradients" in reason for reason in workload.uncaptured)
    assert all(p.grad is None for p in model.parameters()) and torch.is_grad_enabled()


def test_the_persons_compile_cache_survives() -> None:
    model = Block().eval()
    seen: list[int] = []

    def backend(module: Any, _: Any) -> Any:
        seen.append(1)
        return module.forward

    compiled = torch.compile(model, backend=backend)
    with torch.no_grad():
        compiled(X)
        capture(model, (X,))
        compiled(X)
    assert len(seen) == 1


# --- bad and odd input -------------------------------------------------------------------------------


def test_a_model_that_raises_is_a_capture_error_with_its_own_words() -> None:
    with pytest.raises(CaptureError, match=r"The model raised RuntimeError: .*shapes cannot be multiplied"):
        capture(Block(), (torch.randn(3, 5),))


@pytest.mark.parametrize("bad, words", [({"level": "line"}, "level 'line'"), ({}, "cannot be called")])
def test_a_bad_argument_is_named(bad: dict[str, str], words: str) -> None:
    with pytest.raises(CaptureError, match=words):
        capture("a model" if not bad else Block(), (X,), **bad)  # type: ignore[arg-type]


def test_data_dependent_control_flow_breaks_the_graph_and_is_named() -> None:
    def branchy(x: torch.Tensor) -> torch.Tensor:
        y = x.exp() + 1
        return y.sin() * 2 if y.sum() > 0 else y.cos() * 2

    workload = capture(branchy, (X,))
    assert any(reason.startswith("graph break:") for reason in workload.uncaptured)
    titles = {r.region.title for r in workload.regions}
    assert any("exp" in title for title in titles) and any("sin" in title for title in titles)


def test_a_call_without_tensors_has_no_regions_and_says_so() -> None:
    workload = capture(lambda: 3)
    assert workload.regions == () and workload.ceiling == 1.0
    assert "Nothing was captured" in workload.advice


def test_an_operator_outside_the_table_is_named() -> None:
    workload = capture(lambda x: torch.digamma(x.exp()) * 2, (X,))
    assert any("digamma" in reason and "operator table" in reason for reason in workload.uncaptured)


@pytest.mark.parametrize(
    "x",
    [
        torch.tensor(2.0),
        torch.randn(8, 1).expand(8, 16),
        torch.randn(2, 4, 6, 6).to(memory_format=torch.channels_last),
        torch.randn(64)[3:50:2],
        torch.arange(12).reshape(3, 4) > 5,
        torch.randn(5, 3, dtype=torch.float16),
    ],
    ids=["0-dim", "zero-stride", "channels-last", "strided", "bool", "half"],
)
def test_odd_inputs_keep_their_layout(x: torch.Tensor) -> None:
    workload = capture(lambda x: torch.where(x != 0, x * 2, x), (x,))
    (item,) = workload.regions
    assert item.eligible
    assert item.region.inputs[0].shape == tuple(x.shape)
    strides = zip(x.shape, item.region.inputs[0].strides, x.stride(), strict=True)
    assert all(n == 1 or a == b for n, a, b in strides)


def test_empty_tensors_are_not_worth_a_kernel() -> None:
    workload = capture(lambda x: x * 2 + 1, (torch.empty(0, 4),))
    assert [r.reason for r in workload.regions] == ["an output is empty"]
