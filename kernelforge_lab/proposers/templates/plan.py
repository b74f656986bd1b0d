"""The loop nests a kernel is made of: what the schedule decides and a printer writes down.

A printer (C++ here, CUDA beside it) reads only this; no analysis is left to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .expr import Expr
from .index import Affine, Var
from .tensor import Reduce


@dataclass(frozen=True)
class Strategy:
    """Choices of the schedule. One named combination is one action of the search tree.

    ``target``: which printer it is for. ``fuse_rows``: reductions and what follows them share one loop
    over rows. ``cache``: which values a row keeps between its passes: none (recompute), heavy (exp,
    erf …) or all. ``lanes``: vectorise over neighbouring rows instead of along the row. ``split``:
    threads share one row instead of taking rows each. ``tile``: block transposing loops. ``moments``:
    mean and variance in one sweep. ``stream``: results, and inputs that are read for the last time,
    leave the caches first. ``cluster``: the blocks of a row form a cluster that keeps it in shared memory.
    ``relay``: resident blocks take the statistics of the next rows while finishing the rows before.
    """

    name: str
    idea: str
    fuse_rows: bool = True
    cache: str = "none"
    lanes: bool = False
    split: bool = False
    tile: bool = False
    moments: bool = False
    stream: bool = False
    cluster: bool = False
    relay: bool = False
    target: str = "cpu"


@dataclass(frozen=True)
class Store:
    """``buffer[address] = value``, rounded to ``dtype`` (torch name)."""

    buffer: str
    address: Affine
    dtype: str
    value: Expr


@dataclass(frozen=True)
class Accumulate:
    """Fold ``value`` into ``reduce``; ``place`` is its position among the reduced (for argmax).

    With ``moments`` the value is not the squared distance itself but what the distance is taken of.
    """

    reduce: Reduce
    value: Expr
    place: Affine
    moments: bool = False


@dataclass
class Segment:
    """A box of a pass's loops (outermost first) in which no index condition changes."""

    loops: list[Var]
    accumulates: list[Accumulate] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)


@dataclass
class Pass:
    """One sweep over the inner loops of a row. ``finished`` are the reductions it completes."""

    segments: list[Segment]
    finished: list[Reduce] = field(default_factory=list)
    tile: tuple[str, str] | None = None


@dataclass(frozen=True)
class RowBuffer:
    """Scratch of one row: values kept from one pass to the next, in elements of ``dtype``."""

    name: str
    dtype: str
    size: int


@dataclass
class Nest:
    """Parallel loops over rows around passes. ``lane``: the row variable that is vectorised over."""

    rows: list[Var]
    passes: list[Pass]
    buffers: list[RowBuffer] = field(default_factory=list)
    lane: Var | None = None
    split: bool = False

    @property
    def row_count(self) -> int:
        total = 1
        for var in self.rows:
            total *= var.extent
        return total


@dataclass(frozen=True)
class Workspace:
    """A buffer between nests: one value per row of a reduction."""

    name: str
    dtype: str
    numel: int


@dataclass
class Plan:
    """All nests, in order.

    ``shared``: reductions that other nests read, with their workspace. ``row_names``: the scalar of a
    nest that holds a reduction's value.
    """

    nests: list[Nest]
    shared: dict[Reduce, Workspace]
    row_names: dict[Reduce, str]
