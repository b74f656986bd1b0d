"""Small models of real architectures, random weights: what regions are captured from in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

Workload = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]


def _ids(length: int = 32) -> torch.Tensor:
    return torch.randint(0, 900, (1, length), generator=torch.Generator().manual_seed(0))


def gemma4() -> Workload:
    from transformers import Gemma4ForCausalLM, Gemma4TextConfig

    config = Gemma4TextConfig(
        hidden_size=128, intermediate_size=256, num_hidden_layers=6, vocab_size=1000,
        vocab_size_per_layer_input=1000, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
    )  # fmt: skip
    return Gemma4ForCausalLM(config).eval(), (), {"input_ids": _ids(), "use_cache": False}


def qwen3_5() -> Workload:
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    config = Qwen3_5TextConfig(
        hidden_size=128, intermediate_size=256, num_hidden_layers=4, vocab_size=1000,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32,
    )  # fmt: skip
    return Qwen3_5ForCausalLM(config).eval(), (), {"input_ids": _ids(), "use_cache": False}


def gpt2() -> Workload:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=1000, bos_token_id=0, eos_token_id=0)
    return GPT2LMHeadModel(config).eval(), (), {"input_ids": _ids(), "use_cache": False}


class Bottleneck(nn.Module):
    """ResNet-50's block: 1×1, 3×3, 1×1 convolutions with BatchNorm, ReLU and a shortcut."""

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        outside = width * 4
        self.conv1, self.bn1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outside, 1, bias=False), nn.BatchNorm2d(outside)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


def resnet() -> Workload:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        Bottleneck(16, 8, 1), Bottleneck(32, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    return model.eval(), (torch.randn(2, 3, 64, 64),), {}


class DecoderBlock(nn.Module):
    """A VAE decoder's residual block with upsampling: GroupNorm + SiLU before every convolution."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, inside), nn.Conv2d(inside, outside, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, outside), nn.Conv2d(outside, outside, 3, padding=1)
        self.shortcut = nn.Conv2d(inside, outside, 1)
        self.up = nn.Conv2d(outside, outside, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv1(F.silu(self.norm1(x)))
        y = self.conv2(F.silu(self.norm2(y)))
        y = y + self.shortcut(x)
        return self.up(F.interpolate(y, scale_factor=2.0, mode="nearest"))


def vae() -> Workload:
    torch.manual_seed(0)
    model = nn.Sequential(DecoderBlock(32, 32), DecoderBlock(32, 16), nn.GroupNorm(8, 16), nn.SiLU())
    return model.eval(), (torch.randn(1, 32, 16, 16),), {}


ZOO: dict[str, Callable[[], Workload]] = {
    "gemma4": gemma4,
    "qwen3_5": qwen3_5,
    "gpt2": gpt2,
    "resnet": resnet,
    "vae": vae,
}
