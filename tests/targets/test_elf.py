from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelforge_lab.targets.elf import read_shared_object
from kernelforge_lab.targets.toolchain import find_compiler

CODE = """
#include <math.h>
extern "C" double shown(double x) { return sin(x) + 3.25; }
static double hidden(double x) { return x; }
"""


@pytest.fixture(scope="module")
def shared_object(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("elf") / "a.so"
    command = [find_compiler().path, "-O2", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(path)]
    subprocess.run(command, input=CODE, text=True, check=True)
    if path.read_bytes()[:6] != b"\x7fELF\x02\x01":
        pytest.skip("this machine's objects are not 64-bit little-endian ELF")
    return path


def test_reads_imports_exports_and_size(shared_object: Path) -> None:
    facts = read_shared_object(shared_object)
    assert facts is not None
    assert "sin" in facts.imports
    assert facts.exports == ("shown",)
    assert facts.constructors == 0
    assert facts.text_bytes > 0


@pytest.mark.parametrize("content", [b"", b"MZ", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + b"\xff" * 80])
def test_what_is_no_shared_object_is_answered_with_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert read_shared_object(tmp_path / "file") is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_object_never_raises(shared_object: Path, data: st.DataObject) -> None:
    content = bytearray(shared_object.read_bytes())
    for _ in range(data.draw(st.integers(1, 20))):
        # The header and the section table at the end are where a reader can be misled.
        at = data.draw(st.one_of(st.integers(6, 63), st.integers(len(content) - 2000, len(content) - 1)))
        content[at] = data.draw(st.integers(0, 255))
    damaged = shared_object.parent / "damaged.so"
    damaged.write_bytes(content)
    read_shared_object(damaged)
