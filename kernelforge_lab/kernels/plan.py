"""What a kernel file declares, and what it means for one region: a plan of launches in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from ..exc import KernelSourceError
from .expression import Expression, ExpressionError, unknown_name
from .region import Region
from .spec import itemsize_bytes
from .symbols import region_defines, region_symbols

WORKSPACE_BYTES_MAX: Final = 8 * 2**30

# CUDA's own limits, the same for every SM since 3.0 (Programming Guide, "Compute Capabilities").
GRID_MAX: Final = (2**31 - 1, 65535, 65535)
BLOCK_MAX: Final = (1024, 1024, 64)
BLOCK_THREADS_MAX: Final = 1024
SMEM_BYTES_MAX: Final = 227 * 1024

LaunchArg: TypeAlias = "str | int"


@dataclass(frozen=True)
class Workspace:
    """Scratch memory that lives as long as the kernel; ``numel`` elements of ``dtype`` (torch's name)."""

    name: str
    dtype: str
    numel: Expression
    line: int


@dataclass(frozen=True)
class Launch:
    """One call of ``function``. An arg is a tensor or workspace name, or an integer expression."""

    function: str
    args: tuple[str | Expression, ...]
    line: int
    grid: tuple[Expression, ...] = ()
    block: tuple[Expression, ...] = ()
    smem: Expression | None = None


class ResolvedLaunch(NamedTuple):
    """A launch as numbers. ``args`` are names of tensors and workspaces, or integers (C ``long long``)."""

    function: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    smem_bytes: int
    args: tuple[LaunchArg, ...]


@dataclass(frozen=True)
class LaunchPlan:
    """A kernel file with a region's sizes put in.

    ``defines`` go before the source as ``#define``; ``params`` is the value of every tune line;
    ``workspaces`` are (name, dtype, numel) and ``launches`` run in order.
    """

    target: str
    defines: dict[str, int | str]
    params: dict[str, int]
    workspaces: tuple[tuple[str, str, int], ...]
    launches: tuple[ResolvedLaunch, ...]


@dataclass(frozen=True)
class KernelFile:
    """What the ``// forge:`` lines of a source say. ``tunes`` maps a name to its values, best guess first."""

    source: str
    target: str
    tunes: Mapping[str, tuple[int, ...]]
    workspaces: tuple[Workspace, ...]
    launches: tuple[Launch, ...]
    atomics: bool = False
    ideas: tuple[str, ...] = ()
    tune_lines: Mapping[str, int] = field(default_factory=dict, repr=False)
    target_line: int = 1

    @property
    def idea(self) -> str:
        return " ".join(self.ideas)

    def choose(self, params: Mapping[str, int] | tuple[tuple[str, int], ...] = ()) -> dict[str, int]:
        """A value for every tune line: from ``params``, else its first. Raises KernelSourceError."""
        given = dict(params)
        for name, value in given.items():
            if name not in self.tunes:
                known = ", ".join(self.tunes) or "no parameters: the source has no tune line"
                raise KernelSourceError(1, f"there is no tune line for the parameter {name}", known)
            if value not in self.tunes[name]:
                values = ", ".join(map(str, self.tunes[name]))
                line = self.tune_lines.get(name, 1)
                raise KernelSourceError(line, f"{name}={value} is not one of its tune values", values)
        return {name: given.get(name, values[0]) for name, values in self.tunes.items()}

    def resolve(
        self,
        region: Region,
        params: Mapping[str, int] | tuple[tuple[str, int], ...] = (),
        *,
        threads: int = 1,
    ) -> LaunchPlan:
        """Evaluate every expression for ``region``; ``threads`` becomes ``THREADS_MAX`` (cpu only).

        Raises KernelSourceError: an unknown name, a value out of its limits, an output nobody writes.
        """
        chosen = self.choose(params)
        symbols = {**region_symbols(region), **chosen}
        if self.target == "cpu":
            symbols["THREADS_MAX"] = max(1, threads)
        tensors = {*region.input_names, *region.output_names}
        names = tensors | {w.name for w in self.workspaces}
        workspaces = tuple((w.name, w.dtype, _workspace_numel(w, symbols)) for w in self.workspaces)
        launches = tuple(_resolve_launch(launch, symbols, names) for launch in self.launches)
        passed = {arg for launch in launches for arg in launch.args}
        for name in region.output_names:
            if name not in passed:
                raise KernelSourceError(
                    self.launches[-1].line,
                    f"{name} is not passed to any launch",
                    f"every output ({', '.join(region.output_names)}) among the args",
                )
        return LaunchPlan(self.target, {**region_defines(region), **symbols}, chosen, workspaces, launches)


def _resolve_launch(launch: Launch, symbols: Mapping[str, int], names: set[str]) -> ResolvedLaunch:
    line = launch.line
    args: list[LaunchArg] = []
    for arg in launch.args:
        if isinstance(arg, Expression):
            args.append(_evaluate(line, arg, symbols))
        elif arg in names:
            args.append(arg)
        else:
            error = unknown_name(arg, names)
            raise KernelSourceError(line, f"the region has no {arg}", error.expected)
    grid = tuple(_evaluate(line, e, symbols) for e in launch.grid)
    block = tuple(_evaluate(line, e, symbols) for e in launch.block)
    smem_bytes = _evaluate(line, launch.smem, symbols) if launch.smem else 0
    for key, values, limits in (("grid", grid, GRID_MAX), ("block", block, BLOCK_MAX)):
        for axis, value, limit in zip("xyz", values, limits, strict=False):
            if not 1 <= value <= limit:
                raise KernelSourceError(line, f"{key} {axis} is {value}", f"1 to {limit}")
    threads = 1
    for value in block:
        threads *= value
    if threads > BLOCK_THREADS_MAX:
        raise KernelSourceError(line, f"block has {threads} threads", f"at most {BLOCK_THREADS_MAX}")
    if not 0 <= smem_bytes <= SMEM_BYTES_MAX:
        raise KernelSourceError(line, f"smem is {smem_bytes} bytes", f"0 to {SMEM_BYTES_MAX}")
    return ResolvedLaunch(launch.function, grid, block, smem_bytes, tuple(args))


def _workspace_numel(workspace: Workspace, symbols: Mapping[str, int]) -> int:
    numel = _evaluate(workspace.line, workspace.numel, symbols)
    limit = WORKSPACE_BYTES_MAX // itemsize_bytes(workspace.dtype)
    if not 0 <= numel <= limit:
        raise KernelSourceError(
            workspace.line, f"workspace {workspace.name} has {numel} elements", f"0 to {limit}"
        )
    return numel


def _evaluate(line: int, expression: Expression, symbols: Mapping[str, int]) -> int:
    try:
        return expression.evaluate(symbols)
    except ExpressionError as error:
        raise KernelSourceError(line, error.reason, error.expected) from None
