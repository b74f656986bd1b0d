"""Installed kernels run where the caller's work is: any stream, graph capture, threads, devices."""

from __future__ import annotations

import threading

import pytest

from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region

pytestmark = pytest.mark.gpu

ADD = Region.parse("""region(in0: f32[4096,512], in1: f32[512]) {
  t0 = aten.add.Tensor(in0, in1) : f32[4096,512]
  return t0
}""")
SOURCE = """\
// forge: target cuda
// forge: launch add grid=(cdiv(NUMEL, 1024)) block=(256) args=(in0, in1, out0)
extern "C" __global__ void add(const float* __restrict__ x, const float* __restrict__ b, float* y) {
  int64_t i = kf::thread_index() * 4;
  auto v = kf::load<4>(x + i), u = kf::load<4>(b + i % COLS);
  for (int j = 0; j < 4; j++) v[j] += u[j];
  kf::store(y + i, v);
}
"""
SCRATCH = """\
// forge: target cuda
// forge: workspace copy float32 NUMEL
// forge: launch first grid=(cdiv(NUMEL, 256)) block=(256) args=(in0, copy)
// forge: launch second grid=(cdiv(NUMEL, 256)) block=(256) args=(copy, in1, out0)
extern "C" __global__ void first(const float* x, float* t) { auto i = kf::thread_index(); t[i] = x[i]; }
extern "C" __global__ void second(const float* t, const float* b, float* y) {
  auto i = kf::thread_index();
  y[i] = t[i] + b[i % COLS];
}
"""


def guarded(source: str = SOURCE, shadow: int = 0, strict: bool = True):  # type: ignore[no-untyped-def]
    from kernelforge_lab.deploy.counts import Counts
    from kernelforge_lab.deploy.install import Installer
    from tests.deploy.helpers import certified

    counts = Counts()
    kernel = Kernel(source, ADD.hash, "cuda")
    installer = Installer({ADD.hash: certified(ADD, kernel)}, "cuda", shadow, strict, counts)
    call = installer.implement(ADD)
    assert call is not None, installer.notes
    return call, counts


def inputs():  # type: ignore[no-untyped-def]
    import torch

    return torch.randn(4096, 512, device="cuda"), torch.randn(512, device="cuda")


@pytest.mark.parametrize("source", [SOURCE, SCRATCH], ids=["plain", "workspace"])
@pytest.mark.parametrize("where", ["default", "side"])
def test_a_kernel_runs_in_order_with_the_callers_stream(source: str, where: str) -> None:
    import torch

    call, counts = guarded(source)
    x, b = inputs()
    stream = torch.cuda.default_stream() if where == "default" else torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        x.add_(1)  # the kernel must wait for it, and what follows must wait for the kernel
        y = x
        for _ in range(20):
            (y,) = call(y, b)
        z = y * 2
    stream.synchronize()
    want = x
    for _ in range(20):
        want = want + b
    assert torch.equal(z, want * 2)
    assert (counts.hits, counts.fallbacks) == (20, {})


@pytest.mark.parametrize("source", [SOURCE, SCRATCH], ids=["plain", "workspace"])
def test_a_kernel_is_captured_in_a_cuda_graph(source: str) -> None:
    import torch

    call, _ = guarded(source)
    x, b = inputs()
    call(x, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (y,) = call(x, b)
        z = y * 2
    for _ in range(3):
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(z, (x + b) * 2)


def test_threads_share_a_kernel_each_on_its_stream() -> None:
    import torch

    call, counts = guarded(SCRATCH)
    problems: list[str] = []

    def work(seed: int) -> None:
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                x = torch.full((4096, 512), float(seed), device="cuda")
                b = torch.full((512,), 1.0, device="cuda")
                for _ in range(50):
                    (x,) = call(x, b)
                torch.cuda.current_stream().synchronize()
                if not bool((x == seed + 50).all()):
                    problems.append(f"thread {seed}")
        except Exception as error:  # noqa: BLE001 - threads hide what they raise
            problems.append(repr(error))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert counts.hits == 300


def test_a_thread_that_never_used_cuda_can_launch() -> None:
    import torch

    call, counts = guarded()
    x, b = inputs()
    got = []
    thread = threading.Thread(target=lambda: got.append(call(x, b)[0]))
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert torch.equal(got[0], x + b)
    assert counts.fallbacks == {}


def test_the_first_calls_are_shadowed_and_a_wrong_kernel_is_off_for_good() -> None:
    import torch

    x, b = inputs()
    call, counts = guarded(shadow=2)
    for _ in range(4):
        assert torch.equal(call(x, b)[0], x + b)
    assert (counts.hits, counts.fallbacks) == (2, {"shadow check": 2})
    wrong, counts = guarded(SOURCE.replace("v[j] += u[j]", "v[j] += u[j] * 1.01f"), shadow=2, strict=False)
    for _ in range(3):
        assert torch.equal(wrong(x, b)[0], x + b)
    assert counts.hits == 0


def test_inputs_that_do_not_fit_fall_back_to_pytorch_with_a_reason() -> None:
    import torch

    call, counts = guarded(strict=False)
    x, b = inputs()
    shifted = torch.randn(4096 * 512 + 1, device="cuda")[1:].view(4096, 512)
    assert torch.equal(call(shifted, b)[0], shifted + b)
    assert torch.equal(call(x[:7], b)[0], x[:7] + b)
    assert torch.equal(call(x.cpu(), b.cpu())[0], (x.cpu() + b.cpu()))
    assert counts.fallbacks == {"alignment": 1, "shape": 1, "device": 1}


def test_a_kernel_follows_its_inputs_to_another_gpu() -> None:
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    call, counts = guarded()
    x, b = (t.to("cuda:1") for t in inputs())
    y = call(x, b)[0]
    assert y.device == x.device
    assert torch.equal(y, x + b)
    assert counts.fallbacks == {}


def test_indices_past_two_to_the_31() -> None:
    import torch

    from kernelforge_lab import targets

    count = 2**31 + 1024
    if torch.cuda.mem_get_info()[0] < 6 * 2**30:
        pytest.skip("too little memory")
    region = Region.parse(
        f"region(in0: i8[{count}]) {{\n  t0 = aten.neg.default(in0) : i8[{count}]\n  return t0\n}}"
    )
    source = (
        "// forge: target cuda\n// forge: launch negate grid=(cdiv(NUMEL, 256)) block=(256) args=(in0, out0)\n"
        'extern "C" __global__ void negate(const int8_t* x, int8_t* y) {\n'
        "  int64_t i = kf::thread_index();\n  if (i < NUMEL) y[i] = -x[i];\n}\n"
    )
    target = targets.get("cuda")
    x = torch.randint(-100, 100, (count,), dtype=torch.int8, device="cuda")
    y = torch.zeros_like(x)
    launcher = target.load(target.build(Kernel(source, region.hash, "cuda"), region))
    launcher({"in0": x.data_ptr(), "out0": y.data_ptr()})()
    torch.cuda.synchronize()
    assert torch.equal(y, -x)
