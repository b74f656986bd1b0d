"""``kernelforge export``: a stored run's kernels, without the model."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from kernelforge_lab.cli import main
from kernelforge_lab.entry import load
from kernelforge_lab.store import Store

from .made import events
from .test_package import GATED


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("KERNELFORGE_STORE", f"sqlite:///{tmp_path / 'runs.sqlite'}")
    store = Store()
    for number, event in enumerate(events("My Net v2", [(GATED, 3)]), start=1):
        store.append("r-1", {"seq": number, "at_s": 1e9 + number, **event.as_json()})
    store.close()
    return "r-1"


def test_a_stored_run_is_exported_as_folder_and_wheel(
    stored: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert main(["export", stored, str(folder)]) == 0
    assert str(folder) in capsys.readouterr().out
    manifest = json.loads((folder / "manifest.json").read_text())
    (region,) = manifest["regions"]
    assert region["hash"] == GATED.hash and region["count"] == 3 and region["verdict"]["status"] == "faster"
    assert main(["export", "latest", str(folder), "--wheel", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["run"] == "r-1" and said["regions"] == [GATED.hash]
    with zipfile.ZipFile(said["path"]) as wheel:
        names = set(wheel.namelist())
        assert "Requires-Dist: torch" in wheel.read("forged_my_net_v2-1.0.dist-info/METADATA").decode()
    wanted = "__init__.py loader.py operators.py placing.py manifest.json".split()
    assert {f"forged_my_net_v2/{name}" for name in (*wanted, region["unit"], region["source"])} <= names
    assert not [name for name in names if name.endswith((".whl", ".pyc"))]


def test_a_wheel_is_the_same_bytes_each_time(stored: str, tmp_path: Path) -> None:
    first, second = (load(stored).export(tmp_path / name, wheel=True) for name in ("a", "b"))
    assert first.name == second.name and first.read_bytes() == second.read_bytes()


def test_what_cannot_be_exported_is_said(
    stored: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "r-2", str(tmp_path / "out")]) == 2
    assert "there is no run" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["export", stored, str(tmp_path / "file" / "out")]) == 2
    assert "Name a folder you can write to" in capsys.readouterr().err
