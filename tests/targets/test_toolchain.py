from __future__ import annotations

from pathlib import Path

import pytest

from kernelforge_lab.exc import CompileError, NoCompilerError
from kernelforge_lab.targets import toolchain
from kernelforge_lab.targets.toolchain import find_compiler, install_hint, trim_log


@pytest.fixture
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("KERNELFORGE_CXX", "CXX", "CONDA_PREFIX"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def fake_program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_without_a_compiler_the_error_names_the_command_that_installs_one(
    empty_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(empty_path / "apt-get", "exit 0")
    monkeypatch.setattr(toolchain.sys, "platform", "linux")
    with pytest.raises(NoCompilerError) as error:
        find_compiler()
    assert str(error.value) == (
        "No C++ compiler on PATH (looked for g++, clang++, c++). "
        "Install one with: sudo apt-get install -y g++  (or point KERNELFORGE_CXX at yours)."
    )


@pytest.mark.parametrize(
    "platform, conda, program, command",
    [
        ("darwin", "", "", "xcode-select --install"),
        ("linux", "/opt/conda", "apt-get", "conda install -c conda-forge cxx-compiler"),
        ("linux", "", "dnf", "sudo dnf install -y gcc-c++"),
        ("linux", "", "apk", "apk add g++"),
        ("linux", "", "", "conda install -c conda-forge cxx-compiler"),
    ],
)
def test_the_hint_fits_the_machine(
    empty_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, conda: str, program: str, command: str
) -> None:
    monkeypatch.setattr(toolchain.sys, "platform", platform)
    if conda:
        monkeypatch.setenv("CONDA_PREFIX", conda)
    if program:
        fake_program(empty_path / program, "exit 0")
    assert f"Install one with: {command} " in install_hint()


def test_a_named_compiler_that_is_not_there_is_an_error_about_the_variable(
    empty_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELFORGE_CXX", "g++-99")
    with pytest.raises(NoCompilerError, match=r"KERNELFORGE_CXX is 'g\+\+-99', but there is no such program"):
        find_compiler()


def test_a_named_compiler_goes_first(empty_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_program(empty_path / "g++", "echo 'g++ 12.2'")
    fake_program(empty_path / "mine", "echo 'clang version 19'")
    monkeypatch.setenv("CXX", "mine")
    compiler = find_compiler()
    assert (compiler.family, compiler.version.split(" (")[0]) == ("clang", "clang version 19")


def test_a_compiler_that_does_not_run_is_no_compiler(empty_path: Path) -> None:
    fake_program(empty_path / "g++", "echo 'cannot find licence' >&2; exit 1")
    with pytest.raises(NoCompilerError, match="does not work: cannot find licence"):
        find_compiler()


def test_a_compiler_that_thinks_too_long_is_stopped(empty_path: Path) -> None:
    fake_program(empty_path / "g++", 'case "$1" in --version) echo g++ 12;; *) while :; do :; done;; esac')
    with pytest.raises(CompileError, match="took longer than 0 s"):
        find_compiler().run(["-x", "c++", "-"], "int x;", timeout_s=0.2)


def test_a_compiler_that_fails_silently_is_named(empty_path: Path) -> None:
    fake_program(empty_path / "g++", 'case "$1" in --version) echo g++ 13;; *) exit 3;; esac')
    with pytest.raises(CompileError, match=r"g\+\+ ended with code 3 and said nothing"):
        find_compiler().run(["-"], "")


def test_the_compiler_sees_no_keys(empty_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    fake_program(
        empty_path / "g++",
        'case "$1" in --version) echo g++ 14;; *) echo "key: ${OPENAI_API_KEY:-none}" >&2;; esac',
    )
    assert find_compiler().run(["-"], "") == "key: none"


def test_long_logs_keep_their_ends() -> None:
    log = trim_log("<stdin>:1: first\n" + "x" * 20000 + "\nlast")
    assert log.startswith("kernel.cpp:1: first")
    assert log.endswith("last")
    assert "characters left out" in log
    assert len(log) < 6100
