"""A launch plan's symbols as ``#define`` lines, the same on every target."""

from __future__ import annotations

from ..kernels.format import LaunchPlan


def define_lines(plan: LaunchPlan) -> list[str]:
    return [f"#define {name} {literal(value)}" for name, value in plan.defines.items()]


def literal(value: int | str) -> str:
    """An integer as a C++ literal; parenthesised when negative so that macros compose.

    Plain ``int`` when it fits: loops over a 64-bit bound vectorise worse.
    """
    if isinstance(value, str):
        return value
    text = str(value) if -(2**31) < value < 2**31 else f"{value}LL"
    return f"({text})" if value < 0 else text
