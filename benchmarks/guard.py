"""What an installed kernel costs the host per call, against a torch elementwise op's own dispatch.

python benchmarks/guard.py [OUT.json]   on a machine with an NVIDIA GPU
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from kernelforge_lab import targets
from kernelforge_lab.deploy.counts import Counts
from kernelforge_lab.deploy.install import Installer
from kernelforge_lab.deploy.winner import Winner
from kernelforge_lab.judge.certificate import Certificate
from kernelforge_lab.judge.verdict import Status, Verdict
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region

# Small enough that the device is never the bottleneck: only the host is measured.
REGION = Region.parse("""region(in0: f32[1024], in1: f32[1024]) {
  t0 = aten.add.Tensor(in0, in1) : f32[1024]
  return t0
}""")
SOURCE = """\
// forge: target cuda
// forge: launch add grid=(4) block=(256) args=(in0, in1, out0)
extern "C" __global__ void add(const float* x, const float* b, float* y) {
  int i = kf::thread_index();
  y[i] = x[i] + b[i];
}
"""
CALLS = 300
ROUNDS = 60


def host_us(call: Callable[[], object]) -> float:
    """Host time per call of ``CALLS`` in a row, fewer than the driver's queue holds."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    taken = time.perf_counter() - begin
    torch.cuda.synchronize()
    return taken / CALLS * 1e6


def main() -> None:
    kernel, target = Kernel(SOURCE, REGION.hash, "cuda"), targets.get("cuda")
    certificate = Certificate.issue(REGION, kernel, target.build(kernel, REGION), target.device()).as_json()
    winner = Winner(REGION, kernel, Verdict(Status.FASTER, certificate=certificate))
    installer = Installer({REGION.hash: winner}, "cuda", 0, True, Counts())
    guarded = installer.implement(REGION)
    assert guarded is not None
    x, b = torch.randn(1024, device="cuda"), torch.randn(1024, device="cuda")
    sides: dict[str, Callable[[], object]] = {
        "relu": lambda: torch.relu(x),
        "add": lambda: torch.add(x, b),
        "guarded add": lambda: guarded(x, b),
    }
    streams = ("default stream", "side stream")
    times: dict[str, list[float]] = {f"{name}, {where}": [] for name in sides for where in streams}
    stream = torch.cuda.Stream()
    for _ in range(ROUNDS):
        for name, call in sides.items():
            times[f"{name}, default stream"].append(host_us(call))
            with torch.cuda.stream(stream):
                times[f"{name}, side stream"].append(host_us(call))
    medians = {name: round(statistics.median(taken), 3) for name, taken in times.items()}
    ratio = medians["guarded add, default stream"] / medians["add, default stream"]
    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "host_us": medians,
        "guard_over_add": round(ratio, 3),
    }
    text = json.dumps(result, indent=2)
    print(text)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text + "\n")


if __name__ == "__main__":
    main()
