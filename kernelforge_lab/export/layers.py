"""Which layers of a model are one kernel, for the loader's ``kernelize`` (as HuggingFace's ``kernels``)."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import torch
from torch import nn

from ..capture.intact import Inputs, modules_of, untouched
from ..capture.session import inference
from ..capture.specs import disagreement
from ..kernels.execution import TensorFunction, compile_region
from ..kernels.region import Region

_CHOICES_MAX: Final = 24  # ways to give a layer's tensors to a region's inputs

Plan = dict[str, Any]


def layer_plans(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    regions: Sequence[Region],
) -> dict[str, list[Plan]]:
    """Class name → plans ``{"region", "inputs", "args", "training"}``.

    ``inputs`` are positions of the forward's arguments or names of the layer's tensors.

    A layer fits when it gives, for random weights and inputs, bit for bit what one of ``regions`` gives. The
    model is called once.
    """
    runs = {region: compile_region(region) for region in regions if len(region.outputs) == 1}
    plans: dict[str, list[Plan]] = {}
    for layer, given in _calls(function, args, kwargs):
        for region, run in runs.items():
            plan = _plan(layer, given, region, run)
            known = plans.setdefault(type(layer).__name__, []) if plan else []
            if plan and plan not in known:
                known.append(plan)
    return plans


def _calls(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[tuple[nn.Module, tuple[torch.Tensor, ...]]]:
    """Layers called with tensors alone, each class once per kind of input."""
    found: dict[Any, tuple[nn.Module, tuple[torch.Tensor, ...]]] = {}

    def note(module: nn.Module, given: tuple[Any, ...]) -> None:
        if given and all(type(value) is torch.Tensor for value in given):
            kinds = tuple((value.shape, value.stride(), value.dtype) for value in given)
            found.setdefault((type(module), kinds), (module, tuple(t.detach().clone() for t in given)))

    modules = [m for owner in modules_of(function) for m in owner.modules() if not isinstance(m, nn.Linear)]
    with untouched(function), inference(function):
        handles = [module.register_forward_pre_hook(note) for module in modules]
        try:
            own_args, own_kwargs = Inputs(args, kwargs).take()
            function(*own_args, **own_kwargs)
        finally:
            for handle in handles:
                handle.remove()
    return list(found.values())


def _plan(
    layer: nn.Module, given: tuple[torch.Tensor, ...], region: Region, run: TensorFunction
) -> Plan | None:
    own = dict(itertools.chain(layer.named_parameters(), layer.named_buffers()))
    if len(own) + len(given) > len(region.inputs) + 2:
        return None
    twin = copy.deepcopy(layer)
    with torch.no_grad():
        inputs = tuple(torch.randn_like(t) if t.is_floating_point() else t for t in given)
        for tensor in itertools.chain(twin.parameters(), twin.buffers()):
            if tensor.is_floating_point():
                tensor.copy_(torch.rand_like(tensor) + 0.5)  # positive: a variance is
        tensors = dict(itertools.chain(twin.named_parameters(), twin.named_buffers()))
        try:
            want = twin(*inputs)
        except Exception:  # noqa: BLE001 - a layer that insists on its values has no plan
            return None
        if type(want) is not torch.Tensor or disagreement(want, region.outputs[0]) is not None:
            return None
        for names in itertools.islice(_choices(inputs, tensors, region), _CHOICES_MAX):
            values = [inputs[name] if isinstance(name, int) else tensors[name] for name in names]
            if torch.equal(run(*values)[0], want):
                return {
                    "region": region.hash,
                    "inputs": list(names),
                    "args": len(given),
                    "training": layer.training,
                }
    return None


def _choices(
    inputs: tuple[torch.Tensor, ...], tensors: Mapping[str, torch.Tensor], region: Region
) -> Iterator[tuple[int | str, ...]]:
    pool: list[tuple[int | str, torch.Tensor]] = [*enumerate(inputs), *tensors.items()]
    fitting = [[name for name, t in pool if disagreement(t, spec) is None] for spec in region.inputs]
    return (names for names in itertools.product(*fitting) if len(set(names)) == len(names))
