"""A model with regions of every kind the export has to find again. Imports torch alone."""

from __future__ import annotations

import torch
from torch import nn


class Norm(nn.Module):
    """RMSNorm as transformers writes it."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * (x * scale)


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = Norm(size)
        self.gate, self.up, self.down = (nn.Linear(size, size) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class Net(nn.Module):
    """Add+RMSNorm returns two values (the residual goes on), gate·up is pointwise, both occur twice."""

    def __init__(self, size: int = 64) -> None:
        super().__init__()
        self.first = nn.Linear(size, size)
        self.blocks = nn.ModuleList(Block(size) for _ in range(3))
        self.last = Norm(size)
        self.head = nn.Linear(size, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))


def net() -> tuple[Net, torch.Tensor]:
    torch.manual_seed(7)
    return Net().eval(), torch.randn(2, 16, 64)
