"""What a target is: it knows one kind of device, builds kernels for it and makes them callable.

Nothing outside ``targets`` knows how: another target is another file here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..kernels.format import LaunchPlan
from ..kernels.kernel import Kernel
from ..kernels.region import Region


@dataclass(frozen=True)
class DeviceInfo:
    """The device kernels run on. Sizes in bytes, 0 when unknown.

    ``fingerprint`` is equal for devices whose measured limits may be shared; ``llc_bytes`` is the last
    cache before memory (what cold-cache timing must exceed); ``features`` names vector extensions.
    """

    name: str
    fingerprint: str
    threads: int
    l1_bytes: int = 0
    l2_bytes: int = 0
    llc_bytes: int = 0
    memory_bytes: int = 0
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Built:
    """A compiled kernel, as plain data that may travel to another process of the same machine.

    ``tensors`` are the region's inputs, then outputs. ``foreign`` are symbols the binary imports that no
    kernel needs (the judge rejects those). ``binary_hash`` is equal for twins: sources that compile to
    the same code. ``cached`` tells that no compiler ran; ``compile_s`` is then what it once took.
    """

    path: str
    plan: LaunchPlan
    tensors: tuple[str, ...]
    binary_hash: str
    compile_s: float
    log: str = ""
    resources: Mapping[str, float] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()
    cached: bool = False


class Launcher(Protocol):
    """A loaded kernel. Its workspaces are allocated once, when it is loaded, and live as long as it."""

    def __call__(self, pointers: Mapping[str, int]) -> Callable[[], None]:
        """Bind addresses by name (every tensor; a workspace only to replace the own one)."""

    def bind_names(self, order: Sequence[str]) -> Callable[..., None]:
        """The fast form: a callable of the tensors' addresses, positionally, in ``order``."""


class Target(Protocol):
    """One kind of device."""

    @property
    def name(self) -> str: ...

    def device(self) -> DeviceInfo: ...

    def build(self, kernel: Kernel, region: Region) -> Built:
        """Compile ``kernel``. Raises KernelSourceError, CompileError or NoCompilerError."""

    def load(self, built: Built) -> Launcher:
        """Load into this process. Raises CompileError when the binary cannot be loaded."""
