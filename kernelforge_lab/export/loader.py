"""Kernels exported by kernelforge-lab. Needs torch alone and, for cpu kernels, a C++ compiler.

kernelforge-lab itself is not needed. The folder is a package, under whatever name it has::

    import my_kernels as forged

    fast = forged.apply(model)                 # torch.compile with the kernels in place, PyTorch elsewhere
    forged.kernelize(model)                    # or: layers whose whole forward is one kernel use it
    (y,) = forged.kernels["HASH"](x, weight)   # or: one kernel; what does not fit runs PyTorch, counted
    y = forged.ops["HASH"](x, weight)          # or: an operator, for torch.compile, torch.export, autograd

``manifest.json`` says what each kernel computes, for which shapes, and how it was proven.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
MANIFEST: dict[str, Any] = json.loads((HERE / "manifest.json").read_text())
NAMESPACE: str = MANIFEST["namespace"]
_ALIGN_BYTES = 64
_UNITS_APART = 64.0  # relative L2 distance from PyTorch allowed on the first call, in epsilons of the dtype


class Kernel:
    """One region's kernel. Call it with the region's inputs; it returns a tuple of its outputs.

    Inputs of another shape, layout, dtype or device run the same ATen operators in PyTorch; ``counts``
    says how often and why. The first call is compared with PyTorch: a kernel that disagrees here is off.
    """

    def __init__(self, entry: dict[str, Any]) -> None:
        self.entry = entry
        self.hash: str = entry["hash"]
        self.__name__ = f"r_{self.hash}"  # what a graph prints where it calls the kernel
        self.counts: Counter[str] = Counter()
        self._outs = [(o["shape"], o["strides"], getattr(torch, o["dtype"])) for o in entry["outputs"]]
        self.fits = [_fit(spec) for spec in entry["inputs"]]
        self._scratch = [(max(n, 1), getattr(torch, dtype)) for _, dtype, n in entry["workspaces"]]
        self._lock = threading.Lock()
        self._launch: Callable[..., None] | None = None
        self._off = ""

    def __call__(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        reason = self._off or self.misfit(inputs)
        if not reason and self._launch is None:
            reason = self._prove(inputs)
        if reason:
            self.counts[reason] += 1
            return self.stock(*inputs)
        self.counts["kernel"] += 1
        return self._run(inputs)

    def misfit(self, inputs: tuple[torch.Tensor, ...]) -> str:
        """Why these tensors are not what the kernel was made for, or ""."""
        for tensor, fit in zip(inputs, self.fits, strict=True):
            reason = fit(tensor)
            if reason:
                return reason
        if self.entry["aligned"]:
            pairs = zip(inputs, self.entry["inputs"], strict=True)
            if any((t.data_ptr() - s["offset"] * t.element_size()) % _ALIGN_BYTES for t, s in pairs):
                return "alignment"
        return ""

    def stock(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The region by PyTorch's own operators, as the manifest lists them."""
        values: dict[str, Any] = {f"in{i}": tensor for i, tensor in enumerate(inputs)}
        for op in self.entry["ops"]:
            args = [value_of(arg, values) for arg in op["args"]]
            kwargs = {key: value_of(arg, values) for key, arg in op["kwargs"].items()}
            values[op["name"]] = _operator(op["target"])(*args, **kwargs)
        return tuple(_named(name, values) for name in self.entry["results"])

    def empty(self) -> tuple[torch.Tensor, ...]:
        """Outputs, not yet written."""
        device = MANIFEST["target"]
        return tuple(torch.empty_strided(s, t, dtype=d, device=device) for s, t, d in self._outs)

    def _run(self, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        outs = self.empty()
        scratch = [torch.empty(n, dtype=d, device=MANIFEST["target"]) for n, d in self._scratch]
        assert self._launch is not None
        self._launch(*[t.data_ptr() for t in (*scratch, *inputs, *outs)])
        return outs

    def _prove(self, inputs: tuple[torch.Tensor, ...]) -> str:
        with self._lock:
            if self._launch is not None or self._off:
                return self._off
            try:
                self._launch = _load_cpu(self.entry) if MANIFEST["target"] == "cpu" else _Cuda(self.entry)
            except (OSError, RuntimeError) as error:
                self._off = f"not built: {error}"
                return self._off
            for got, want in zip(self._run(inputs), self.stock(*inputs), strict=True):
                if not _agree(got, want):
                    self._off = "disagrees with PyTorch on this device"
            return self._off


def _fit(spec: dict[str, Any]) -> Callable[[torch.Tensor], str]:
    shape, dtype = torch.Size(spec["shape"]), getattr(torch, spec["dtype"])
    strides = [(i, s) for i, (n, s) in enumerate(zip(shape, spec["strides"], strict=True)) if n > 1]

    def misfit(tensor: torch.Tensor) -> str:
        if tensor.dtype is not dtype:
            return "dtype"
        if tensor.shape != shape:
            return "shape"
        if tensor.device.type != MANIFEST["target"]:
            return "device"
        own = tensor.stride()
        return "strides" if any(own[i] != s for i, s in strides) else ""

    return misfit


def _agree(got: torch.Tensor, want: torch.Tensor) -> bool:
    if not got.is_floating_point():
        return torch.equal(got, want)
    a, b = got.double(), want.double()
    finite = b.isfinite()
    if (
        not torch.equal(a.nan_to_num(0.0)[~finite], b.nan_to_num(0.0)[~finite])
        or not a[finite].isfinite().all()
    ):
        return False
    distance, size = (a[finite] - b[finite]).norm(), b[finite].norm()
    return bool(distance <= _UNITS_APART * torch.finfo(got.dtype).eps * size)


# ---- building and launching ----


def _load_cpu(entry: dict[str, Any]) -> Callable[..., None]:
    """Compile the kernel for this processor, once per machine, and load it beside torch's OpenMP runtime."""
    wish = os.environ.get("KERNELFORGE_CXX") or os.environ.get("CXX")
    found = [path for name in ([wish] if wish else ["g++", "clang++", "c++"]) if (path := shutil.which(name))]
    if not found:
        raise RuntimeError("no C++ compiler on PATH")
    version = subprocess.run([found[0], "--version"], capture_output=True, check=True).stdout
    unit = (HERE / entry["unit"]).read_bytes()
    prelude = HERE / MANIFEST["build"]["prelude"]
    cpu = Path("/proc/cpuinfo")
    flags = [line for line in (cpu.read_text() if cpu.exists() else "").splitlines() if "lags" in line][:1]
    command = [found[0], *MANIFEST["build"]["flags"], "-include", str(prelude), "-x", "c++", "-"]
    parts = [version, repr((MANIFEST["build"]["flags"], flags)).encode(), prelude.read_bytes(), unit]
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]
    root = Path(os.environ.get("KERNELFORGE_EXPORT_CACHE") or Path.home() / ".cache" / "kernelforge-export")
    library = root / f"{key}.so"
    if not library.exists():
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root) as stage:
            output = Path(stage) / "kernel.so"
            done = subprocess.run([*command, "-o", output], input=unit, capture_output=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr.decode(errors="replace")[:500])
            output.replace(library)
    function = ctypes.CDLL(str(library)).kf_entry
    count = len(entry["workspaces"]) + len(entry["inputs"]) + len(entry["outputs"])
    function.argtypes, function.restype = [ctypes.c_void_p] * count, None
    launch: Callable[..., None] = function
    return launch


_C_TYPES = {
    "P": ctypes.c_uint64,
    "b": ctypes.c_int8,
    "h": ctypes.c_int16,
    "i": ctypes.c_int32,
    "q": ctypes.c_int64,
}


class _Cuda:
    """A cubin in torch's own context, launched by the driver on torch's current stream and device."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self._entry = entry
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._loaded: dict[int, list[ctypes.c_void_p]] = {}
        names = [*(w[0] for w in entry["workspaces"]), *(f"in{i}" for i in range(len(entry["inputs"])))]
        names += [f"out{i}" for i in range(len(entry["outputs"]))]
        self._place = {name: i for i, name in enumerate(names)}
        self._functions(torch.cuda.current_device())

    def __call__(self, *pointers: int) -> None:
        functions = self._functions(torch.cuda.current_device())
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        for function, launch in zip(functions, self._entry["launches"], strict=True):
            pairs = zip(launch["args"], launch["format"], strict=True)
            values = [_C_TYPES[f](pointers[self._place[a]] if isinstance(a, str) else a) for a, f in pairs]
            packed = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
            shape = (*launch["grid"], *launch["block"], launch["smem_bytes"])
            self._check(self._driver.cuLaunchKernel(function, *shape, stream, packed, None))

    def _functions(self, index: int) -> list[ctypes.c_void_p]:
        if index not in self._loaded:
            torch.cuda.synchronize(index)  # the context exists from here on
            major, minor = torch.cuda.get_device_capability(index)
            names = [f"sm_{major}{m}" for m in range(minor, -1, -1)]
            have = [self._entry["cubins"][name] for name in names if name in self._entry["cubins"]]
            if not have:
                raise RuntimeError(f"no cubin for {names[0]}")
            module, functions = ctypes.c_void_p(), []
            self._check(self._driver.cuModuleLoadData(ctypes.byref(module), (HERE / have[0]).read_bytes()))
            for launch in self._entry["launches"]:
                function, name = ctypes.c_void_p(), launch["function"].encode()
                self._check(self._driver.cuModuleGetFunction(ctypes.byref(function), module, name))
                if launch["smem_bytes"] > 48 * 1024:  # 8: MAX_DYNAMIC_SHARED_SIZE_BYTES
                    self._check(self._driver.cuFuncSetAttribute(function, 8, launch["smem_bytes"]))
                functions.append(function)
            self._loaded[index] = functions
        return self._loaded[index]

    def _check(self, code: int) -> None:
        if code:
            raise RuntimeError(f"the CUDA driver answered {code}")


# ---- what a region computes ----


def _operator(target: str) -> Any:
    namespace, packet, overload = target.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)


def _named(name: str, values: dict[str, Any]) -> Any:
    base, _, item = name.partition(".")
    return values[base][int(item)] if item else values[base]


def value_of(arg: Any, values: dict[str, Any]) -> Any:
    if isinstance(arg, list):
        return [value_of(item, values) for item in arg]
    if not isinstance(arg, dict):
        return arg
    ((kind, value),) = arg.items()
    if kind == "ref":
        return _named(value, values)
    return {"float": float, "device": torch.device}.get(kind, lambda name: getattr(torch, name))(value)


kernels: dict[str, Kernel] = {entry["hash"]: Kernel(entry) for entry in MANIFEST["regions"]}


def counts() -> dict[str, dict[str, int]]:
    """Per region: calls the kernel served, and calls PyTorch served by reason."""
    return {name: dict(kernel.counts) for name, kernel in kernels.items()}
