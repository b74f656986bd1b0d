"""Exported kernels as operators of torch: ``torch.ops.NAMESPACE.r_HASH``, with shapes and gradients."""

from __future__ import annotations

from typing import Any

import torch

from .loader import NAMESPACE, Kernel, kernels

_library = torch.library.Library(NAMESPACE, "DEF")


def _register(kernel: Kernel) -> Any:
    """``torch.ops.NAMESPACE.r_HASH``: opaque to compilers, with shapes and gradients they can rely on."""
    name, single = f"r_{kernel.hash}", len(kernel.entry["outputs"]) == 1
    takes = ", ".join(f"Tensor in{i}" for i in range(len(kernel.entry["inputs"])))
    gives = ", ".join("Tensor" for _ in kernel.entry["outputs"])
    _library.define(f"{name}({takes}) -> {gives if single else f'({gives})'}")

    def call(*inputs: torch.Tensor) -> Any:
        outs = kernel(*inputs)
        return outs[0] if single else outs

    def fake(*inputs: torch.Tensor) -> Any:
        outs = (
            kernel.stock(*inputs)
            if any(f(t) for f, t in zip(kernel.fits, inputs, strict=True))
            else kernel.empty()
        )
        return outs[0] if single else outs

    def save(ctx: Any, inputs: tuple[torch.Tensor, ...], output: Any) -> None:  # noqa: ARG001 - torch passes it by name
        ctx.save_for_backward(*inputs)

    def backward(ctx: Any, *grads: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """PyTorch's own derivative, from the inputs: the kernel keeps nothing for it."""
        with torch.enable_grad():
            inputs = [
                t.detach().requires_grad_() if need else t.detach()
                for t, need in zip(ctx.saved_tensors, ctx.needs_input_grad, strict=True)
            ]
            pairs = [(o, g) for o, g in zip(kernel.stock(*inputs), grads, strict=True) if g is not None]
        wanted = [t for t in inputs if t.requires_grad]
        outs, gs = [o for o, _ in pairs if o.requires_grad], [g for o, g in pairs if o.requires_grad]
        found = iter(torch.autograd.grad(outs, wanted, gs, allow_unused=True))
        return tuple(next(found) if t.requires_grad else None for t in inputs)

    _library.impl(name, call, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=_library)
    torch.library.register_autograd(f"{NAMESPACE}::{name}", backward, setup_context=save, lib=_library)
    return getattr(getattr(torch.ops, NAMESPACE), name).default


ops: dict[str, Any] = {name: _register(kernel) for name, kernel in kernels.items()}
