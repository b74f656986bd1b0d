"""A region: a fusible piece of a model's functional ATen graph, as plain data.

Torch-free on purpose: a region travels to workers, into the store and into reports as its own
canonical text, and is hashed from it. ``kernels.execution`` turns one back into something callable.

Text form (names are canonical, so equal regions of different models have equal text)::

    region(in0: f32[512,2304], in1: f32[2304]) {
      t0 = aten.pow.Tensor_Scalar(in0, 2) : f32[512,2304]
      t1 = aten.mean.dim(t0, [-1], True) : f32[512,1]
      return t1
    }
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from .spec import TensorSpec


@dataclass(frozen=True, slots=True)
class Ref:
    """A use of a tensor value by its canonical name (``in0``, ``t3``, or ``t3.1`` of a tuple)."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A torch constant that is not a number: ``dtype``, ``layout``, ``device`` or ``memory_format``.

    ``kind`` is one of those four words, ``value`` torch's own name (``bfloat16``, ``strided``,
    ``cpu``, ``contiguous_format``).
    """

    kind: str
    value: str


Arg: TypeAlias = "Ref | Symbol | int | float | bool | str | None | tuple[Arg, ...]"


@dataclass(frozen=True, slots=True)
class Op:
    """One ATen call. ``outs`` has one spec per result; ``is_tuple`` when ATen returns a tuple.

    A result that nothing uses may have no spec (None).
    """

    name: str
    target: str
    args: tuple[Arg, ...]
    kwargs: tuple[tuple[str, Arg], ...]
    outs: tuple[TensorSpec | None, ...]
    is_tuple: bool = False

    @property
    def short_name(self) -> str:
        """``native_layer_norm`` of ``aten.native_layer_norm.default``."""
        return self.target.split(".")[1]

    def refs(self) -> Iterator[str]:
        for arg in (*self.args, *(value for _, value in self.kwargs)):
            yield from _refs(arg)


@dataclass(frozen=True)
class Region:
    """Inputs with specs, ops in topological order, and the names of the values returned."""

    inputs: tuple[TensorSpec, ...]
    ops: tuple[Op, ...]
    results: tuple[str, ...]

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(f"in{i}" for i in range(len(self.inputs)))

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(f"out{i}" for i in range(len(self.results)))

    @cached_property
    def specs(self) -> dict[str, TensorSpec]:
        """Spec of every named value."""
        table = dict(zip(self.input_names, self.inputs, strict=True))
        for op in self.ops:
            for k, spec in enumerate(op.outs):
                if spec is not None:
                    table[f"{op.name}.{k}" if op.is_tuple else op.name] = spec
        return table

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return tuple(self.specs[name] for name in self.results)

    @property
    def title(self) -> str:
        """A few op names for people: ``add·pow·mean·mul``."""
        seen = dict.fromkeys(op.short_name.strip("_") for op in self.ops)
        names = [n for n in seen if n not in _QUIET] or list(seen)
        return "·".join(names[:5]) + ("·…" if len(names) > 5 else "")

    @property
    def bytes_floor(self) -> int:
        """Bytes that must move at least: each input read once, each output written once."""
        return sum(s.bytes_touched for s in (*self.inputs, *self.outputs))

    @cached_property
    def text(self) -> str:
        params = ", ".join(f"in{i}: {spec}" for i, spec in enumerate(self.inputs))
        lines = [f"region({params}) {{"]
        for op in self.ops:
            args = [_show(a) for a in op.args] + [f"{k}={_show(v)}" for k, v in op.kwargs]
            specs = ", ".join("_" if s is None else str(s) for s in op.outs)
            specs = f"({specs})" if op.is_tuple else specs
            lines.append(f"  {op.name} = {op.target}({', '.join(args)}) : {specs}")
        lines += [f"  return {', '.join(self.results)}", "}"]
        return "\n".join(lines)

    @cached_property
    def hash(self) -> str:
        """First 12 hex digits of the SHA-256 of the canonical text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]

    @classmethod
    def parse(cls, text: str) -> Region:
        """Inverse of ``text``. Raises ValueError naming the line that could not be read."""
        lines = [line.strip() for line in text.strip().splitlines()]
        head = re.fullmatch(r"region\((.*)\) \{", lines[0]) if lines else None
        if head is None or lines[-1] != "}" or not lines[-2].startswith("return"):
            raise ValueError("not a region: expected 'region(…) {', ops, 'return …' and '}'")
        params = [p for p in re.split(r", (?=in\d+:)", head[1]) if p]
        inputs = tuple(TensorSpec.parse(p.split(":", 1)[1]) for p in params)
        ops = tuple(_parse_op(line) for line in lines[1:-2])
        results = tuple(r.strip() for r in lines[-2][len("return") :].split(",") if r.strip())
        region = cls(inputs, ops, results)
        unknown = [r for r in results if r not in region.specs]
        if unknown:
            raise ValueError(f"region returns {unknown[0]!r}, which no line defines")
        return region

    def __hash__(self) -> int:
        return hash(self.text)


_QUIET = frozenset(
    "view unsafe_view t transpose permute unsqueeze squeeze expand slice select alias to_copy clone".split()
)


def _refs(arg: Arg) -> Iterator[str]:
    if isinstance(arg, Ref):
        yield arg.name
    elif isinstance(arg, tuple):
        for item in arg:
            yield from _refs(item)


def _show(arg: Arg) -> str:
    if isinstance(arg, Ref):
        return arg.name
    if isinstance(arg, Symbol):
        return f"{arg.kind}:{arg.value}"
    if isinstance(arg, tuple):
        return "[" + ", ".join(map(_show, arg)) + "]"
    if isinstance(arg, float) and (arg != arg or abs(arg) == float("inf")):
        return f"float:{arg}"
    return repr(arg)


_OP_LINE = re.compile(r"(t\d+) = ([\w.]+)\((.*)\) : (.*)")
_SYMBOL = re.compile(r"\b(dtype|layout|device|memory_format|float):([\w:.\-]+)")


def _parse_op(line: str) -> Op:
    match = _OP_LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"not a region line: {line!r} (expected 't0 = aten.op.overload(…) : spec')")
    name, target, call, specs = match.groups()
    # Names, symbols and literals form a Python call expression once symbols are quoted.
    source = _SYMBOL.sub(lambda m: f"__symbol__({m[1]!r}, {m[2]!r})", call)
    source = re.sub(r"\b(t\d+)\.(\d+)\b", r"__item__(\1, \2)", source)
    try:
        tree = ast.parse(f"f({source})", mode="eval").body
        assert isinstance(tree, ast.Call)
        args = tuple(_from_ast(a) for a in tree.args)
        kwargs = tuple((k.arg or "", _from_ast(k.value)) for k in tree.keywords)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"cannot read the arguments of {line!r}: {error}") from None
    is_tuple = specs.startswith("(")
    parts = re.split(r", (?![^\[]*\])", specs[1:-1] if is_tuple else specs)
    outs = tuple(None if p.strip() == "_" else TensorSpec.parse(p) for p in parts if p.strip())
    return Op(name, target, args, kwargs, outs, is_tuple)


def _from_ast(node: ast.expr) -> Arg:
    if isinstance(node, ast.Name):
        return Ref(node.id)
    if isinstance(node, ast.List):
        return tuple(_from_ast(item) for item in node.elts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "__item__":
            base, item = node.args
            assert isinstance(base, ast.Name)
            return Ref(f"{base.id}.{ast.literal_eval(item)}")
        kind, value = (ast.literal_eval(a) for a in node.args)
        return float(value) if kind == "float" else Symbol(kind, value)
    value = ast.literal_eval(node)
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    raise ValueError(f"unexpected {ast.unparse(node)}")
