"""The command line and CUDA, on a machine without a GPU."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kernelforge_lab.cli import main
from kernelforge_lab.cli.doctor_cuda import Facts, Gpu, judge
from kernelforge_lab.cli.finding import Finding

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, bias):
        return torch.relu(x + bias)

def get_inputs():
    return [torch.randn(64, 128), torch.randn(128)]

def get_init_inputs():
    return []
"""

KERNEL = """\
// forge: target cuda
// forge: launch relu_add grid=(cdiv(NUMEL, 256)) block=(256) args=(in0, in1, out0)
extern "C" __global__ void relu_add(const float* x, const float* bias, float* y) {
  int64_t i = kf::thread_index();
  if (i < NUMEL) y[i] = kf::max(x[i] + bias[i % COLS], 0.0f);
}
"""

GPU = Gpu("NVIDIA H200", "sm_90", 100 * 2**30, 140 * 2**30)
GOOD = Facts(
    has_driver=True,
    pycuda="2026.1",
    pycuda_cuda=13000,
    driver_cuda=13000,
    torch_cuda="13.0",
    compiler="NVRTC 13.0",
    compiler_archs=(80, 90, 100),
    gpus=(GPU,),
)


def findings(facts: Facts) -> dict[str, Finding]:
    return {finding.name: finding for finding in judge(facts)}


def files(folder: Path, kernel: str = KERNEL) -> list[str]:
    (folder / "problem.py").write_text(PROBLEM)
    (folder / "kernel.cu").write_text(kernel)
    return ["judge", str(folder / "problem.py"), str(folder / "kernel.cu"), "--target", "cuda"]


def test_a_kernel_is_compiled_for_a_gpu_that_is_not_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*files(tmp_path), "--arch", "sm_90", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["status"] == "compiled"
    assert "sm_90" in said["evidence"] and "not run" in said["evidence"]
    assert said["resources"]["registers"] > 0
    assert said["resources"]["occupancy"] == 1.0


def test_what_does_not_compile_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*files(tmp_path, KERNEL.replace("bias[i", "nonsense[i")), "--arch", "sm_80"]) == 1
    assert "nonsense" in capsys.readouterr().out


def test_arch_is_for_the_cuda_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [word if word != "cuda" else "cpu" for word in files(tmp_path)]
    assert main([*arguments, "--arch", "sm_90"]) == 2
    assert "--target cuda" in capsys.readouterr().err


def test_a_whole_problem_is_compiled_for_a_gpu_that_is_not_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = files(tmp_path)[1]
    assert main(["forge", problem, "--target", "cuda", "--arch", "sm_120", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (region,) = said["regions"]
    assert {kernel["strategy"] for kernel in region["kernels"]} >= {"flat"}
    for kernel in region["kernels"]:
        assert kernel["status"] == "compiled" and kernel["resources"]["registers"] > 0
    assert said["evidence"].endswith("compiled for sm_120, not run")
    assert main(["forge", problem, "--target", "cuda", "--arch", "sm_90"]) == 0
    assert "registers" in capsys.readouterr().out


def test_forge_takes_arch_for_cuda_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forge", files(tmp_path)[1], "--arch", "sm_90"]) == 2
    assert "--target cuda" in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
@pytest.mark.parametrize("command", ["forge", "regions"])
def test_the_cuda_target_without_a_gpu_is_one_clear_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert main([command, files(tmp_path)[1], "--target", "cuda"]) == 2
    said = capsys.readouterr().err
    assert "cannot be moved to cuda" in said and "kernelforge doctor" in said


def test_doctor_is_content_with_a_good_gpu() -> None:
    found = findings(GOOD)
    assert {finding.state for finding in found.values()} == {"ok"}
    assert "NVIDIA H200 (sm_90), 100.0 of 140.0 GiB free" in found["gpu 0"].detail


def test_doctor_without_a_driver_says_that_compiling_works() -> None:
    found = findings(Facts(compiler="NVRTC 13.0"))
    assert "--arch sm_90" in found["cuda compiler"].detail
    assert "cpu target needs none" in found["cuda target"].detail


@pytest.mark.parametrize(
    "facts, name, detail, todo",
    [
        (replace(GOOD, pycuda=""), "cuda target", "not installed", "pip install pycuda"),
        (
            replace(GOOD, pycuda_cuda=14000),
            "cuda target",
            "built for CUDA 14.0, the driver knows 13.0",
            "update",
        ),
        (replace(GOOD, torch_cuda=""), "cuda target", "without CUDA", "pytorch.org"),
        (replace(GOOD, problem="no permission", todo="ask"), "cuda target", "no permission", "ask"),
        (replace(GOOD, compiler_archs=(80,)), "gpu 0", "cannot compile for it (newest sm_80)", "--upgrade"),
        (replace(GOOD, compiler="", compiler_problem="none"), "cuda compiler", "none", "pip install"),
        (replace(GOOD, gpus=(replace(GPU, free_bytes=2**30),)), "gpu 0", "too little", "end what uses it"),
        (
            replace(GOOD, gpus=(replace(GPU, others=((7, "python"),)),)),
            "gpu 0",
            "used by python (7)",
            "rough",
        ),
    ],
)
def test_doctor_names_what_is_wrong_and_what_to_do(facts: Facts, name: str, detail: str, todo: str) -> None:
    finding = findings(facts)[name]
    assert finding.state == "optional"
    assert detail in finding.detail
    assert todo in finding.todo
