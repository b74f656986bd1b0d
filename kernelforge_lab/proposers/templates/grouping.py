"""Which stages share a loop over rows.

Two stages fit one nest when the later one meets the earlier one's rows as the leading digits of its
own loops. Rows are renamed to common digits r0, r1 … (a common refinement of all stages' digits), so
that a group norm's (batch, group) rows and its (batch, channel, y, x) output line up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from .index import Affine, Var, constant, variable
from .stages import Stage
from .tensor import Reduce

Digits: TypeAlias = "tuple[tuple[Var, int], ...]"


@dataclass(eq=False)
class Group:
    """Stages over the same ``rows``; ``digits`` gives each stage's row variables with their strides."""

    rows: int
    stages: list[Stage] = field(default_factory=list)
    digits: dict[int, Digits] = field(default_factory=dict)

    def add(self, stage: Stage, digits: Digits) -> None:
        self.stages.append(stage)
        self.digits[id(stage)] = digits

    def cuts(self) -> list[int] | None:
        """Strides of the common digits, ascending and each dividing the next; None when they clash."""
        points = sorted({c for d in self.digits.values() for _, c in d} | {1, self.rows})
        fits = all(b % a == 0 for a, b in pairwise(points))
        return points if fits else None

    def row_vars(self) -> list[Var]:
        """Common row digits, slowest first."""
        points = self.cuts() or [1, self.rows]
        sizes = [b // a for a, b in pairwise(points)]
        return [Var(f"r{k}", 0, n) for k, n in enumerate(reversed(sizes))]

    def align(self) -> None:
        """Rewrite every stage over the common row digits and inner variables i0, i1 …"""
        points = self.cuts() or [1, self.rows]
        rows = self.row_vars()
        strides = points[-2::-1] if len(points) > 1 else []
        for stage in self.stages:
            table: dict[str, Affine] = {}
            digits = self.digits[id(stage)]
            for var, coef in digits:
                total = constant(0)
                for row, stride in zip(rows, strides, strict=True):
                    if coef <= stride < coef * var.extent:
                        total = total + variable(row) * (stride // coef)
                table[var.name] = total
            row_names = {var.name for var, _ in digits}
            inner = [v for v in stage.vars if v.name not in row_names]
            renamed = [Var(f"i{k}", 0, v.extent) for k, v in enumerate(inner)]
            table |= {old.name: variable(new) for old, new in zip(inner, renamed, strict=True)}
            reduced = {old.name: new.name for old, new in zip(inner, renamed, strict=True)}
            stage.replace(table)
            stage.vars = [*rows, *renamed]
            stage.reduced_names = frozenset(reduced.get(n, n) for n in stage.reduced_names)


def group_stages(stages: list[Stage], *, fuse: bool) -> tuple[list[Group], list[Stage]]:
    """(groups in an order that respects their dependencies, pointwise outputs that belong to none)."""
    groups: list[Group] = []
    home: dict[Reduce, Group] = {}
    loose: list[Stage] = []
    for stage in stages:
        if stage.is_reduce:
            own = stage.own_rows()
            assert own is not None, "a reduction's rows are its kept loops"
            target = _join(stage, own, groups, home) if fuse else None
            if target is None:
                target = Group(stage.tensor.numel)
                groups.append(target)
                target.add(stage, own)
            assert isinstance(stage.tensor, Reduce)
            home[stage.tensor] = target
        elif not (fuse and stage.refs and _join_output(stage, groups, home)):
            loose.append(stage)
    return _ordered(groups, home), loose


def _join(stage: Stage, digits: Digits, groups: list[Group], home: dict[Reduce, Group]) -> Group | None:
    """Put the stage into the groups of the reductions it meets under exactly these digits."""
    wanted: list[Group] = []
    for reduce in stage.refs:
        group = home[reduce]
        if stage.ref_rows(reduce) == digits and group not in wanted:
            wanted.append(group)
    target: Group | None = None
    for group in wanted:
        if target is None:
            target = group if _fits(group, digits) else None
        else:
            merged = _merge(target, group, groups, home)
            target = merged or target
    if target is None or _waits_for(stage, target, home):
        return None
    target.add(stage, digits)
    return target


def _join_output(stage: Stage, groups: list[Group], home: dict[Reduce, Group]) -> bool:
    """An output goes to the rows that most of its elements depend on: the most numerous ones."""
    options = {d for r in stage.refs if (d := stage.ref_rows(r)) is not None}
    for digits in sorted(options, key=lambda d: -_rows(d)):
        if _join(stage, digits, groups, home) is not None:
            return True
    return False


def _rows(digits: Digits) -> int:
    total = 1
    for var, _ in digits:
        total *= var.extent
    return total


def _fits(group: Group, digits: Digits) -> bool:
    trial = Group(group.rows, digits={**group.digits, -1: digits})
    return _rows(digits) == group.rows and trial.cuts() is not None


def _merge(into: Group, other: Group, groups: list[Group], home: dict[Reduce, Group]) -> Group | None:
    """Both groups as one, unless their digits clash or a third group stands between them."""
    if into.rows != other.rows:
        return None
    trial = Group(into.rows, digits={**into.digits, **other.digits})
    if trial.cuts() is None:
        return None
    between = _needs(into, home, through=other) or _needs(other, home, through=into)
    if between:
        return None
    for stage in other.stages:
        into.add(stage, other.digits[id(stage)])
        if isinstance(stage.tensor, Reduce) and stage.is_reduce:
            home[stage.tensor] = into
    groups.remove(other)
    return into


def _waits_for(stage: Stage, target: Group, home: dict[Reduce, Group]) -> bool:
    """True when the stage also reads another group that itself comes after ``target``."""
    others = {id(g): g for r in stage.refs if (g := home[r]) is not target}
    return any(target in _sources(g, home) or _needs(g, home, through=target) for g in others.values())


def _sources(group: Group, home: dict[Reduce, Group]) -> list[Group]:
    found = {id(g): g for s in group.stages for r in s.refs if (g := home[r]) is not group}
    return list(found.values())


def _needs(group: Group, home: dict[Reduce, Group], through: Group) -> bool:
    """True when ``group`` depends on ``through`` by way of some third group."""
    stack = [g for g in _sources(group, home) if g is not through]
    seen: set[int] = set()
    while stack:
        current = stack.pop()
        if current is through:
            return True
        if id(current) not in seen:
            seen.add(id(current))
            stack.extend(_sources(current, home))
    return False


def _ordered(groups: list[Group], home: dict[Reduce, Group]) -> list[Group]:
    done: list[Group] = []

    def visit(group: Group) -> None:
        if group not in done:
            for source in _sources(group, home):
                visit(source)
            done.append(group)

    for group in groups:
        visit(group)
    return done
