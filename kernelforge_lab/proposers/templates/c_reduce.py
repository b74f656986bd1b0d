"""One reduction in C++: its running values, how an element is folded in, how it is finished."""

from __future__ import annotations

from dataclasses import dataclass

from .c_expr import C_TYPE, literal
from .expr import FLOATS, compute_type
from .tensor import Reduce


@dataclass(frozen=True)
class Accumulator:
    """``NAME_total`` and, for float sums, ``NAME_part``: single precision over a short stretch only,
    then added to the total in double, so that the error does not grow with the row's length.
    """

    reduce: Reduce
    name: str

    @property
    def dtype(self) -> str:
        source = self.reduce.source.dtype if self.is_arg else self.reduce.dtype
        return compute_type(source)

    @property
    def kind(self) -> str:
        return self.reduce.kind.removeprefix("arg")

    @property
    def is_arg(self) -> bool:
        return self.reduce.kind.startswith("arg")

    @property
    def in_parts(self) -> bool:
        return self.kind == "sum" and self.dtype == "float32"

    @property
    def watches_nan(self) -> bool:
        return self.kind in ("max", "min") and self.dtype in FLOATS and not self.is_arg

    @property
    def total_type(self) -> str:
        wide = self.dtype in FLOATS and self.kind in ("sum", "prod")
        return "double" if wide else C_TYPE[self.dtype]

    @property
    def start(self) -> str:
        if self.kind in ("sum", "any"):
            return "0"
        if self.kind in ("prod", "all"):
            return "1"
        if self.dtype in FLOATS:
            return literal(float("-inf" if self.kind == "max" else "inf"), self.dtype)
        return f"kf::{'lowest' if self.kind == 'max' else 'largest'}<{C_TYPE[self.dtype]}>()"

    def variables(self) -> list[tuple[str, str, str]]:
        """(C type, name, start value) of what lives for the whole row."""
        found = [(self.total_type, f"{self.name}_total", self.start)]
        if self.watches_nan:
            found.append(("int", f"{self.name}_nan", "0"))
        if self.is_arg:
            found.append(("int64_t", f"{self.name}_at", "-1"))
        return found

    def scratch(self) -> list[tuple[str, str, str]]:
        """What lives for one stretch of the vector loop and is then folded into the row's values."""
        return [("float", f"{self.name}_part", "0")] if self.in_parts else []

    def fold(self, value: str, place: str, at: str = "") -> list[str]:
        """Statements that fold one element in. ``at`` is ``[t]`` when the values are arrays of lanes."""
        total = f"{self.name}_total{at}"
        if self.is_arg:
            place_now = f"{self.name}_at{at}"
            sign = ">" if self.kind == "max" else "<"
            better = f"{value} {sign} {total} || {place_now} < 0"
            if self.dtype in FLOATS:
                # A NaN wins over numbers, the first place wins among equals, as in ATen.
                better = f"{total} == {total} && ({value} != {value} || {better})"
            tie = f"{value} == {total} && {place} < {place_now}"
            return [f"if (({better}) || ({tie})) {{ {total} = {value}; {place_now} = {place}; }}"]
        if self.kind == "sum":
            return [f"{self.name}_part{at} += {value};"] if self.in_parts else [f"{total} += {value};"]
        if self.kind == "prod":
            return [f"{total} *= {value};"]
        if self.kind in ("any", "all"):
            return [f"{total} = {total} {'|' if self.kind == 'any' else '&'} {value};"]
        compare = ">" if self.kind == "max" else "<"
        found = [f"{total} = {value} {compare} {total} ? {value} : {total};"]
        if self.watches_nan:
            found.append(f"{self.name}_nan{at} |= {value} != {value};")
        return found

    def clauses(self) -> list[str]:
        """OpenMP reduction clauses of the vector loop."""
        if self.in_parts:
            return [f"reduction(+:{self.name}_part)"]
        operator = {"sum": "+", "prod": "*", "any": "|", "all": "&"}.get(self.kind, self.kind)
        found = [f"reduction({operator}:{self.name}_total)"]
        if self.watches_nan:
            found.append(f"reduction(|:{self.name}_nan)")
        return found

    def combine(self, at: str, suffix: str) -> list[str]:
        """Fold other running values (named with ``suffix``, element ``at``) into the row's own."""
        total, other = f"{self.name}_total", f"{self.name}{suffix}"
        if self.in_parts and suffix == "_part":
            return [f"{total} += {other}{at};"]
        other_total = f"{self.name}_total{suffix}{at}"
        if self.kind in ("sum", "prod"):
            return [f"{total} {'+' if self.kind == 'sum' else '*'}= {other_total};"]
        if self.kind in ("any", "all"):
            return [f"{total} = {total} {'|' if self.kind == 'any' else '&'} {other_total};"]
        compare = ">" if self.kind == "max" else "<"
        found = [f"if ({other_total} {compare} {total}) {total} = {other_total};"]
        if self.watches_nan:
            found.append(f"{self.name}_nan |= {self.name}_nan{suffix}{at};")
        return found

    def result(self, at: str = "") -> tuple[str, str]:
        """(C type, expression) of the finished value."""
        if self.is_arg:
            return "int64_t", f"{self.name}_at{at}"
        kind = C_TYPE[self.dtype]
        total = f"{self.name}_total{at}"
        value = total if self.total_type == kind else f"{kind}({total})"
        if self.watches_nan:
            value = f"{self.name}_nan{at} ? {literal(float('nan'), self.dtype)} : {value}"
        return kind, value
