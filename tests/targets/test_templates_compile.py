"""Every CUDA kernel the templates write compiles: each case, strategy and dtype, and each GPU generation.

Wrong CUDA text is found here, without a GPU; whether it computes the right thing is not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import pytest
import torch
import torch.nn.functional as F

from kernelforge_lab import targets
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.proposers.templates.proposer import STRATEGIES, TemplatesProposer, strategy_of, write
from kernelforge_lab.targets import cuda
from kernelforge_lab.targets.cuda_compiler import Nvrtc
from tests.proposers.cases import Case, cases
from tests.proposers.tracing import region_of

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
ARCHS = ("sm_80", "sm_90", "sm_100", "sm_120")
PROPOSER = TemplatesProposer()
COMPILERS = 2


@dataclass(frozen=True)
class Source:
    region: Region
    strategy: str
    text: str
    dtype: torch.dtype


def _empty(*shape: int) -> torch.Tensor:
    return torch.empty(*shape)


# Rows so long, or so few, that whole blocks and clusters share one: none of the small cases has them.
LARGE = (
    Case(
        "group_norm_silu_large",
        lambda x, w, b: F.silu(F.group_norm(x, 32, w, b)),
        (_empty(1, 256, 128, 128), _empty(256), _empty(256)),
    ),
    Case("softmax_large", lambda x: torch.softmax(x, -1), (_empty(16, 8192),)),
)


@cache
def sources(name: str) -> tuple[Source, ...]:
    """What the templates write for a case in every dtype, each text once."""
    (case,) = (case for case in (*cases(), *LARGE) if case.name == name)
    found: dict[tuple[str, str], Source] = {}
    for dtype in DTYPES:
        inputs = tuple(t.to(dtype) if t.is_floating_point() else t for t in case.inputs)
        region = region_of(case.function, *inputs)
        for strategy in PROPOSER.strategies(region, "cuda", None):
            chosen = strategy_of(strategy, "cuda")
            assert chosen is not None
            text = write(region, chosen, 0)
            found.setdefault((region.hash, text), Source(region, strategy, text, dtype))
    return tuple(found.values())


@pytest.fixture(scope="module")
def workers() -> Iterator[ThreadPoolExecutor]:
    """Threads with a compiler process each."""
    own = threading.local()
    compilers: list[Nvrtc] = []

    def begin() -> None:
        own.compiler = Nvrtc()
        compilers.append(own.compiler)

    patch = pytest.MonkeyPatch()
    patch.setattr(cuda, "find_cuda_compiler", lambda _: own.compiler)
    with patch.context(), ThreadPoolExecutor(COMPILERS, initializer=begin) as pool:
        yield pool
    patch.undo()
    for compiler in compilers:
        compiler.close()


def failures(pool: ThreadPoolExecutor, wanted: list[tuple[Source, str]]) -> list[str]:
    def attempt(source: Source, arch: str) -> str:
        kernel = Kernel(source.text, source.region.hash, "cuda")
        try:
            built = targets.get("cuda", arch).build(kernel, source.region)
        except Exception as error:  # noqa: BLE001 - every failure of the batch is shown, not the first
            return f"{source.strategy} {source.dtype} for {arch}: {type(error).__name__}: {error}"
        return "" if built.resources["registers"] > 0 else f"{source.strategy} for {arch} is empty"

    return [said for said in pool.map(lambda pair: attempt(*pair), wanted) if said]


@pytest.mark.parametrize("name", [case.name for case in (*cases(), *LARGE)])
def test_every_strategy_compiles_in_every_dtype(workers: ThreadPoolExecutor, name: str) -> None:
    written = sources(name)
    assert written
    assert failures(workers, [(source, "sm_90") for source in written]) == []


def test_every_strategy_compiles_for_every_generation_in_every_dtype(workers: ThreadPoolExecutor) -> None:
    chosen: dict[tuple[str, torch.dtype], Source] = {}
    for name in ("group_norm_silu_large", "softmax_large", *(case.name for case in cases())):
        for source in sources(name):
            chosen.setdefault((source.strategy, source.dtype), source)
    strategies = {strategy for strategy, _ in chosen}
    assert strategies == {strategy.name for strategy in STRATEGIES if strategy.target == "cuda"}
    pairs = [(source, arch) for source in chosen.values() for arch in ARCHS]
    assert failures(workers, pairs) == []


# On a GPU eager's batch norm is cuDNN's operator, which no CPU can trace.
CUDNN = Region.parse("""region(in0: f32[2,8,6,7], in1: f32[8], in2: f32[8], in3: f32[8], in4: f32[8]) {
  t0 = aten.cudnn_batch_norm.default(in0, in1, in2, in3, in4, False, 0.1, 1e-05) : (f32[2,8,6,7], _, _, _)
  t1 = aten.relu.default(t0.0) : f32[2,8,6,7]
  return t1
}""")


def test_the_batch_norm_of_cudnn_is_written_like_any_other(workers: ThreadPoolExecutor) -> None:
    text = write(CUDNN, STRATEGIES[-2], 0)
    assert STRATEGIES[-2].name == "flat"
    assert failures(workers, [(Source(CUDNN, "flat", text, torch.float32), "sm_90")]) == []
    training = Region.parse(CUDNN.text.replace("False, 0.1", "True, 0.1"))
    assert "training mode" in (PROPOSER.refuses(training, "cuda") or "")
