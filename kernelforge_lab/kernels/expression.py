"""Integer expressions of launch lines, evaluated by our own small evaluator (never ``eval``).

Grammar: integers, names, ``+ - * / %``, parentheses, ``cdiv(a, b)``, ``min(a, b, …)``, ``max(a, b, …)``.
``/`` rounds towards minus infinity and ``%`` has the sign of its right side, as Python's ``//`` and ``%``.
Text length, nesting and every intermediate value are bounded, so any text is answered in microseconds.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

LENGTH_MAX: Final = 256
DEPTH_MAX: Final = 32
# Arguments travel as C ``long long``; every intermediate value must fit as well.
MAGNITUDE_MAX: Final = 2**63 - 1

# function -> (fewest arguments, most arguments)
_FUNCTIONS: Final = {"cdiv": (2, 2), "min": (2, 16), "max": (2, 16)}
_TOKEN: Final = re.compile(r"[ \t]*(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|([-+*/%(),]))", re.ASCII)
_NAMES_SHOWN: Final = 8
_OPERAND: Final = "a number, a name or '('"

Node: TypeAlias = "int | str | tuple[str, tuple[Node, ...]]"


class ExpressionError(ValueError):
    """``reason`` says what is wrong and where, ``expected`` what would have been right."""

    def __init__(self, reason: str, expected: str = "") -> None:
        super().__init__(f"{reason} (expected {expected})" if expected else reason)
        self.reason = reason
        self.expected = expected


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression: its text as written and its tree."""

    text: str
    root: Node

    @property
    def names(self) -> frozenset[str]:
        """Every symbol the expression reads."""
        return frozenset(_names(self.root))

    def evaluate(self, symbols: Mapping[str, int]) -> int:
        """The value. Raises ExpressionError for an unknown name, a division by zero or an overflow."""
        return _evaluate(self.root, symbols, self.text)


def parse_expression(text: str) -> Expression:
    """Read ``text``. Raises ExpressionError with the column (from 1) of the first thing not understood."""
    if len(text) > LENGTH_MAX:
        raise ExpressionError(
            f"the expression is {len(text)} characters long", f"at most {LENGTH_MAX} characters"
        )
    parser = _Parser(text)
    root = parser.sum(0)
    if parser.kind != "end":
        parser.fail("an operator or the end of the expression")
    return Expression(text.strip(), root)


class _Parser:
    """Recursive descent over one line of text; ``kind`` and ``value`` are the token looked at."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.kind = ""
        self.value = ""
        self.column = 0
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.at)
        if match is not None:
            self.column = match.start(match.lastindex or 0) + 1
            self.at = match.end()
            self.kind = ("", "number", "name", "sign")[match.lastindex or 0]
            self.value = match.group(match.lastindex or 0)
            return
        rest = self.text[self.at :].lstrip(" \t")
        self.column = len(self.text) - len(rest) + 1
        if rest:
            raise ExpressionError(
                f"unexpected {rest[0]!r} at column {self.column} of {self.text.strip()!r}",
                "integers, names, + - * / %, cdiv, min, max and parentheses",
            )
        self.kind, self.value = "end", ""

    def fail(self, expected: str) -> NoReturn:
        seen = repr(self.value) if self.kind != "end" else "the end"
        if self.value == "/" and self.text[self.at - 2 : self.at - 1] == "/":
            expected = "a single '/', which already rounds down"
        raise ExpressionError(f"unexpected {seen} at column {self.column} of {self.text.strip()!r}", expected)

    def take(self, sign: str, expected: str) -> None:
        if self.kind != "sign" or self.value != sign:
            self.fail(expected)
        self.advance()

    def sum(self, depth: int) -> Node:
        left = self.product(depth)
        while self.kind == "sign" and self.value in "+-":
            operator = self.value
            self.advance()
            left = (operator, (left, self.product(depth)))
        return left

    def product(self, depth: int) -> Node:
        left = self.operand(depth)
        while self.kind == "sign" and self.value in "*/%":
            operator = self.value
            self.advance()
            left = (operator, (left, self.operand(depth)))
        return left

    def operand(self, depth: int) -> Node:
        if depth > DEPTH_MAX:
            raise ExpressionError(
                f"the expression nests deeper than {DEPTH_MAX} levels", "a flatter expression"
            )
        kind, value = self.kind, self.value
        if kind == "number":
            self.advance()
            # The length test comes first: int() of a huge literal is slow, or refused by Python.
            digits = value.lstrip("0") or "0"
            if len(digits) > 19 or int(digits) > MAGNITUDE_MAX:
                raise ExpressionError(f"the number {digits[:24]} is too large", "a value below 2**63")
            return int(digits)
        if kind == "name":
            self.advance()
            if self.kind == "sign" and self.value == "(":
                return self.call(value, depth)
            return value
        if kind == "sign" and value in "+-":
            self.advance()
            inner = self.operand(depth + 1)
            return ("neg", (inner,)) if value == "-" else inner
        if kind == "sign" and value == "(":
            self.advance()
            inner = self.sum(depth + 1)
            self.take(")", "an operator or ')'")
            return inner
        return self.fail(_OPERAND)

    def call(self, name: str, depth: int) -> Node:
        if name not in _FUNCTIONS:
            raise ExpressionError(
                f"unknown function {name!r} in {self.text.strip()!r}", "cdiv(a, b), min(a, b) or max(a, b)"
            )
        self.advance()
        args = [self.sum(depth + 1)]
        while self.kind == "sign" and self.value == ",":
            self.advance()
            args.append(self.sum(depth + 1))
        self.take(")", "an operator, ',' or ')'")
        fewest, most = _FUNCTIONS[name]
        if not fewest <= len(args) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise ExpressionError(
                f"{name} got {len(args)} argument{'s' if len(args) != 1 else ''}", f"{wanted} arguments"
            )
        return (name, tuple(args))


def _names(node: Node) -> Iterable[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, tuple):
        for child in node[1]:
            yield from _names(child)


def _evaluate(node: Node, symbols: Mapping[str, int], text: str) -> int:
    if isinstance(node, int):
        return node
    if isinstance(node, str):
        if node not in symbols:
            raise unknown_name(node, symbols)
        return symbols[node]
    operator, children = node
    args = [_evaluate(child, symbols, text) for child in children]
    value = _apply(operator, args, text)
    if abs(value) > MAGNITUDE_MAX:
        raise ExpressionError(f"{text!r} overflows: a step of it is {value}", "values below 2**63")
    return value


def _apply(operator: str, args: list[int], text: str) -> int:
    if operator in "/%" or operator == "cdiv":
        if args[1] == 0:
            raise ExpressionError(f"{text!r} divides by zero", "a divisor that is not 0 for this region")
        if operator == "%":
            return args[0] % args[1]
        return args[0] // args[1] if operator == "/" else -(-args[0] // args[1])
    if operator == "+":
        return args[0] + args[1]
    if operator == "-":
        return args[0] - args[1]
    if operator == "*":
        return args[0] * args[1]
    if operator == "neg":
        return -args[0]
    return min(args) if operator == "min" else max(args)


def unknown_name(name: str, known: Iterable[str]) -> ExpressionError:
    """The error for a name that is not among ``known``, with the nearest ones as what was expected."""
    names = sorted(known)
    near = sorted(difflib.get_close_matches(name, names, n=3))
    more = "" if near or len(names) <= _NAMES_SHOWN else ", …"
    near = near or names[:_NAMES_SHOWN]
    return ExpressionError(f"unknown name {name!r}", "one of " + ", ".join(near) + more if near else "")
