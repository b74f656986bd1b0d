"""The cpu target: kernels are C++/OpenMP, compiled by g++ or clang++ and called through ctypes.

Torch is never imported here: the process that runs candidates has none.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..exc import CompileError, ForgeError, KernelSourceError
from ..kernels.format import parse
from ..kernels.kernel import Kernel
from ..kernels.region import Region
from ..kernels.spec import itemsize_bytes
from . import cache
from .base import Built, DeviceInfo
from .cpu_device import cpu_device, default_threads, instruction_set
from .cpu_prelude import prelude, prelude_header
from .cpu_source import ENTRY, translation_unit
from .elf import read_shared_object
from .imports import foreign_symbols
from .openmp import share_openmp_runtime
from .scratch import Scratch
from .toolchain import Compiler, find_compiler

_OPTIMISE: Final = (
    "-O3", "-std=c++17", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast",
    # Hidden symbols: functions are free to be inlined into the entry point, twins have equal bytes.
    "-fvisibility=hidden",
)  # fmt: skip
_REPORT: Final = ("-w", "-fdiagnostics-color=never")
_IS_MAC: Final = sys.platform == "darwin"
# Apple's clang knows -mcpu=native only, and has OpenMP without its driver knowing.
_MACHINE: Final = ("-mcpu=native", "-Xclang", "-fopenmp") if _IS_MAC else ("-march=native", "-fopenmp")
_LINK: Final = ("-shared", "-undefined", "dynamic_lookup") if _IS_MAC else ("-shared", "-s")


@dataclass(frozen=True)
class CpuTarget:
    """``limit`` is the number of threads kernels may use; None: all this process may use."""

    limit: int | None = None

    @property
    def name(self) -> str:
        return "cpu"

    @property
    def threads(self) -> int:
        return self.limit or default_threads()

    def device(self) -> DeviceInfo:
        return cpu_device(self.threads)

    def build(self, kernel: Kernel, region: Region) -> Built:
        """Compile ``kernel`` for ``region``, or take it from the cache.

        Raises KernelSourceError, CompileError (the compiler's words) or NoCompilerError.
        """
        file = parse(kernel.source)
        if file.target != self.name:
            raise KernelSourceError(file.target_line, f"the kernel is for {file.target}", "target cpu")
        plan = file.resolve(region, kernel.params, threads=self.threads)
        tensors = (*region.input_names, *region.output_names)
        compiler = find_compiler()
        flags = _flags(compiler)
        unit = translation_unit(file, plan, tensors)
        key = cache.content_key(compiler.version, " ".join(flags), instruction_set(), prelude(), unit)
        entry = cache.look_up("cpu", key)
        notes = entry.notes if entry else {}
        if entry is None:
            try:
                entry = _compile(compiler, flags, unit, key)
            except OSError as error:
                where = f"Free space in {cache.cache_root()}, or set KERNELFORGE_CACHE to another place."
                raise ForgeError(f"A built kernel cannot be kept: {error.strerror}.", where) from error
        return Built(
            path=str(entry.binary),
            plan=plan,
            tensors=tensors,
            # A twin must also need the same scratch memory: its size is not in the code.
            binary_hash=cache.content_key(entry.notes["code"], repr(plan.workspaces))[:16],
            compile_s=entry.notes["compile_s"],
            log=entry.notes["log"],
            resources={"text_bytes": float(entry.notes["text_bytes"])},
            foreign=tuple(entry.notes["foreign"]),
            cached=bool(notes),
        )

    def load(self, built: Built) -> CpuLauncher:
        """Load into this process. Raises CompileError when the binary cannot be loaded."""
        share_openmp_runtime(_family(built))
        try:
            # RTLD_LOCAL (the default): kernels never see each other's symbols.
            function = getattr(ctypes.CDLL(built.path), ENTRY)
        except (OSError, AttributeError) as error:
            raise CompileError(f"The built kernel cannot be loaded: {error}.") from None
        return CpuLauncher(function, built)


class CpuLauncher:
    """A loaded kernel: a call with four tensors costs 0.2 µs (measured: CPython 3.11, ctypes)."""

    def __init__(self, function: Any, built: Built) -> None:
        self._names = built.tensors
        sizes = {name: numel * itemsize_bytes(dtype) for name, dtype, numel in built.plan.workspaces}
        self._scratch = Scratch(sizes)
        function.argtypes = [ctypes.c_void_p] * (len(sizes) + len(self._names))
        function.restype = None
        self._function: Callable[..., None] = function

    def __call__(self, pointers: Mapping[str, int]) -> Callable[[], None]:
        """Bind addresses by name (every tensor; a workspace only to replace the own one)."""
        own = self._scratch.addresses
        self._check_names([name for name in pointers if name not in own])
        table = {**own, **pointers}
        bound = partial(self._function, *(ctypes.c_void_p(table[name]) for name in (*own, *self._names)))
        return self._keeping_scratch(bound)

    def bind_names(self, order: Sequence[str]) -> Callable[..., None]:
        """A callable of the tensors' addresses, positionally, in ``order``."""
        self._check_names(order)
        scratch = [ctypes.c_void_p(address) for address in self._scratch.addresses.values()]
        fast = self._keeping_scratch(partial(self._function, *scratch)) if scratch else self._function
        if tuple(order) == self._names:
            return fast
        places = [list(order).index(name) for name in self._names]
        return lambda *addresses: fast(*[addresses[i] for i in places])

    def _keeping_scratch(self, bound: partial[None]) -> partial[None]:
        # The workspaces must outlive whoever still holds the callable and dropped the launcher.
        bound.scratch = self._scratch  # type: ignore[attr-defined]
        return bound

    def _check_names(self, given: Sequence[str]) -> None:
        if sorted(given) != sorted(self._names):
            wanted, got = ", ".join(self._names), ", ".join(given)
            raise ValueError(f"a launcher takes each of {wanted} once, but was given {got or 'nothing'}")


def build_flags() -> list[str]:
    """How an exported kernel is built elsewhere: into a shared object, by a compiler not known yet."""
    return [*_OPTIMISE, *_MACHINE, "-w", *_LINK]


def _flags(compiler: Compiler) -> list[str]:
    errors = "-fmax-errors=8" if compiler.family == "gcc" else "-ferror-limit=8"
    return [*_OPTIMISE, *_MACHINE, *_REPORT, errors]


def _compile(compiler: Compiler, flags: list[str], unit: str, key: str) -> cache.Entry:
    header = prelude_header(compiler, flags)
    with tempfile.TemporaryDirectory(prefix="kernelforge-") as folder:
        output = Path(folder) / "kernel.so"
        start = time.perf_counter()
        log = compiler.run([*flags, *_LINK, "-include", header, "-o", str(output), "-x", "c++", "-"], unit)
        compile_s = time.perf_counter() - start
        facts = read_shared_object(output)
        notes: dict[str, Any] = {"compile_s": compile_s, "log": log, "foreign": []}
        if facts is None:
            # No ELF: twins are then only found when the whole file is equal.
            notes |= {"code": cache.file_hash(output), "text_bytes": output.stat().st_size}
        else:
            if ENTRY not in facts.exports:
                raise CompileError(
                    "The source swallows what follows it.", "Close every brace, comment and #if of the file."
                )
            constructors = ["a constructor"] if facts.constructors else []
            notes |= {"code": facts.code_hash, "text_bytes": facts.text_bytes}
            notes["foreign"] = [*foreign_symbols(facts.imports), *constructors]
        return cache.put("cpu", key, output, notes)


def _family(built: Built) -> str:
    """The compiler family that built the binary, from the OpenMP symbols it imports."""
    facts = read_shared_object(Path(built.path))
    is_clang = facts is not None and any(name.startswith("__kmpc") for name in facts.imports)
    return "clang" if is_clang or _IS_MAC else "gcc"
