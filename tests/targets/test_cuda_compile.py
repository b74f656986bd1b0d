"""The cuda target where there is no GPU: sources become cubins, and what a GPU would refuse is said."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from kernelforge_lab import targets
from kernelforge_lab.exc import CompileError, ForgeError, KernelSourceError, NoDeviceError, ProblemError
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.kernels.skeleton import skeleton
from kernelforge_lab.targets import cuda_device, sm
from kernelforge_lab.targets.base import Built
from kernelforge_lab.targets.cubin import read_cubin, read_usage
from kernelforge_lab.targets.cuda_compiler import nvrtc

ARCHS = ("sm_80", "sm_90", "sm_100", "sm_120")

SCALE = Region.parse("""region(in0: bf16[64,512], in1: bf16[512]) {
  t0 = aten.mul.Tensor(in0, in1) : bf16[64,512]
  return t0
}""")

SOURCE = """\
// forge: target cuda
// forge: tune BLOCK 128 256
// forge: workspace partial float32 ROWS
// forge: launch scale grid=(cdiv(NUMEL, BLOCK*8)) block=(BLOCK) args=(in0, in1, out0, COLS, partial)
extern "C" __global__ void scale(const IN0_T* __restrict__ x, const IN1_T* w, OUT0_T* y, int cols, float* p) {
  int64_t i = kf::thread_index() * 8;
  if (i >= NUMEL) return;
  auto v = kf::load<8>(x + i), u = kf::load<8>(w + i % cols);
  kf::Vec<OUT0_T, 8> o;
  for (int j = 0; j < 8; j++) o[j] = v[j] * u[j];
  kf::store(y + i, o);
}
"""


def build(source: str = SOURCE, arch: str = "sm_90", region: Region = SCALE, **params: int) -> Built:
    kernel = Kernel(source, region.hash, "cuda", tuple(params.items()))
    return targets.get("cuda", arch).build(kernel, region)


def refusal(old: str, new: str, arch: str = "sm_90") -> ForgeError:
    assert old in SOURCE
    with pytest.raises((CompileError, KernelSourceError)) as caught:
        build(SOURCE.replace(old, new), arch)
    return caught.value


@pytest.mark.parametrize("arch", ARCHS)
def test_a_kernel_compiles_for_every_generation(arch: str) -> None:
    built = build(arch=arch)
    (function,) = read_cubin(Path(built.path).read_bytes()).values()
    assert function.name == "scale"
    assert [(p.offset, p.size) for p in function.parameters] == [(0, 8), (8, 8), (16, 8), (24, 4), (32, 8)]
    assert 0 < built.resources["registers"] < 64
    assert built.resources["spill_bytes"] == 0
    assert 0.9 <= built.resources["occupancy"] <= 1
    assert built.log == ""


def test_eight_neighbours_of_16_bits_move_in_one_access() -> None:
    # STG.E.128 and LDG.E.128 differ from narrower ones in length of code: scalar copies take 8 of each.
    scalar = SOURCE.replace("kf::store(y + i, o);", "for (int j = 0; j < 8; j++) y[i + j] = o[j];")
    assert build().resources["text_bytes"] < build(scalar).resources["text_bytes"]


def test_the_second_time_no_compiler_runs() -> None:
    source = SOURCE + "// another text\n"
    first, second = build(source), build(source)
    assert (first.cached, second.cached) == (False, True)
    assert second == type(second)(**{**first.__dict__, "cached": True})


def test_twins_are_found_whatever_their_functions_are_called() -> None:
    assert build(SOURCE.replace("scale", "renamed")).binary_hash == build().binary_hash
    assert build(BLOCK=256).binary_hash != build(BLOCK=128).binary_hash
    assert build(SOURCE.replace("* u[j]", "+ u[j]")).binary_hash != build().binary_hash
    assert build(SOURCE.replace("float32 ROWS", "float32 ROWS*2")).binary_hash != build().binary_hash


def test_functions_that_call_different_helpers_are_no_twins() -> None:
    helper = "__noinline__ __device__ float helper(float x) { return x + 1; }\n"
    source = helper + SOURCE.replace("= v[j] * u[j]", "= helper(v[j] * u[j])")
    source = "\n".join([*SOURCE.splitlines()[:1], source.replace(SOURCE.splitlines()[0] + "\n", "")])
    assert build(source).binary_hash != build(source.replace("x + 1", "x + 2")).binary_hash


def test_a_wrong_argument_list_is_an_error_on_its_launch_line() -> None:
    assert "kernel.cu(4)" in str(refusal("(in0, in1, out0, COLS, partial)", "(in0, in1, out0, COLS)"))
    assert "argument 4 of scale is in0" in str(refusal("COLS, partial", "in0, partial"))
    assert "argument 5 of scale is an integer" in str(refusal("COLS, partial", "COLS, 3"))
    assert '"scala" is undefined' in str(refusal("launch scale", "launch scala"))


def test_an_integer_has_to_fit_its_parameter() -> None:
    error = refusal("out0, COLS, partial", "out0, NUMEL*1000000, partial")
    assert "does not fit a 32-bit parameter" in str(error)
    build(SOURCE.replace("out0, COLS", "out0, NUMEL*1000000").replace("int cols", "long long cols"))


def test_the_compilers_words_name_the_line_of_the_kernel() -> None:
    assert "kernel.cu(10)" in str(refusal("v[j] * u[j]", "v[j] * nonsense"))


def test_what_the_driver_would_refuse_is_refused_beforehand() -> None:
    static = "extern __shared__ float s[]; __shared__ float t[4096]; t[0] = s[0]; y[0] = t[threadIdx.x];"
    shared = SOURCE.replace("block=(BLOCK)", "block=(BLOCK) smem=160*1024").replace(
        "int64_t i", f"{static} int64_t i"
    )
    assert build(shared).resources["shared_bytes"] > 160 * 1024
    with pytest.raises(KernelSourceError, match="at most 166912 on sm_80"):
        build(shared, "sm_80")
    bound = "void __launch_bounds__(64) scale("
    assert "at most 64" in str(refusal("void scale(", bound))


def test_registers_that_no_block_can_have_are_refused() -> None:
    keep = "float a[200]; for (int j = 0; j < 200; j++) a[j] = w[(i + j * cols) % 511]; __syncthreads();"
    use = "for (int j = 0; j < 200; j++) for (int k = 0; k < 200; k++) a[j] += a[(j + k) % 200] * p[k];"
    end = "float s = 0; for (int j = 0; j < 200; j++) s += a[j]; o[0] = s; kf::store(y + i, o);"
    hungry = SOURCE.replace("kf::store(y + i, o);", f"#pragma unroll\n{keep} {use} {end}")
    hungry = hungry.replace("BLOCK 128 256", "BLOCK 128 1024")
    built = build(hungry)
    if built.resources["registers"] <= 64:
        pytest.skip("this compiler kept it small")
    with pytest.raises(CompileError, match="registers in each of 1024 threads"):
        build(hungry, BLOCK=1024)


def test_usual_cuda_includes_work_and_others_do_not() -> None:
    includes = "".join(f"#include <{name}>\n" for name in ("cuda_bf16.h", "cuda_runtime.h", "cstdint"))
    build(SOURCE.replace("extern", includes + "extern").replace("const IN0_T*", "const __nv_bfloat16*"))
    assert "torch/extension.h" in str(refusal("extern", "#include <torch/extension.h>\nextern"))


def test_sizes_past_two_to_the_31_stay_64_bit() -> None:
    region = Region.parse(
        "region(in0: f32[3000000000]) {\n  t0 = aten.neg.default(in0) : f32[3000000000]\n  return t0\n}"
    )
    source = (
        "// forge: target cuda\n"
        "// forge: launch negate grid=(cdiv(NUMEL, 256)) block=(256) args=(in0, out0, NUMEL)\n"
        'extern "C" __global__ void negate(const float* x, float* y, long long n) {\n'
        '  static_assert(sizeof(NUMEL) == 8, "wide");\n'
        "  int64_t i = kf::thread_index();\n  if (i < n) y[i] = -x[i];\n}\n"
    )
    assert build(source, region=region).plan.launches[0].grid == (11718750,)


def test_the_skeleton_compiles() -> None:
    assert build(skeleton(SCALE, "cuda")).resources["registers"] > 0


FUNCTIONS = (
    "exp log tanh sigmoid erf log1p expm1 sqrt rsqrt max min abs sign remainder floordiv fmod pow".split()
)


@pytest.mark.parametrize("kind", ["float", "double"])
def test_the_prelude_has_the_cpu_preludes_functions(kind: str) -> None:
    two = ("max", "min", "remainder", "floordiv", "fmod", "pow")
    lines = [
        f"  y[{i}] = kf::{name}{'<KIND>' if name in two else ''}(x[0]{', x[1]' if name in two else ''});"
        for i, name in enumerate(FUNCTIONS)
    ]
    lines += [
        "  y[20] = kf::inf - std::numeric_limits<KIND>::infinity() + std::floor(x[0]) + std::max(x[1], x[2]);"
    ]
    source = "\n".join([
        "// forge: target cuda", "// forge: launch every grid=(1) block=(1) args=(in0, out0)",
        'extern "C" __global__ void every(const KIND* x, KIND* y) {', *lines, "}",
    ])  # fmt: skip
    dtype = {"float": "f32", "double": "f64"}[kind]
    region = Region.parse(
        f"region(in0: {dtype}[32]) {{\n  t0 = aten.neg.default(in0) : {dtype}[32]\n  return t0\n}}"
    )
    build(source.replace("KIND", kind), region=region)


def test_integer_arithmetic_is_pythons() -> None:
    region = Region.parse("region(in0: i64[32]) {\n  t0 = aten.neg.default(in0) : i64[32]\n  return t0\n}")
    source = (
        "// forge: target cuda\n// forge: launch f grid=(1) block=(32) args=(in0, out0)\n"
        'extern "C" __global__ void f(const int64_t* x, int64_t* y) {\n'
        "  y[0] = kf::floordiv<int64_t>(x[0], x[1]) + kf::remainder<int64_t>(x[0], x[1]);\n"
        "  y[1] = kf::pow<int64_t>(x[0], x[1]) + kf::max<int64_t>(x[0], x[1]) + kf::abs(x[2]) + kf::sign(x[3]);\n}\n"
    )
    build(source, region=region)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")
def test_nvcc_is_the_alternative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELFORGE_CUDA_COMPILER", "nvcc")
    built = build()
    assert not built.cached
    assert built.resources["registers"] > 0
    assert "kernel.cu(10)" in str(refusal("v[j] * u[j]", "v[j] * nonsense"))
    build(
        SOURCE.replace("extern", "#include <cuda_bf16.h>\nextern").replace(
            "const IN0_T*", "const __nv_bfloat16*"
        )
    )


def test_a_compiler_that_is_unknown_or_an_sm_it_does_not_know_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ProblemError, match="sm_90 or sm_120"):
        targets.get("cuda", "hopper")
    with pytest.raises(ProblemError, match="It knows sm_75"):
        build(arch="sm_70")
    monkeypatch.setenv("KERNELFORGE_CUDA_COMPILER", "clang")
    with pytest.raises(ForgeError, match="nvrtc, nvcc"):
        build()


def test_without_a_gpu_the_hint_says_how_to_compile_all_the_same() -> None:
    if cuda_device.has_driver():
        pytest.skip("this machine has a driver")
    target = targets.get("cuda")
    with pytest.raises(NoDeviceError, match="--arch sm_90"):
        target.device()
    with pytest.raises(NoDeviceError):
        target.load(build())
    assert "sm_90" in targets.get("cuda", "sm_90").device().name


def test_a_compiler_that_crashed_is_replaced() -> None:
    compiler = nvrtc()
    process = compiler._process
    assert process is not None
    process.kill()
    process.wait()
    with pytest.raises(CompileError, match="crashed"):
        build(SOURCE + "// while it is dead\n")
    assert build(SOURCE + "// after\n").resources["registers"] > 0


def test_the_compiler_sees_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    compiler = nvrtc()
    compiler.close()
    build(SOURCE + "// a new process\n")
    assert compiler._process is not None
    environment = Path(f"/proc/{compiler._process.pid}/environ")
    if not environment.exists():
        pytest.skip("no /proc here")
    assert b"sk-secret" not in environment.read_bytes()


def test_occupancy_is_nvidias() -> None:
    # Values of NVIDIA's occupancy calculator.
    assert sm.occupancy("sm_90", 256, 32, 0) == 1.0
    assert sm.occupancy("sm_90", 256, 64, 0) == 0.5
    assert sm.occupancy("sm_80", 1024, 40, 0) == 0.5
    assert sm.occupancy("sm_80", 256, 255, 0) == 0.125
    assert sm.occupancy("sm_90", 128, 32, 100 * 1024) == 0.125
    assert sm.blocks_per_sm("sm_90", 32, 16, 0) == 32
    assert sm.blocks_per_sm("sm_120", 1024, 72, 0) == 0
    assert sm.blocks_per_sm("sm_86", 64, 16, 100 * 1024) == 0


def test_a_damaged_cubin_is_an_error_and_no_crash() -> None:
    data = Path(build().path).read_bytes()
    for broken in (
        b"",
        b"\x7fELF",
        data[:100],
        data[: len(data) // 2],
        struct.pack("<64s", b"\x7fELF\x02\x01"),
    ):
        with pytest.raises(ValueError, match="not a readable cubin"):
            read_cubin(broken)


def test_usage_is_read_from_the_words_of_ptxas() -> None:
    log = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    8 bytes stack frame, 12 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 144 bytes smem, 384 bytes cmem[0]
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Used 8 registers
"""
    usage = read_usage(log)
    assert (usage["a"].registers, usage["a"].spill_bytes, usage["a"].stack_bytes) == (255, 16, 8)
    assert (usage["a"].shared_bytes, usage["b"].registers, usage["b"].spill_bytes) == (144, 8, 0)
