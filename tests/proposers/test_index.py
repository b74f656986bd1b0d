"""Index algebra: every simplification keeps the value at every point."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from kernelforge_lab.proposers.templates.index import (
    Affine,
    Clamp,
    Div,
    Mod,
    Var,
    clamp,
    constant,
    floordiv,
    mixed_radix,
    modulo,
    splits,
    substitute,
    unflatten,
    variable,
)

VARS = (Var("a", 0, 6), Var("b", 0, 4), Var("c", 2, 5))


def value(a: Affine, at: dict[str, int]) -> int:
    total = a.const
    for atom, coef in a.terms:
        if isinstance(atom, Var):
            total += coef * at[atom.name]
        elif isinstance(atom, Div):
            total += coef * (value(atom.of, at) // atom.by)
        elif isinstance(atom, Mod):
            total += coef * (value(atom.of, at) % atom.by)
        else:
            assert isinstance(atom, Clamp)
            total += coef * min(max(value(atom.of, at), atom.lo), atom.hi)
    return total


def points() -> list[dict[str, int]]:
    ranges = [range(v.lo, v.hi) for v in VARS]
    return [dict(zip("abc", p, strict=True)) for p in itertools.product(*ranges)]


def affines() -> st.SearchStrategy[Affine]:
    coefs = st.lists(st.integers(-12, 12), min_size=3, max_size=3)

    def build(parts: tuple[list[int], int]) -> Affine:
        total = constant(parts[1])
        for var, coef in zip(VARS, parts[0], strict=True):
            total = total + variable(var) * coef
        return total

    return st.tuples(coefs, st.integers(-20, 20)).map(build)


@given(affines(), st.integers(1, 12), st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_division_and_modulo_keep_their_value(a: Affine, by: int, again: int) -> None:
    quotient, rest = floordiv(a, by), modulo(a, by)
    for at in points():
        x = value(a, at)
        assert value(quotient, at) == x // by
        assert value(rest, at) == x % by
        assert value(floordiv(quotient, again), at) == (x // by) // again
        assert value(quotient * by + rest, at) == x


@given(affines(), st.integers(1, 9))
@settings(max_examples=100, deadline=None)
def test_bounds_contain_every_value(a: Affine, by: int) -> None:
    for form in (a, floordiv(a, by), modulo(a, by), clamp(a, -3, 7)):
        low, high = form.bounds()
        assert all(low <= value(form, at) <= high for at in points())


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 2))
@settings(deadline=None)
def test_unflattening_a_whole_range_needs_no_division_after_splitting(shape: list[int], extra: int) -> None:
    total = 1
    for n in shape:
        total *= n
    flat = Var("f", 0, total * (extra + 1))
    index = unflatten(variable(flat), (extra + 1, *shape))
    for at in range(flat.hi):
        back = 0
        for component, size in zip(index, (extra + 1, *shape), strict=True):
            back = back * size + value(component, {"f": at})
        assert back == at


def test_splitting_a_loop_removes_the_division_it_was_asked_for() -> None:
    a = floordiv(variable(Var("x", 0, 24)), 8)
    assert list(splits(a)) == [("x", 8)]
    outer, inner = Var("xo", 0, 3), Var("xi", 0, 8)
    assert substitute(a, {"x": variable(outer) * 8 + variable(inner)}) == variable(outer)


def test_mixed_radix_accepts_only_a_count_of_every_number_once() -> None:
    a, b = Var("a", 0, 6), Var("b", 0, 4)
    assert mixed_radix(variable(a) * 4 + variable(b)) == ((a, 4), (b, 1))
    assert mixed_radix(variable(a) * 5 + variable(b)) is None
    assert mixed_radix(variable(a) * 4 + variable(b) + 1) is None
    assert mixed_radix(variable(Var("c", 2, 5))) is None
