"""Whatever a model is or does, forging it leaves it, its inputs and every RNG as they were, and answers as it did."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import kernelforge_lab as kf
from kernelforge_lab.capture.intact import find
from kernelforge_lab.exc import CaptureError, ForgeError

X = torch.randn(16, 64, generator=torch.Generator().manual_seed(0))


class Calls(nn.Module):
    """A module whose forward is ``function``."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


class Remembers(nn.Module):
    """Changes a buffer, a number and containers of its own in every forward."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("small", torch.zeros(4).to(torch.float8_e4m3fn))
        self.calls, self.history, self.by_shape = 0, [], {"shapes": []}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        self.calls += 1
        self.history.append(self.calls)
        self.by_shape["shapes"].append(x.shape)
        return torch.softmax(x + self.seen, -1)


@dataclasses.dataclass
class Output:
    probabilities: torch.Tensor
    rest: dict[str, Any]


def branches(x: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x, -1)
    return torch.relu(y) + 1 if y.sum() > 0 else y


CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "data_dependent_branch": (Calls(branches), (X,)),
    "data_dependent_shape": (Calls(lambda x: torch.softmax(x, -1)[x > 0]), (X,)),
    "a_number_read_from_a_tensor": (Calls(lambda x: x * (int(x.abs().sum().item()) % 7)), (X,)),
    "dropout_in_train_mode": (nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.3), nn.GELU()).train(), (X,)),
    "noise": (Calls(lambda x: torch.softmax(x, -1) + torch.randn_like(x)), (X,)),
    "batch_norm_in_train_mode": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)), (torch.randn(2, 3, 8, 8),)),
    "memory_in_attributes": (Remembers(), (X,)),
    "empty": (Calls(lambda x: (torch.softmax(x * 2, -1), x.sum(0))), (torch.empty(0, 64),)),
    "zero_dim": (Calls(lambda x: torch.tanh(x) * 2 + 1), (torch.tensor(1.5),)),
    "zero_stride": (Calls(lambda x: torch.softmax(x * 2, -1) + x), (X[:1].expand(16, 64),)),
    "channels_last": (
        nn.Sequential(nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.SiLU()).eval().to(memory_format=torch.channels_last),
        (torch.randn(2, 8, 8, 8).to(memory_format=torch.channels_last),),
    ),
    "no_inputs": (Calls(lambda: torch.arange(10.0) * 2), ()),
    "none": (Calls(lambda x: None), (X,)),
    "a_string": (Calls(lambda x: "words"), (X,)),
    "a_dataclass": (Calls(lambda x: Output(torch.softmax(x, -1) * 2, {"more": [x + 1, "s", None]})), (X,)),
    "views_of_its_input": (Calls(lambda x: (x, x.view(-1), torch.softmax(x, -1))), (X,)),
    "input_changed_in_place": (Calls(lambda x: x.mul_(1.5).add_(1)), (X.clone(),)),
    "input_that_asks_for_gradients": (Calls(lambda x: torch.softmax(x, -1) * 2), (X.clone().requires_grad_(),)),
    "nested_inputs": (Calls(lambda xs: torch.softmax(xs[0] + xs[1]["a"], -1)), ([X, {"a": X}],)),
    "numpy_input": (Calls(lambda x: torch.softmax(torch.from_numpy(x), -1)), (X.numpy(),)),
    "nan": (Calls(lambda x: torch.softmax(x, -1) * 2), (torch.full((16, 64), float("nan")),)),
    "complex": (Calls(lambda x: torch.fft.fft(x).abs() * 2), (X,)),
    "sparse": (Calls(lambda x: torch.sparse.mm(x.to_sparse(), x.t()) * 2), (X,)),
    "fp8": (Calls(lambda x: x.float() * 2), (X.to(torch.float8_e4m3fn),)),
    "lstm": (nn.LSTM(16, 16, batch_first=True).eval(), (torch.randn(2, 5, 16),)),
    "compiled": (torch.compile(nn.Sequential(nn.Linear(64, 64), nn.GELU()).eval(), backend="eager"), (X,)),
    "a_function": (lambda x: torch.softmax(x * 2, -1) + 1, (X,)),
}  # fmt: skip


def answer(function: Any, args: Any) -> list[torch.Tensor]:
    torch.manual_seed(5)
    with torch.no_grad():
        return list(find(torch.Tensor, function(*copy.deepcopy(args))))


def state_of(function: Any) -> Any:
    if not isinstance(function, nn.Module):
        return None
    plain = {
        f"{name}.{key}": copy.deepcopy(value)
        for name, module in function.named_modules()
        for key, value in vars(module).items()
        if isinstance(value, (int, list, dict)) and not key.startswith("_")
    }
    return plain, {name: bytes_of(value) for name, value in function.state_dict().items()}


def bytes_of(value: torch.Tensor) -> bytes:
    return bytes(value.detach().clone().reshape(-1).contiguous().view(torch.uint8).tolist())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_forging_leaves_everything_as_it_was(name: str) -> None:
    function, args = CASES[name]
    # A model with memory answers from where it stands; both answers start from the same place.
    fresh = copy.deepcopy(function)
    before, given = state_of(function), copy.deepcopy(args)
    torch.manual_seed(3)
    stream = (torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002

    run = kf.forge(function, *args, trials=0, minutes=1, wait=True)

    assert run.state == "finished"
    assert run.workload is not None
    assert torch.equal(stream[0], torch.get_rng_state())
    assert stream[1:] == (random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002
    assert state_of(function) == before
    for kept, now in zip(find(torch.Tensor, given), find(torch.Tensor, args), strict=True):
        assert bytes_of(kept) == bytes_of(now)
    expected, got = answer(fresh, args), answer(run.apply(), args)
    assert len(expected) == len(got)
    for want, have in zip(expected, got, strict=True):
        assert want.dtype == have.dtype and bytes_of(want) == bytes_of(have)


def test_what_breaks_a_graph_is_named() -> None:
    run = kf.forge(Calls(branches), X, trials=0, wait=True)
    assert any("Data-dependent" in reason for reason in run.workload.uncaptured)
    assert len(run.workload.regions) == 2


def test_a_run_that_tried_nothing_does_not_say_that_nothing_is_faster() -> None:
    run = kf.forge(*CASES["a_function"][:1], X, trials=0, wait=True)
    assert run.history.message == "no kernel was tried (the regions say why); the model stays as it is"
    assert [record.reason for record in run.history.regions.values()] == [
        "not searched: all 0 trials are used"
    ]


def test_random_operators_are_named_and_stay() -> None:
    function, args = CASES["dropout_in_train_mode"]
    run = kf.forge(function, *args, trials=0, wait=True)
    assert any("random op" in reason for reason in run.workload.uncaptured)
    assert not any("getitem" in reason for reason in run.workload.uncaptured)
    assert [item.region.title for item in run.workload.regions] == ["gelu"]


def raises(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("no such layer " * 1000)


@pytest.mark.parametrize(
    "function, args, words",
    [
        (Calls(raises), (X,), "The model raised ValueError: no such layer"),
        (nn.Linear(4, 4, device="meta"), (torch.randn(2, 4, device="meta"),), "meta"),
        (Calls(next), ((X for _ in range(3)),), "a generator, which can be read only once"),
        (3, (), "a int cannot be called"),
    ],
    ids=["raises", "meta", "generator", "a_number"],
)
def test_what_cannot_be_forged_is_said_in_a_few_words(
    function: Any, args: tuple[Any, ...], words: str
) -> None:
    with pytest.raises(ForgeError) as caught:
        kf.forge(function, *args, trials=0, wait=True)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_generator_is_not_read() -> None:
    stream = (X for _ in range(3))
    with pytest.raises(CaptureError):
        kf.forge(Calls(next), stream, trials=0)
    assert len(list(stream)) == 3
