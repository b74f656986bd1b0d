"""Content-addressed store of built kernels: one folder per key, appearing whole or not at all."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import platformdirs

# A place without room for a few kernels (20-50 KB each) is as good as none.
_ROOM_BYTES: Final = 1 << 20


def cache_root() -> Path:
    """``KERNELFORGE_CACHE``, else the user's cache folder, else (nowhere to write) a temporary one."""
    override = os.environ.get("KERNELFORGE_CACHE")
    return _writable(override or platformdirs.user_cache_dir("kernelforge-lab", appauthor=False))


@lru_cache(maxsize=8)
def _writable(wish: str) -> Path:
    path = Path(wish).expanduser().absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as probe:
            probe.write(bytes(_ROOM_BYTES))
        return path
    except OSError:
        # A read-only home or a full disk must not stop anybody; kernels are then built anew in each process.
        private = tempfile.mkdtemp(prefix="kernelforge-cache-")
        atexit.register(shutil.rmtree, private, ignore_errors=True)
        return Path(private)


def content_key(*parts: str) -> str:
    """SHA-256 over ``parts``, unambiguous about where one ends."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored binary and what was noted beside it."""

    binary: Path
    notes: dict[str, Any]


def look_up(kind: str, key: str) -> Entry | None:
    """The entry, or None when there is none or it is damaged (a full disk, a killed process)."""
    folder = _folder(kind, key)
    try:
        notes = json.loads((folder / "notes.json").read_text())
        binary = folder / notes["file"]
        if file_hash(binary) == notes["sha256"]:
            return Entry(binary, notes)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def put(kind: str, key: str, binary: Path, notes: Mapping[str, Any]) -> Entry:
    """Move ``binary`` into the store. Safe against other processes storing the same key."""
    folder = _folder(kind, key)
    folder.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(prefix=".stage-", dir=folder.parent))
    full = {**notes, "file": binary.name, "sha256": file_hash(binary)}
    shutil.move(binary, stage / binary.name)
    (stage / "notes.json").write_text(json.dumps(full))
    try:
        stage.rename(folder)
    except OSError:
        # Somebody was first (theirs is as good), or a damaged entry is in the way.
        existing = look_up(kind, key)
        if existing is not None:
            shutil.rmtree(stage, ignore_errors=True)
            return existing
        shutil.rmtree(folder, ignore_errors=True)
        stage.rename(folder)
    return Entry(folder / binary.name, full)


def _folder(kind: str, key: str) -> Path:
    return cache_root() / kind / key[:2] / key
