"""What native code can do in the runner when neither the screen nor the symbol list stopped it: nothing.

The sources here are built by the target directly and loaded as a candidate is, so only the cage holds them.
Every attempt leaves its result in ``out0``: what it got, or minus the error number.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelforge_lab import targets
from kernelforge_lab.judge.arena import HostArena
from kernelforge_lab.judge.candidate import Candidate, CandidateDied, RunnerProcess
from kernelforge_lab.judge.layout import plan_layout
from kernelforge_lab.judge.verdict import Status
from kernelforge_lab.kernels.kernel import Kernel

from .regions import region

HEAD = """// forge: target cpu
// forge: launch k args=(in0, in1, out0)
#include <cstdlib>
static long call(long n, long a = 0, long b = 0, long c = 0, long d = 0) {
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return result;
}
"""

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="system calls written for x86-64")


class Cage:
    """Runs bodies of ``void k(const float* x, const float* w, float* y)`` in fresh runners."""

    def __init__(self) -> None:
        self.region = region("add")
        self.target = targets.get("cpu", threads=2)
        self.runners: list[RunnerProcess] = []

    def run(self, body: str, outside: str = "") -> float:
        source = f"{HEAD}{outside}\nvoid k(const float* x, const float* w, float* y) {{ {body} }}\n"
        kernel = Kernel(source, self.region.hash, "cpu")
        arena = HostArena(plan_layout(self.region, (), 0, 1 << 24))
        runner = RunnerProcess(2)
        self.runners.append(runner)
        try:
            candidate = Candidate(
                runner, self.target.build(kernel, self.region), arena, threads=2, limit_s=5.0
            )
            assert candidate.caged
            candidate.run(0)
            return float(arena.tensor(arena.layout.places[0].slots["out0"])[0, 0])
        finally:
            arena.close()


@pytest.fixture
def cage() -> Iterator[Cage]:
    cage = Cage()
    yield cage
    for runner in cage.runners:
        runner.kill()


def test_a_file_cannot_be_read(cage: Cage) -> None:
    assert cage.run('y[0] = call(2, (long)"/etc/hostname", 0);') == -errno.EACCES
    assert cage.run('y[0] = call(257, -100, (long)"/proc/self/environ", 0);') == -errno.EACCES


def test_a_file_cannot_be_written(cage: Cage, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_CREAT | os.O_RDONLY, os.O_TRUNC):
        with pytest.raises(CandidateDied) as died:
            cage.run(f'y[0] = call(2, (long)"{victim}", {flags}, 420);')
        assert died.value.status is Status.REJECTED
        assert "open" in died.value.evidence
    assert victim.read_text() == "mine"
    with pytest.raises(CandidateDied, match="unlink"):
        cage.run(f'y[0] = call(87, (long)"{victim}");')
    assert victim.exists()


@pytest.mark.parametrize(
    "name,body",
    [
        ("socket", "y[0] = call(41, 2, 1, 0);"),
        ("connect", "y[0] = call(42, 3, 0, 0);"),
        ("sendto", "y[0] = call(44, 3, 0, 0);"),
        ("fork", "y[0] = call(57);"),
        ("vfork", "y[0] = call(58);"),
        ("clone", "y[0] = call(56, 17, 0, 0);"),
        ("execve", 'y[0] = call(59, (long)"/bin/true", 0, 0);'),
        ("execveat", 'y[0] = call(322, -100, (long)"/bin/true", 0, 0);'),
        ("kill", "y[0] = call(62, 1, 9);"),
        ("ptrace", "y[0] = call(101, 16, 1, 0);"),
        ("mkdir", 'y[0] = call(83, (long)"/tmp/kernelforge-was-here", 511);'),
        ("rename", 'y[0] = call(82, (long)"/tmp/a", (long)"/tmp/b");'),
    ],
)
def test_the_system_is_out_of_reach(cage: Cage, name: str, body: str) -> None:
    with pytest.raises(CandidateDied) as died:
        cage.run(body)
    assert died.value.status is Status.REJECTED
    assert f"tried {name}," in died.value.evidence
    assert not Path("/tmp/kernelforge-was-here").exists()


def test_the_libraries_ways_are_closed_too(cage: Cage) -> None:
    assert cage.run('y[0] = fopen("/etc/hostname", "r") ? 1 : 0;', "#include <cstdio>") == 0
    with pytest.raises(CandidateDied):
        cage.run('y[0] = std::system("true");')


def test_no_secret_is_in_its_environment(cage: Cage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-mine")
    monkeypatch.setenv("HF_TOKEN", "hf_secret-of-mine")
    body = """
      float found = 0, all = 0;
      for (char** entry = environ; *entry; entry++) {
        all++;
        for (char* at = *entry; *at; at++)
          found += !strncmp(at, "secret", 6) || !strncmp(at, "/root", 5) || !strncmp(at, "HOME", 4);
      }
      y[0] = found * 1000 + all;"""
    count = cage.run(body, 'extern "C" char** environ;\n#include <cstring>')
    assert 0 < count < 12


def test_the_runner_sees_nothing_of_the_person(cage: Cage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read from inside, as a kernel would: every variable, by name and without its value."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    cage.run("y[0] = 1;")
    runner = cage.runners[-1]
    names = {
        item.split("=")[0]
        for item in Path(f"/proc/{runner.process.pid}/environ").read_text().split("\0")
        if item
    }
    assert names <= {
        "PATH", "LC_ALL", "LC_CTYPE", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_DYNAMIC", "GOMP_SPINCOUNT", "KMP_BLOCKTIME",
    }  # fmt: skip


def test_memory_has_an_end(cage: Cage) -> None:
    body = "float n = 0; while (n < 4096 && malloc(1 << 26)) n++; y[0] = n;"
    assert cage.run(body, "#include <cstdlib>") < 100
    with pytest.raises(CandidateDied) as died:
        cage.run(
            "for (int i = 0; i < 4096; i++) { char* b = new char[1 << 26]; ((volatile char*)b)[0] = 1; }"
        )
    assert died.value.status is Status.CRASHED


def test_the_runners_own_messages_are_not_believed(cage: Cage) -> None:
    """A kernel that answers in the runner's place gains nothing: outputs are read from the arena."""
    lie = '{\\"ok\\": true}\\n'
    assert cage.run(f'call(1, 3, (long)"{lie}", 13); for (;;) ;') != 1.0
