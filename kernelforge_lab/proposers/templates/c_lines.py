"""Source text under construction: indentation, blocks, loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from .index import Var


@dataclass
class Lines:
    out: list[str] = field(default_factory=list)
    depth: int = 1

    def add(self, *lines: str) -> None:
        self.out += ["  " * self.depth + line for line in lines]

    def pragma(self, text: str) -> None:
        self.add(f"#pragma omp {text}")

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        self.add(f"{head} {{".strip())
        self.depth += 1
        yield
        self.depth -= 1
        self.add("}")

    @contextmanager
    def nest(self, heads: Sequence[str]) -> Iterator[None]:
        """Perfectly nested loops around one block (a bare block without heads)."""
        self.add(*heads[:-1])
        with self.block(heads[-1] if heads else ""):
            yield


def loop(var: Var, lo: str = "", hi: str = "") -> str:
    return f"for (long {var.name} = {lo or var.lo}; {var.name} < {hi or var.hi}; ++{var.name})"


def blocked(var: Var, step: int) -> tuple[str, str, str]:
    """(head of the loop over blocks, line that names the block's end, head of the loop inside)."""
    b, e = f"{var.name}b", f"{var.name}e"
    return (
        f"for (long {b} = {var.lo}; {b} < {var.hi}; {b} += {step})",
        f"const long {e} = std::min<long>({b} + {step}, {var.hi});",
        loop(var, b, e),
    )
