"""A small region, a right kernel for it, and asks about it."""

from __future__ import annotations

from typing import Any

from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Op, Ref, Region
from kernelforge_lab.kernels.spec import TensorSpec
from kernelforge_lab.proposers.base import Ask
from kernelforge_lab.proposers.llm.proposer import LlmProposer
from kernelforge_lab.proposers.llm.settings import Price, Secret, Settings
from kernelforge_lab.proposers.purse import Purse

SPEC = TensorSpec.contiguous((4, 64))
REGION = Region((SPEC,), (Op("t0", "aten.relu.default", (Ref("in0"),), (), (SPEC,)),), ("t0",))
KEY = "sk-test-0123456789abcdef"

KERNEL = """\
// forge: target cpu
// forge: idea no branch
// forge: launch relu args=(in0, out0)
extern "C" void relu(const float* x, float* y) {
  for (long i = 0; i < NUMEL; ++i) y[i] = kf::max(x[i], 0.f);
}
"""
PARENT = KERNEL.replace("no branch", "a branch").replace("kf::max(x[i], 0.f)", "x[i] > 0 ? x[i] : 0")
PARENT += "// the end\n// the end\n"


def fenced(source: str = KERNEL, language: str = "cpp") -> str:
    return f"Idea: the parent's branch goes.\n\n```{language}\n{source}```\n"


def parent() -> Kernel:
    return Kernel(PARENT, REGION.hash, "cpu", proposer="templates", strategy="flat", idea="a branch")


def ask(**changes: Any) -> Ask:
    given = {
        "region": REGION,
        "target": "cpu",
        "strategy": "explicit vectors",
        "parent": parent(),
        "threads": 2,
    }
    given |= {"purse": Purse(1.0)} | changes
    return Ask(**given)


def settings(url: str, **changes: Any) -> Settings:
    given: dict[str, Any] = {
        "models": ("m",), "base_url": url, "key": Secret(KEY), "prices": {"m": Price(2.0, 10.0, 0.2)},
        "timeout_s": 20.0, "idle_s": 10.0, "attempts": 3,
    }  # fmt: skip
    return Settings(**(given | changes))


def proposer(url: str, **changes: Any) -> LlmProposer:
    return LlmProposer(settings(url, **changes))
