"""A kernel that only waits. Launches queued behind it run back to back, without the host in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ..kernels.kernel import Kernel
from ..kernels.region import Region
from .base import Built, Target
from .cuda_device import clock_hz, driver

_REGION: Final = "region(in0: i64[1]) {\n  t0 = aten.neg.default(in0) : i64[1]\n  return t0\n}"
_SOURCE: Final = """\
// forge: target cuda
// forge: launch wait grid=(1) block=(1) args=(out0)
// The parameter is no address: it is the number of clock cycles to wait.
extern "C" __global__ void wait(OUT0_T* cycles) {
  const long long end = clock64() + (long long)cycles;
  while (clock64() < end) {}
}
"""


def build_delay(target: Target) -> Built:
    """Compiled like any kernel. Raises what ``Target.build`` raises."""
    region = Region.parse(_REGION)
    return target.build(Kernel(_SOURCE, region.hash, target.name, proposer="judge"), region)


class Delay:
    """Waits on the default stream for about ``seconds``; returns at once."""

    def __init__(self, path: str, index: int = 0) -> None:
        self._module = driver().module_from_buffer(Path(path).read_bytes())
        self._function: Any = self._module.get_function("wait")
        self._function.prepare("P")
        self._cycles_per_s = clock_hz(index)

    def __call__(self, seconds: float) -> None:
        self._function.prepared_call((1, 1), (1, 1, 1), int(seconds * self._cycles_per_s))
