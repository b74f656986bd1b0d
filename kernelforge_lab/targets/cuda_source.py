"""The CUDA text that is really compiled: prelude, defines, the kernel's source, and checks of its launches.

Each ``// forge: launch`` line becomes static assertions on the function it names: a wrong argument list is
a compile error on its own line rather than a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Final

from ..kernels.format import KernelFile, LaunchPlan
from ..kernels.symbols import C_TYPES
from .defines import define_lines

_BF16: Final = """
#pragma once
using __nv_bfloat16 = kf_bf16;
using nv_bfloat16 = kf_bf16;
KF_DEVICE float __bfloat162float(kf_bf16 x) { return x; }
KF_DEVICE kf_bf16 __float2bfloat16(float x) { return kf_bf16(x); }
KF_DEVICE kf_bf16 __float2bfloat16_rn(float x) { return kf_bf16(x); }
"""
_F16: Final = """
#pragma once
using __half = kf_f16;
using half = kf_f16;
KF_DEVICE float __half2float(kf_f16 x) { return x; }
KF_DEVICE kf_f16 __float2half(float x) { return kf_f16(x); }
KF_DEVICE kf_f16 __float2half_rn(float x) { return kf_f16(x); }
"""
# Headers that CUDA sources habitually include. The prelude has what they need, or all there is to need.
_EMPTY: Final = (
    "algorithm cfloat climits cmath cstddef cstdint cuda.h cuda_runtime.h device_launch_parameters.h "
    "float.h limits limits.h math.h stddef.h stdint.h"
).split()
HEADERS: Final[dict[str, str]] = {"cuda_bf16.h": _BF16, "cuda_fp16.h": _F16, **dict.fromkeys(_EMPTY, "\n")}


@lru_cache(maxsize=1)
def prelude() -> str:
    """The CUDA text itself: ``kf_bf16``, ``kf_f16``, ``kf::``."""
    return (files(__package__) / "prelude_cuda.h").read_text()


def translation_unit(file: KernelFile, plan: LaunchPlan, tensors: Sequence[str]) -> str:
    """CUDA C++ for ``plan``; ``tensors`` are the region's input and output names, in order."""
    parts = ['#line 1 "prelude_cuda.h"', prelude(), '#line 1 "defines"', *define_lines(plan)]
    return "\n".join([*parts, '#line 1 "kernel.cu"', file.source, *_checks(file, plan, tensors), ""])


def _checks(file: KernelFile, plan: LaunchPlan, tensors: Sequence[str]) -> list[str]:
    types = {name: C_TYPES[dtype] for name, dtype, _ in plan.workspaces}
    types |= {name: f"{name.upper()}_T" for name in tensors}
    lines = []
    for declared, launch in zip(file.launches, plan.launches, strict=True):
        here = f'#line {declared.line} "kernel.cu"'
        kind = f"decltype(&{launch.function})"
        count = len(launch.args)
        message = f"{launch.function} is passed {count} arguments but takes another number"
        checks = [_check(f"kf::Signature<{kind}>::arity == {count}", message)]
        for i, arg in enumerate(launch.args):
            given = "long long" if isinstance(arg, int) else f"{types[arg]}*"
            what = "an integer" if isinstance(arg, int) else arg
            checks.append(
                _check(
                    f"kf::Fits<kf::Parameter<{i}, {kind}>::type, {given}>::value",
                    f"argument {i + 1} of {launch.function} is {what}, and its parameter has another type",
                )
            )
        lines += [line for check in checks for line in (here, check)]
    return lines


def _check(condition: str, message: str) -> str:
    return f'static_assert({condition}, "{message}");'
