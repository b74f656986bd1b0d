"""One OpenMP runtime per process: kernels use the very library that torch uses.

Two runtimes in one process mean two thread pools whose idle workers spin against each other. A kernel
names its runtime by soname (``libgomp.so.1``); whatever library of that soname is loaded first serves
everybody. So torch's own copy is loaded before a kernel is, also in a process without torch, where the
times are then those of the deployed kernel.
"""

from __future__ import annotations

import ctypes
import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Final

_NAMES: Final = {"gcc": ("libgomp",), "clang": ("libomp", "libiomp5")}


@lru_cache(maxsize=4)
def share_openmp_runtime(family: str) -> str:
    """Load the runtime for kernels of this compiler family; its path, or "" to leave it to the loader."""
    names = _NAMES.get(family, ())
    for path in (*_already_loaded(names), *_beside_torch(names)):
        try:
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
        return str(path)
    return ""


def _already_loaded(names: tuple[str, ...]) -> list[Path]:
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    paths = dict.fromkeys(line.split(maxsplit=5)[5] for line in lines if line.count("/") > 0)
    return [Path(p) for p in paths if Path(p).name.startswith(names)] if names else []


def _beside_torch(names: tuple[str, ...]) -> list[Path]:
    # find_spec locates torch without importing it (0.1 ms; the import would cost seconds).
    spec = importlib.util.find_spec("torch")
    folders = list(spec.submodule_search_locations or []) if spec else []
    found: list[Path] = []
    for folder in folders:
        for place in (Path(folder) / "lib", Path(folder).parent / "torch.libs"):
            for name in names:
                found += sorted(place.glob(f"{name}*.so*")) + sorted(place.glob(f"{name}*.dylib"))
    return found
