from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelforge_lab.kernels.expression import (
    DEPTH_MAX,
    LENGTH_MAX,
    ExpressionError,
    parse_expression,
)

SYMBOLS = {"ROWS": 512, "COLS": 2304, "BLOCK": 128, "ZERO": 0, "NEG": -7}


def value(text: str) -> int:
    return parse_expression(text).evaluate(SYMBOLS)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("7", 7),
        ("ROWS", 512),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("100 / 7 / 2", 7),
        ("-7 / 2", -4),
        ("-7 % 3", 2),
        ("7 % -3", -2),
        ("--3", 3),
        ("+ROWS", 512),
        ("cdiv(COLS, 1000)", 3),
        ("cdiv(-7, 2)", -3),
        ("min(ROWS, COLS, 5)", 5),
        ("max(ROWS, COLS)", 2304),
        ("cdiv(ROWS * COLS, BLOCK * 8) + 1", 1153),
        ("  ROWS\t*2 ", 1024),
        ("9223372036854775807", 2**63 - 1),
        ("0009", 9),
    ],
)
def test_evaluates(text: str, expected: int) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    "text, reason, expected",
    [
        ("", "unexpected the end at column 1 of ''", "a number, a name or '('"),
        ("ROWS +", "unexpected the end at column 7 of 'ROWS +'", "a number, a name or '('"),
        ("(ROWS", "unexpected the end at column 6 of '(ROWS'", "an operator or ')'"),
        ("ROWS)", "unexpected ')' at column 5 of 'ROWS)'", "an operator or the end of the expression"),
        ("2 3", "unexpected '3' at column 3 of '2 3'", "an operator or the end of the expression"),
        ("7 // 2", "unexpected '/' at column 4 of '7 // 2'", "a single '/', which already rounds down"),
        ("* 2", "unexpected '*' at column 1 of '* 2'", "a number, a name or '('"),
        (
            "ROWS << 2",
            "unexpected '<' at column 6 of 'ROWS << 2'",
            "integers, names, + - * / %, cdiv, min, max and parentheses",
        ),
        (
            "1.5",
            "unexpected '.' at column 2 of '1.5'",
            "integers, names, + - * / %, cdiv, min, max and parentheses",
        ),
        ("abs(3)", "unknown function 'abs' in 'abs(3)'", "cdiv(a, b), min(a, b) or max(a, b)"),
        ("cdiv(3)", "cdiv got 1 argument", "2 arguments"),
        ("max(3)", "max got 1 argument", "2 to 16 arguments"),
        ("cdiv(1, 2, 3)", "cdiv got 3 arguments", "2 arguments"),
        ("min(1 2)", "unexpected '2' at column 7 of 'min(1 2)'", "an operator, ',' or ')'"),
        ("min(", "unexpected the end at column 5 of 'min('", "a number, a name or '('"),
        ("9223372036854775808", "the number 9223372036854775808 is too large", "a value below 2**63"),
        ("9" * 200, f"the number {'9' * 24} is too large", "a value below 2**63"),
        ("1" + "+1" * 128, "the expression is 257 characters long", "at most 256 characters"),
        ("(" * 33 + "1" + ")" * 33, "the expression nests deeper than 32 levels", "a flatter expression"),
        ("-" * 33 + "1", "the expression nests deeper than 32 levels", "a flatter expression"),
    ],
)
def test_malformed_text_is_refused_when_read(text: str, reason: str, expected: str) -> None:
    with pytest.raises(ExpressionError) as error:
        parse_expression(text)
    assert (error.value.reason, error.value.expected) == (reason, expected)


@pytest.mark.parametrize(
    "text, reason, expected",
    [
        ("ROW", "unknown name 'ROW'", "one of ROWS"),
        ("1 / ZERO", "'1 / ZERO' divides by zero", "a divisor that is not 0 for this region"),
        ("1 % ZERO", "'1 % ZERO' divides by zero", "a divisor that is not 0 for this region"),
        ("cdiv(1, ZERO)", "'cdiv(1, ZERO)' divides by zero", "a divisor that is not 0 for this region"),
        (
            "9223372036854775807 + 1",
            "'9223372036854775807 + 1' overflows: a step of it is 9223372036854775808",
            "values below 2**63",
        ),
        (
            "(9223372036854775807 * 2) / 4",
            "'(9223372036854775807 * 2) / 4' overflows: a step of it is 18446744073709551614",
            "values below 2**63",
        ),
    ],
)
def test_impossible_values_are_refused_when_evaluated(text: str, reason: str, expected: str) -> None:
    with pytest.raises(ExpressionError) as error:
        value(text)
    assert (error.value.reason, error.value.expected) == (reason, expected)


def test_an_unknown_name_without_a_near_one_lists_some() -> None:
    with pytest.raises(ExpressionError, match=r"\(expected one of BLOCK, COLS, NEG, ROWS, ZERO\)"):
        value("QQQQ")


def test_names_are_those_read() -> None:
    assert parse_expression("cdiv(ROWS, BLOCK) + min(ROWS, 3)").names == {"ROWS", "BLOCK"}


def test_the_deepest_and_longest_allowed_are_answered() -> None:
    assert value("(" * DEPTH_MAX + "1" + ")" * DEPTH_MAX) == 1
    assert value("1" + "+1" * ((LENGTH_MAX - 1) // 2)) == 1 + (LENGTH_MAX - 1) // 2


# A random expression as (our text, the same in Python).
LEAVES = st.one_of(
    st.integers(0, 10**6).map(lambda n: (str(n), str(n))),
    st.sampled_from(sorted(SYMBOLS)).map(lambda name: (name, f"({SYMBOLS[name]})")),
)
PYTHON = {"+": "+", "-": "-", "*": "*", "/": "//", "%": "%"}


def _grow(children: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
    binary = st.tuples(children, st.sampled_from("+-*/%"), children).map(
        lambda t: (f"({t[0][0]} {t[1]} {t[2][0]})", f"({t[0][1]} {PYTHON[t[1]]} {t[2][1]})")
    )
    flat = st.tuples(LEAVES, st.sampled_from("+-*/%"), LEAVES).map(
        lambda t: (f"{t[0][0]}{t[1]}{t[2][0]}", f"{t[0][1]} {PYTHON[t[1]]} {t[2][1]}")
    )
    negated = children.map(lambda c: (f"-({c[0]})", f"-({c[1]})"))
    call = st.tuples(st.sampled_from(["min", "max", "cdiv"]), children, children).map(
        lambda t: (f"{t[0]}({t[1][0]}, {t[2][0]})", f"{t[0]}({t[1][1]}, {t[2][1]})")
    )
    return st.one_of(binary, flat, negated, call)


@given(st.recursive(LEAVES, _grow, max_leaves=12))
def test_agrees_with_pythons_own_arithmetic(pair: tuple[str, str]) -> None:
    ours, python = pair
    try:
        expected = eval(python, {"cdiv": lambda a, b: -(-a // b)})
    except ZeroDivisionError:
        with pytest.raises(ExpressionError):
            value(ours)
        return
    try:
        assert value(ours) == expected
    except ExpressionError as error:
        assert "overflows" in error.reason or "characters long" in error.reason


@given(st.text(alphabet="ROWS019+-*/%(), cdivmna\t'\"[]_.ü\n", max_size=300))
def test_any_text_gives_a_number_or_an_expression_error(text: str) -> None:
    try:
        result = value(text)
    except ExpressionError:
        return
    assert abs(result) < 2**63
