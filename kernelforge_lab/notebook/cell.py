"""Run a cell's code once, as ``%%time`` does: same namespace, same tracebacks, its last value kept."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from .calls import Noticed, notice_calls


@dataclass(frozen=True)
class CellResult:
    """``value`` of the cell's last expression (None without one); ``quiet`` when it ends with ``;``."""

    value: Any
    quiet: bool
    calls: Noticed
    defines: frozenset[str]


def run_cell(shell: Any, cell: str) -> CellResult:
    """Execute ``cell`` in the person's namespace, noticing model calls.

    Exceptions, KeyboardInterrupt included, propagate as the person's own: their lines are registered with
    the shell's compiler and our frames are hidden. ``shell.run_cell`` would show values and tracebacks twice.
    """
    __tracebackhide__ = True
    code = shell.transform_cell(cell)
    name = shell.compile.cache(code, shell.execution_count, raw_code=cell)
    parsed = shell.compile.ast_parse(code, filename=name)
    defines = frozenset(_defined(parsed))
    tree = shell.transform_ast(parsed)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    namespace = shell.user_ns
    value = None
    with notice_calls() as calls:
        exec(shell.compile(tree, name, "exec"), namespace)  # noqa: S102 - the person's own cell
        if last is not None:
            value = eval(shell.compile(ast.Expression(last.value), name, "eval"), namespace)  # noqa: S307
    return CellResult(value, cell.rstrip().endswith(";"), calls, defines)


def _defined(tree: ast.Module) -> list[str]:
    """Names of the functions and classes that the cell's top level defines."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return [node.name for node in tree.body if isinstance(node, kinds)]
