"""What the judge answers: a status, evidence a person can act on, errors, timings."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """In the order of the gates (judging.md)."""

    PARSE_ERROR = "parse_error"
    REJECTED = "rejected"
    COMPILE_ERROR = "compile_error"
    DUPLICATE = "duplicate"
    LAUNCH_ERROR = "launch_error"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    OUT_OF_BOUNDS = "out_of_bounds"
    UNWRITTEN = "unwritten"
    MUTATED_INPUT = "mutated_input"
    WRONG = "wrong"
    NONDETERMINISTIC = "nondeterministic"
    UNVERIFIED = "unverified"
    IMPOSSIBLE = "impossible"
    CORRECT = "correct"
    SLOWER = "slower"
    FASTER = "faster"

    @property
    def is_correct(self) -> bool:
        """Proven correct. ``slower`` and ``faster`` also carry a measured time."""
        return self in (Status.CORRECT, Status.SLOWER, Status.FASTER)


@dataclass(frozen=True)
class Timing:
    """Paired measurement against best stock. Times in µs, interval 95 % on the ratio stock/kernel.

    ``call_us`` is the kernel behind its guard, as the model pays for it (None: not measured on this target).
    """

    kernel_us: float
    stock: str
    stock_us: float
    speedup: float
    low: float
    high: float
    samples: int
    clock: str = "kernel"
    call_us: float | None = None


@dataclass(frozen=True)
class Verdict:
    """``checks`` counts executed checks by name; zero checks can never be a pass.

    ``max_error`` is the worst error over all outputs and inputs relative to its bound (≤ 1 passes).
    ``errors`` has the worst of each family of inputs. ``resources`` holds what the compiler said (for cuda
    registers, spills, shared memory). ``certificate`` is a finalist's (``certificate.Certificate`` as JSON).
    """

    status: Status
    evidence: str = ""
    checks: dict[str, int] = field(default_factory=dict)
    max_error: float | None = None
    timing: Timing | None = None
    stocks_us: dict[str, float] = field(default_factory=dict)
    resources: dict[str, float] = field(default_factory=dict)
    binary_hash: str = ""
    seconds: float = 0.0
    errors: dict[str, float] = field(default_factory=dict)
    certificate: dict[str, Any] | None = None

    @property
    def check_count(self) -> int:
        return sum(self.checks.values())

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "status": self.status.value}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Verdict:
        timing = data.get("timing")
        return cls(
            **{
                **data,
                "status": Status(data["status"]),
                "timing": Timing(**timing) if timing else None,
            }
        )
