from __future__ import annotations

import threading
from pathlib import Path
from typing import IO

import pytest

from kernelforge_lab.targets import cache


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELFORGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def binary(folder: Path, content: bytes = b"code") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "kernel.so"
    path.write_bytes(content)
    return path


def test_what_is_put_is_found(root: Path, tmp_path: Path) -> None:
    stored = cache.put("cpu", "ab12", binary(tmp_path / "build"), {"compile_s": 0.5})
    found = cache.look_up("cpu", "ab12")
    assert found == stored
    assert found.binary.read_bytes() == b"code"
    assert found.notes["compile_s"] == 0.5
    assert found.binary.is_relative_to(root)


def test_what_was_never_put_is_not_found(root: Path) -> None:
    assert cache.look_up("cpu", "ab12") is None


@pytest.mark.parametrize("damage", ["notes", "binary", "no notes", "no binary"])
def test_a_damaged_entry_is_not_found_and_can_be_replaced(root: Path, tmp_path: Path, damage: str) -> None:
    entry = cache.put("cpu", "ab12", binary(tmp_path / "build"), {})
    notes = entry.binary.parent / "notes.json"
    if damage == "notes":
        notes.write_text("{")
    elif damage == "binary":
        entry.binary.write_bytes(b"co")
    else:
        (notes if damage == "no notes" else entry.binary).unlink()
    assert cache.look_up("cpu", "ab12") is None
    cache.put("cpu", "ab12", binary(tmp_path / "build", b"new"), {})
    again = cache.look_up("cpu", "ab12")
    assert again is not None
    assert again.binary.read_bytes() == b"new"


def test_two_that_store_the_same_key_at_once_both_get_a_whole_entry(root: Path, tmp_path: Path) -> None:
    start = threading.Barrier(8)
    entries: list[cache.Entry] = []

    def store(i: int) -> None:
        path = binary(tmp_path / f"build{i}")
        start.wait()
        entries.append(cache.put("cpu", "ab12", path, {}))

    threads = [threading.Thread(target=store, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry.binary.read_bytes() for entry in entries] == [b"code"] * 8
    assert [p.name for p in (root / "cpu" / "ab").iterdir()] == ["ab12"]


def test_a_place_that_cannot_be_written_is_replaced_by_a_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("KERNELFORGE_CACHE", str(blocker / "cache"))
    root = cache.cache_root()
    assert root.stat().st_mode & 0o077 == 0
    assert cache.cache_root() == root


def test_a_full_disk_is_replaced_by_a_private_place_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> IO[bytes]:
        return Path("/dev/full").open("wb", buffering=0)

    monkeypatch.setenv("KERNELFORGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache.tempfile, "TemporaryFile", full)
    assert tmp_path not in cache.cache_root().parents


def test_keys_tell_where_a_part_ends() -> None:
    assert cache.content_key("ab", "c") != cache.content_key("a", "bc")
