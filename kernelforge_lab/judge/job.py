"""What is asked of the judge, and what it knows of stock: plain data that travels between processes."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..kernels.kernel import Kernel
from ..kernels.region import Region
from ..kernels.stats import InputStats


@dataclass(frozen=True)
class Limits:
    """Bounds on one judgement. Times in seconds.

    ``call_s``: shortest time limit of a launch (the real one grows with the stock time, up to
    ``call_max_s``). ``time_s``: cap on the paired timing. ``memory_bytes``: what the judge may hold for
    one region (inputs, expected outputs, float64 intermediates). ``half_width``: timing stops when the
    95 % interval of the log-ratio is this narrow. ``compile_s``: cap on stock's torch.compile
    (0: stock is eager alone, for when only correctness matters).
    """

    call_s: float = 2.0
    call_max_s: float = 20.0
    time_s: float = 2.5
    finalist_time_s: float = 5.0
    memory_bytes: int = 3 * 2**30
    half_width: float = 0.005
    compile_s: float = 120.0


@dataclass(frozen=True)
class Job:
    """Judge ``kernel`` for ``region``.

    ``stats`` has one entry per input (empty: standard normal floats). ``finalist`` asks for new seeds, a
    fresh process and more samples. ``quick`` proves only the cheap families before timing and finishes
    the proof if the kernel may win. ``best_us`` is the region's best so far: a kernel surely 1.3× slower
    is dropped early. Without ``timed`` a kernel is only proven, and its verdict is ``correct``.
    """

    region: Region
    kernel: Kernel
    stats: tuple[InputStats, ...] = ()
    seed: int = 0
    finalist: bool = False
    quick: bool = False
    best_us: float | None = None
    limits: Limits = field(default_factory=Limits)
    timed: bool = True


@dataclass(frozen=True)
class Stock:
    """What PyTorch offers for a region, measured by the judge. Times in µs.

    ``times_us``: ``eager`` and, when it really compiled, ``compiled``. ``compiled_kernels`` counts the
    kernels inductor generated; ``reason`` says why a baseline is missing. ``noise`` is the A/A control:
    the log-ratio that best stock shows against itself. ``floor_us`` is the time that merely touching
    every input and output once takes on this device (0: not measured).
    ``refused`` non-empty: the region cannot be judged, and why.
    """

    region: str
    times_us: dict[str, float] = field(default_factory=dict)
    compiled_kernels: int = 0
    compile_s: float = 0.0
    reason: str = ""
    noise: float = 0.0
    floor_us: float = 0.0
    refused: str = ""
    families: dict[str, str] = field(default_factory=dict)

    @property
    def best(self) -> str:
        """Name of the fastest baseline (``eager`` when nothing was measured)."""
        return min(self.times_us, key=self.times_us.__getitem__) if self.times_us else "eager"

    @property
    def best_us(self) -> float:
        return self.times_us.get(self.best, float("inf"))
