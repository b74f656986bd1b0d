"""What stands behind an accepted kernel: what was proven, where, by which checks, with which errors
and times.

Issued by the checker for a finalist, carried by its verdict (so it is stored and reported with the run) and
asked for by whoever installs the kernel. On another device, driver or library it does not hold, and the
kernel is judged again there first (``kernelforge verify``).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ..kernels.kernel import Kernel
from ..kernels.region import Region
from ..kernels.stats import InputStats
from ..targets.base import Built, DeviceInfo
from .verdict import Verdict

FORMAT: Final = 1


@dataclass(frozen=True)
class Certificate:
    """Plain data. ``kernel`` is the kernel's hash, ``source`` its text's SHA-256, ``binary`` its code's hash.

    ``versions`` names driver, compiler and libraries; ``errors`` is the worst error over its bound for each
    family of inputs; ``timings`` are those of each fresh process (µs, 95 % intervals); ``seeds`` those of
    the inputs; ``inputs`` what was recorded of each input; ``issued_at`` Unix seconds.
    """

    region: str
    kernel: str
    source: str
    binary: str
    target: str
    device: str
    fingerprint: str
    threads: int
    versions: Mapping[str, str]
    checks: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    timings: Sequence[Mapping[str, Any]] = ()
    stocks_us: Mapping[str, float] = field(default_factory=dict)
    noise: float = 0.0
    floor_us: float = 0.0
    seeds: Sequence[int] = ()
    inputs: Sequence[Mapping[str, float]] = ()
    issued_at: float = 0.0
    format: int = FORMAT

    @classmethod
    def issue(
        cls,
        region: Region,
        kernel: Kernel,
        built: Built,
        device: DeviceInfo,
        *,
        verdicts: Sequence[Verdict] = (),
        noise: float = 0.0,
        floor_us: float = 0.0,
        seeds: Sequence[int] = (),
        stats: Sequence[InputStats] = (),
    ) -> Certificate:
        """For a kernel just proven on this machine; ``verdicts`` has one entry per fresh process."""
        checks: dict[str, int] = {}
        errors: dict[str, float] = {}
        for verdict in verdicts:
            for name, count in verdict.checks.items():
                checks[name] = checks.get(name, 0) + count
            for name, error in verdict.errors.items():
                errors[name] = max(errors.get(name, 0.0), error)
        return cls(
            region=region.hash,
            kernel=kernel.hash,
            source=hashlib.sha256(kernel.source.encode()).hexdigest(),
            binary=built.binary_hash,
            target=kernel.target,
            device=device.name,
            fingerprint=device.fingerprint,
            threads=device.threads,
            versions=versions(kernel.target),
            checks=checks,
            errors=errors,
            timings=tuple(asdict(v.timing) for v in verdicts if v.timing),
            stocks_us=dict(verdicts[-1].stocks_us) if verdicts else {},
            noise=noise,
            floor_us=floor_us,
            seeds=tuple(seeds),
            inputs=tuple(asdict(s) for s in stats),
            issued_at=time.time(),
        )

    @property
    def stats(self) -> tuple[InputStats, ...]:
        return tuple(InputStats(**each) for each in self.inputs)

    def objection(self, region: Region, kernel: Kernel, built: Built, device: DeviceInfo) -> str:
        """Why this certificate says nothing about ``kernel`` for ``region`` here; "" when it holds."""
        if self.region != region.hash:
            return f"it is for region {self.region}"
        if (self.kernel, self.target) != (kernel.hash, kernel.target):
            return f"it is for kernel {self.kernel}"
        if self.fingerprint != device.fingerprint:
            return f"it was issued on {self.device}, not on {device.name}"
        for name, version in versions(self.target).items():
            if self.versions.get(name) != version:
                return f"it was issued with {name} {self.versions.get(name, 'unknown')}, here is {version}"
        if self.binary != built.binary_hash:
            return "the source compiles to other machine code here"
        return ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Certificate:
        """Raises ValueError for what is no certificate of a format known here."""
        try:
            made = cls(**data)
        except TypeError as error:
            raise ValueError(f"not a certificate: {error}") from None
        if made.format != FORMAT:
            raise ValueError(f"a certificate of format {made.format}; format {FORMAT} is known here")
        return made


def certificate_of(verdict: Verdict | None) -> Certificate | None:
    """The certificate a verdict carries, if it carries a readable one."""
    if verdict is None or verdict.certificate is None:
        return None
    try:
        return Certificate.from_json(verdict.certificate)
    except ValueError:
        return None


def versions(target: str) -> dict[str, str]:
    """What besides the device decides how a kernel is built and what its stock is. Paths are left out."""
    import torch

    found = {"torch": str(torch.__version__)}
    if target == "cuda":
        from ..targets.cuda_compiler import find_cuda_compiler
        from ..targets.cuda_device import driver

        found["driver"] = str(driver().get_driver_version())
        found["cuda"] = str(torch.version.cuda)
        found["compiler"] = find_cuda_compiler(None).version
    else:
        from ..targets.toolchain import find_compiler

        found["compiler"] = find_compiler().version.rpartition(" (")[0]
    return found
