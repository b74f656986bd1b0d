"""Integer index algebra: affine expressions over loop variables, with floor-division and modulo atoms.

Every view, broadcast, slice or reshape of a region becomes one of these, so that what remains in a
kernel is plain strided addressing. Divisions vanish when ranges allow it, and ``splits`` names the
loop splits that would remove those that remain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Var:
    """A loop variable over [lo, hi)."""

    name: str
    lo: int
    hi: int

    @property
    def extent(self) -> int:
        return self.hi - self.lo


@dataclass(frozen=True, slots=True)
class Div:
    """floor(of / by), by > 1."""

    of: Affine
    by: int


@dataclass(frozen=True, slots=True)
class Mod:
    """of mod by, in [0, by)."""

    of: Affine
    by: int


@dataclass(frozen=True, slots=True)
class Clamp:
    """min(max(of, lo), hi): an address made safe where a condition decides later."""

    of: Affine
    lo: int
    hi: int


Atom: TypeAlias = Var | Div | Mod | Clamp


@dataclass(frozen=True, slots=True)
class Affine:
    """Sum of coefficient × atom plus a constant. ``terms`` are sorted and have no zero coefficient."""

    terms: tuple[tuple[Atom, int], ...]
    const: int = 0

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.const + other) if other else self
        if not other.terms:
            return self + other.const
        table = dict(self.terms)
        for atom, coef in other.terms:
            table[atom] = table.get(atom, 0) + coef
        return _make(table, self.const + other.const)

    def __sub__(self, other: Affine | int) -> Affine:
        return self + (other * -1 if isinstance(other, Affine) else -other)

    def __mul__(self, factor: int) -> Affine:
        if factor == 0:
            return ZERO
        return Affine(tuple((a, c * factor) for a, c in self.terms), self.const * factor)

    @property
    def is_const(self) -> bool:
        return not self.terms

    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value (both inclusive) over the variables' ranges."""
        low = high = self.const
        for atom, coef in self.terms:
            a, b = _atom_bounds(atom)
            low += coef * (a if coef > 0 else b)
            high += coef * (b if coef > 0 else a)
        return low, high

    def variables(self) -> Iterator[Var]:
        for atom, _ in self.terms:
            if isinstance(atom, Var):
                yield atom
            else:
                yield from atom.of.variables()

    def coefficient(self, name: str) -> int:
        """Coefficient of the plain variable ``name`` (0 when absent or only inside atoms)."""
        return next((c for a, c in self.terms if isinstance(a, Var) and a.name == name), 0)

    @property
    def is_plain(self) -> bool:
        """No division, modulo or clamp left."""
        return all(isinstance(atom, Var) for atom, _ in self.terms)


ZERO = Affine((), 0)


def constant(value: int) -> Affine:
    return Affine((), value)


def variable(var: Var) -> Affine:
    return constant(var.lo) if var.extent == 1 else Affine(((var, 1),))


def floordiv(a: Affine, by: int) -> Affine:
    """floor(a / by) for by ≥ 1, simplified by divisibility and ranges."""
    if by == 1:
        return a
    whole = {atom: c // by for atom, c in a.terms if c % by == 0}
    rest = tuple((atom, c) for atom, c in a.terms if c % by)
    head = _make(whole, a.const // by)
    tail = Affine(rest, a.const % by)
    low, high = tail.bounds()
    if low // by == high // by:
        return head + low // by
    common = math.gcd(by, *(c for _, c in rest))
    if common > 1:
        tail = Affine(tuple((atom, c // common) for atom, c in rest), tail.const // common)
        by //= common
    if len(tail.terms) == 1 and tail.terms[0][1] == 1 and tail.const == 0:
        inner = tail.terms[0][0]
        if isinstance(inner, Div):
            return head + floordiv(inner.of, inner.by * by)
    return head + Affine(((Div(tail, by), 1),))


def modulo(a: Affine, by: int) -> Affine:
    """a mod by for by ≥ 1, simplified by divisibility and ranges."""
    if by == 1:
        return ZERO
    tail = Affine(tuple((atom, c) for atom, c in a.terms if c % by), a.const % by)
    low, high = tail.bounds()
    if low // by == high // by:
        return tail - by * (low // by)
    common = math.gcd(by, *(c for _, c in tail.terms))
    if common > 1:
        # (g·x + r) mod (g·m) = g·(x mod m) + r for 0 ≤ r < g; a larger r gives its multiples of g to x.
        rest = Affine(tuple((atom, c // common) for atom, c in tail.terms), tail.const // common)
        return modulo(rest, by // common) * common + tail.const % common
    return Affine(((Mod(tail, by), 1),))


def clamp(a: Affine, lo: int, hi: int) -> Affine:
    """a limited to [lo, hi]; a itself when its range already lies inside."""
    low, high = a.bounds()
    if lo <= low and high <= hi:
        return a
    return Affine(((Clamp(a, lo, hi), 1),))


def flatten(index: Iterable[Affine], strides: Iterable[int]) -> Affine:
    total = ZERO
    for component, stride in zip(index, strides, strict=True):
        total = total + component * stride
    return total


def unflatten(flat: Affine, shape: tuple[int, ...]) -> tuple[Affine, ...]:
    """Row-major index of position ``flat`` in ``shape``."""
    index: list[Affine] = []
    for size in reversed(shape[1:]):
        index.append(modulo(flat, size))
        flat = floordiv(flat, size)
    return (*([flat] if shape else []), *reversed(index))


def substitute(a: Affine, by: dict[str, Affine]) -> Affine:
    """Replace plain variables by name, re-simplifying every division around them."""
    total = constant(a.const)
    for atom, coef in a.terms:
        if isinstance(atom, Var):
            piece = by.get(atom.name)
            total = total + (piece if piece is not None else Affine(((atom, 1),))) * coef
        elif isinstance(atom, Div):
            total = total + floordiv(substitute(atom.of, by), atom.by) * coef
        elif isinstance(atom, Mod):
            total = total + modulo(substitute(atom.of, by), atom.by) * coef
        else:
            total = total + clamp(substitute(atom.of, by), atom.lo, atom.hi) * coef
    return total


def splits(a: Affine) -> Iterator[tuple[str, int]]:
    """(variable, size) pairs: splitting the variable into (outer, inner < size) removes a division."""
    for atom, _ in a.terms:
        if isinstance(atom, Var):
            continue
        yield from splits(atom.of)
        if isinstance(atom, Clamp):
            continue
        for inner, coef in atom.of.terms:
            if isinstance(inner, Var) and coef > 0 and atom.by % coef == 0:
                size = atom.by // coef
                if inner.lo == 0 and 1 < size < inner.hi and inner.hi % size == 0:
                    yield inner.name, size


def mixed_radix(a: Affine) -> tuple[tuple[Var, int], ...] | None:
    """Variables with strides, slowest first, when ``a`` counts 0 … n-1 exactly once over them.

    That is: strides 1, e₁, e₁·e₂ … of variables starting at 0. None when it does not.
    """
    if a.const or not a.is_plain:
        return None
    ordered = sorted(((atom, c) for atom, c in a.terms if isinstance(atom, Var)), key=lambda t: t[1])
    step = 1
    for var, coef in ordered:
        if coef != step or var.lo != 0:
            return None
        step *= var.hi
    return tuple(reversed(ordered))


def _atom_bounds(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Var):
        return atom.lo, atom.hi - 1
    low, high = atom.of.bounds()
    if isinstance(atom, Div):
        return low // atom.by, high // atom.by
    if isinstance(atom, Clamp):
        return min(max(low, atom.lo), atom.hi), min(max(high, atom.lo), atom.hi)
    return (low, high) if low >= 0 and high < atom.by else (0, atom.by - 1)


def _key(term: tuple[Atom, int]) -> tuple[int, str]:
    atom = term[0]
    if isinstance(atom, Var):
        return 0, atom.name
    return 1, repr(atom)


def _make(table: dict[Atom, int], const: int) -> Affine:
    # k·c·floor(x/c) + k·(x mod c) = k·x
    extra: Affine | None = None
    for atom, coef in list(table.items()):
        if isinstance(atom, Mod) and coef:
            whole = Div(atom.of, atom.by)
            if table.get(whole) == coef * atom.by:
                del table[whole], table[atom]
                extra = (extra or ZERO) + atom.of * coef
    made = Affine(tuple(sorted(((a, c) for a, c in table.items() if c), key=_key)), const)
    return made + extra if extra is not None else made
