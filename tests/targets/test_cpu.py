from __future__ import annotations

import ctypes
import gc
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kernelforge_lab import targets
from kernelforge_lab.exc import CompileError, KernelSourceError, ProblemError
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.targets.base import Built
from kernelforge_lab.targets.cpu import CpuTarget

ADD = Region.parse("""region(in0: f32[4,8], in1: f32[8]) {
  t0 = aten.add.Tensor(in0, in1) : f32[4,8]
  return t0
}""")

SOURCE = """\
// forge: target cpu
// forge: tune SCALE 1 3
// forge: launch add args=(in0, in1, out0, COLS)
extern "C" void add(const float* x, const float* bias, float* y, long long cols) {
#pragma omp parallel for num_threads(THREADS_MAX)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < cols; j++) y[i * cols + j] = SCALE * x[i * cols + j] + bias[j];
}
"""


def kernel(source: str = SOURCE, **params: int) -> Kernel:
    return Kernel(source, ADD.hash, "cpu", tuple(params.items()))


def floats(values: Sequence[float]) -> ctypes.Array[ctypes.c_float]:
    return (ctypes.c_float * len(values))(*values)


def run(built: Built) -> list[float]:
    x, bias, y = floats(range(32)), floats([100.0] * 8), floats([0.0] * 32)
    pointers = {"in0": ctypes.addressof(x), "in1": ctypes.addressof(bias), "out0": ctypes.addressof(y)}
    CpuTarget(2).load(built)(pointers)()
    return list(y)


def test_compiles_loads_and_runs() -> None:
    built = CpuTarget(2).build(kernel(), ADD)
    assert run(built) == [100.0 + i for i in range(32)]
    assert built.tensors == ("in0", "in1", "out0")
    assert built.plan.defines["THREADS_MAX"] == 2
    assert built.foreign == ()


def test_parameters_are_compiled_in() -> None:
    built = CpuTarget(2).build(kernel(SCALE=3), ADD)
    assert run(built) == [100.0 + 3 * i for i in range(32)]


def test_the_same_kernel_is_compiled_once() -> None:
    first = CpuTarget(2).build(kernel(SOURCE + "// once\n"), ADD)
    again = CpuTarget(2).build(kernel(SOURCE + "// once\n"), ADD)
    assert (first.cached, again.cached) == (False, True)
    assert replace(again, cached=False) == first


def test_a_damaged_cache_entry_is_built_anew() -> None:
    built = CpuTarget(2).build(kernel(SOURCE + "// damaged\n"), ADD)
    Path(built.path).write_bytes(Path(built.path).read_bytes()[:100])
    again = CpuTarget(2).build(kernel(SOURCE + "// damaged\n"), ADD)
    assert not again.cached
    assert run(again)[31] == 131.0


def test_twins_have_one_binary_hash() -> None:
    renamed = (
        SOURCE.replace("add", "plus")
        .replace("float* y", "float* /* out */ result")
        .replace(" y[", " result[")
    )
    assert (
        CpuTarget(2).build(kernel(renamed), ADD).binary_hash == CpuTarget(2).build(kernel(), ADD).binary_hash
    )


@pytest.mark.parametrize(
    "old, new",
    [
        ("SCALE * x", "0.5f * x"),
        ("SCALE * x", "0.25f * x"),
        ("SCALE * x[i * cols + j]", "__builtin_sinf(x[i * cols + j])"),
        ("SCALE * x[i * cols + j]", "__builtin_cosf(x[i * cols + j])"),
        ("args", "args"),
    ],
)
def test_different_code_has_different_hashes(old: str, new: str) -> None:
    others = [
        SOURCE.replace("SCALE * x[i * cols + j]", body)
        for body in ("7 * x[i * cols + j]", "0.125f * x[i * cols + j]", "__builtin_tanf(x[i * cols + j])")
    ]
    mine = CpuTarget(2).build(kernel(SOURCE.replace(old, new)), ADD).binary_hash
    assert mine not in {CpuTarget(2).build(kernel(other), ADD).binary_hash for other in others}


def test_a_built_kernel_travels_between_processes() -> None:
    built = CpuTarget(2).build(kernel(), ADD)
    assert run(pickle.loads(pickle.dumps(built))) == run(built)


def test_runs_in_a_process_without_torch(tmp_path: Path) -> None:
    built = CpuTarget(2).build(kernel(), ADD)
    (tmp_path / "built").write_bytes(pickle.dumps(built))
    program = """
import ctypes, pickle, sys
from kernelforge_lab import targets
built = pickle.load(open(sys.argv[1], "rb"))
x, bias, y = (ctypes.c_float * 32)(*range(32)), (ctypes.c_float * 8)(), (ctypes.c_float * 32)()
address = ctypes.addressof
targets.get("cpu").load(built).bind_names(("in0", "in1", "out0"))(address(x), address(bias), address(y))
print(y[31], "torch" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "built")], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["31.0", "False"], done.stderr


def test_kernels_share_torchs_openmp_runtime() -> None:
    program = """
import sys, torch
torch.ones(10**6).sum()
import pickle
from kernelforge_lab import targets
targets.get("cpu").load(pickle.load(sys.stdin.buffer))
print(len({line.split()[-1] for line in open("/proc/self/maps") if "omp" in line.rsplit("/", 1)[-1]}))
"""
    if sys.platform != "linux":
        pytest.skip("reads /proc")
    built = pickle.dumps(CpuTarget(2).build(kernel(), ADD))
    done = subprocess.run([sys.executable, "-c", program], input=built, capture_output=True, check=False)
    assert done.stdout.split() == [b"1"], done.stderr


def test_addresses_may_be_given_in_any_order() -> None:
    launcher = CpuTarget(2).load(CpuTarget(2).build(kernel(), ADD))
    x, bias, y = floats(range(32)), floats([100.0] * 8), floats([0.0] * 32)
    call = launcher.bind_names(("out0", "in1", "in0"))
    call(ctypes.addressof(y), ctypes.addressof(bias), ctypes.addressof(x))
    assert list(y) == [100.0 + i for i in range(32)]


@pytest.mark.parametrize("names", [("in0", "in1"), ("in0", "in1", "out0", "out0"), ("in0", "in1", "out1")])
def test_a_launcher_wants_every_tensor_once(names: tuple[str, ...]) -> None:
    launcher = CpuTarget(2).load(CpuTarget(2).build(kernel(), ADD))
    with pytest.raises(ValueError, match="a launcher takes each of in0, in1, out0 once"):
        launcher.bind_names(names)
    with pytest.raises(ValueError, match="a launcher takes each of in0, in1, out0 once"):
        launcher(dict.fromkeys((*names, "extra"), 0))


SCRATCH = """\
// forge: target cpu
// forge: workspace a int8 3
// forge: workspace b float64 ROWS
// forge: launch fill args=(a, b)
// forge: launch show args=(in0, in1, a, b, out0)
extern "C" void fill(int8_t* a, double* b) { a[0]++; for (int i = 0; i < ROWS; i++) b[i] += i; }
extern "C" void show(const void*, const void*, const int8_t* a, const double* b, float* y) {
  y[0] = a[0]; y[1] = (float)b[ROWS - 1];
  y[2] = (uintptr_t)a % 64; y[3] = (uintptr_t)b % 64;
}
"""


def test_launches_run_in_order_on_own_aligned_workspaces_that_live_on() -> None:
    launcher = CpuTarget(2).load(CpuTarget(2).build(kernel(SCRATCH), ADD))
    x, bias, y = floats(range(32)), floats([0.0] * 8), floats([0.0] * 32)
    pointers = {"in0": ctypes.addressof(x), "in1": ctypes.addressof(bias), "out0": ctypes.addressof(y)}
    call = launcher(pointers)
    del launcher
    gc.collect()
    call()
    call()
    assert list(y)[:4] == [2.0, 6.0, 0.0, 0.0]


def test_a_workspace_may_be_given() -> None:
    launcher = CpuTarget(2).load(CpuTarget(2).build(kernel(SCRATCH), ADD))
    x, bias, y = floats(range(32)), floats([0.0] * 8), floats([0.0] * 32)
    mine = (ctypes.c_double * 4)(10, 10, 10, 10)
    pointers = {"in0": ctypes.addressof(x), "in1": ctypes.addressof(bias), "out0": ctypes.addressof(y)}
    launcher({**pointers, "b": ctypes.addressof(mine)})()
    assert list(mine) == [10.0, 11.0, 12.0, 13.0]


def test_empty_and_scalar_tensors() -> None:
    for spec in ("f32[0,3]", "f32[]"):
        region = Region.parse(
            f"region(in0: {spec}) {{\n  t0 = aten.neg.default(in0) : {spec}\n  return t0\n}}"
        )
        source = (
            "// forge: target cpu\n// forge: launch f args=(in0, out0)\n"
            'extern "C" void f(const float* x, float* y) { for (int i = 0; i < NUMEL; i++) y[i] = -x[i]; }\n'
        )
        launcher = CpuTarget(1).load(CpuTarget(1).build(Kernel(source, region.hash, "cpu"), region))
        x, y = floats([2.0]), floats([7.0])
        launcher.bind_names(("in0", "out0"))(ctypes.addressof(x), ctypes.addressof(y))
        assert y[0] == (-2.0 if spec == "f32[]" else 7.0)


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("float* y", "floot* y", "kernel.cpp:4"),
        ("args=(in0, in1, out0, COLS)", "args=(in0, in1, out0)", "kernel.cpp:3"),
        ("args=(in0, in1, out0, COLS)", "args=(in0, in1, COLS, out0)", "kernel.cpp:3"),
        ("launch add", "launch sub", "'sub' was not declared"),
        ("const float* x", "const kf_bf16* x", "cannot convert 'float*' to 'const kf_bf16*'"),
    ],
)
def test_compile_errors_point_at_the_line_in_the_kernel(old: str, new: str, words: str) -> None:
    with pytest.raises(CompileError) as error:
        CpuTarget(2).build(kernel(SOURCE.replace(old, new, 1)), ADD)
    assert words in error.value.message
    assert "/tmp" not in error.value.message


def test_a_source_that_swallows_the_entry_point_is_refused() -> None:
    with pytest.raises(CompileError, match=r"swallows what follows|unterminated"):
        CpuTarget(2).build(kernel(SOURCE + "#if 0\n"), ADD)


def test_a_kernel_of_another_target_is_refused_with_its_line() -> None:
    cuda = "// note\n// forge: target cuda\n// forge: launch f grid=(1) block=(1) args=(in0, in1, out0)\n"
    with pytest.raises(KernelSourceError) as error:
        CpuTarget().build(kernel(cuda), ADD)
    assert str(error.value) == "line 2: the kernel is for cuda (expected target cpu)"


@pytest.mark.parametrize(
    "code, foreign",
    [
        ('extern "C" int system(const char*);\nstatic int owned = system("true");\n', "system"),
        ('#include <cstdio>\nstatic void* owned = fopen("/etc/passwd", "r");\n', "fopen"),
        (
            "struct Early { Early() { *(volatile int*)&seen = 1; } int seen; };\nstatic Early early;\n",
            "a constructor",
        ),
    ],
)
def test_what_reaches_the_system_is_named(code: str, foreign: str) -> None:
    built = CpuTarget(2).build(kernel(SOURCE + code), ADD)
    assert foreign in built.foreign


def test_containers_and_maths_are_not_foreign() -> None:
    code = """
#include <vector>
extern "C" float more(int n) {
  std::vector<double> all(n); float best = 0;
#pragma omp parallel for schedule(dynamic) reduction(max:best)
  for (int i = 0; i < n; i++) { all.at(i) = std::erf(std::pow(i, 0.3)) + std::tanh(i); best = fmaxf(best, all[i]); }
  return best;
}
"""
    source = SOURCE.replace('extern "C" void', code + 'extern "C" void', 1).replace("+ bias[j]", "+ more(3)")
    assert CpuTarget(2).build(kernel(source), ADD).foreign == ()


def test_an_unknown_target_names_the_known() -> None:
    with pytest.raises(ProblemError, match=r"no target 'hip'.*cpu"):
        targets.get("hip")
