"""The exported package as somebody uses it: one kernel, an operator, layers, a whole model."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from kernelforge_lab.export import export
from kernelforge_lab.export.layers import layer_plans
from kernelforge_lab.kernels.region import Region

from .made import history, kernel_source, regions_of
from .net import net

GATED = Region.parse(
    "region(in0: f32[32,64], in1: f32[64]) {\n"
    "  t0 = aten.mul.Tensor(in0, in1) : f32[32,64]\n"
    "  t1 = aten.silu.default(t0) : f32[32,64]\n"
    "  t2 = aten.add.Tensor(t1, in0) : f32[32,64]\n"
    "  return t1, t2\n}"
)


def gated(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = nn.functional.silu(x * w)
    return y, y + x


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELFORGE_EXPORT_CACHE", str(tmp_path_factory.mktemp("built")))
        yield


class Exporter:
    """Writes packages under names of their own and imports them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.count = 0

    def __call__(
        self, regions: list[tuple[Region, int]], sources: dict[str, str] | None = None, **more: Any
    ) -> Any:
        self.count += 1
        title = (
            f"{self.root.name} {self.count}"  # a title of its own: operators are registered once a process
        )
        name = f"package_{self.root.name}_{self.count}".replace("-", "_")
        export(history(title, regions, sources), self.root / name, **more)
        return importlib.import_module(name)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Exporter:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Exporter(tmp_path)


@pytest.fixture
def package(make: Exporter) -> ModuleType:
    made: ModuleType = make([(GATED, 1)])
    return made


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(32, 64), torch.randn(64)


def test_a_kernel_answers_and_counts(package: Any) -> None:
    kernel, (x, w) = package.kernels[GATED.hash], inputs()
    kernel(x, w)  # compared with PyTorch, and counted all the same
    for got, want in zip(kernel(x, w), gated(x, w), strict=True):
        torch.testing.assert_close(got, want)
    assert package.counts() == {GATED.hash: {"kernel": 2}}


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda x, w: (x.double(), w.double()), "dtype"),
        (lambda x, w: (x[:5], w), "shape"),
        (lambda x, w: (x.t().contiguous().t(), w), "strides"),
        (lambda x, w: (x.to("meta"), w.to("meta")), "device"),
    ],
)
def test_what_does_not_fit_is_pytorchs_and_counted(package: Any, change: Any, reason: str) -> None:
    changed = change(*inputs())
    for got, want in zip(package.kernels[GATED.hash](*changed), gated(*changed), strict=True):
        assert got.device.type == "meta" or torch.equal(got, want)
    assert package.counts() == {GATED.hash: {reason: 1}}


def test_a_kernel_that_disagrees_on_this_machine_stays_off(make: Exporter) -> None:
    wrong = kernel_source(GATED).replace("expf(", "1.001f * expf(").replace("kf_exp", "1.001f * kf_exp")
    if wrong == kernel_source(GATED):
        wrong = kernel_source(GATED).replace("in0[", "1.001f * in0[")
    assert wrong != kernel_source(GATED)
    package, (x, w) = make([(GATED, 1)], {GATED.hash: wrong}), inputs()
    for _ in range(2):
        for got, want in zip(package.kernels[GATED.hash](x, w), gated(x, w), strict=True):
            assert torch.equal(got, want)
    assert package.counts() == {GATED.hash: {"disagrees with PyTorch on this device": 2}}


def test_without_a_compiler_the_model_still_runs(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    x, w = inputs()
    assert torch.equal(package.kernels[GATED.hash](x, w)[0], gated(x, w)[0])
    assert package.counts() == {GATED.hash: {"not built: no C++ compiler on PATH": 1}}


def test_scratch_memory_and_parameters_travel(make: Exporter) -> None:
    source = (
        "// forge: target cpu\n// forge: tune TWICE 1 2\n// forge: workspace scratch float32 NUMEL*TWICE\n"
        "// forge: launch f args=(in0, in1, out0, out1, scratch)\n"
        'extern "C" void f(const float* x, const float* w, float* y, float* z, float* scratch) {\n'
        "  for (long i = 0; i < NUMEL; i++) scratch[i * TWICE] = x[i] * w[i % COLS];\n"
        "  for (long i = 0; i < NUMEL; i++) { float v = scratch[i * TWICE];\n"
        "    y[i] = v / (1.0f + expf(-v)); z[i] = y[i] + x[i]; }\n}\n"
    )
    package, (x, w) = make([(GATED, 1)], {GATED.hash: source}), inputs()
    for got, want in zip(package.kernels[GATED.hash](x, w), gated(x, w), strict=True):
        torch.testing.assert_close(got, want)
    assert package.counts() == {GATED.hash: {"kernel": 1}}


def test_the_operator_passes_torchs_own_checks(package: Any) -> None:
    x, w = inputs()
    torch.library.opcheck(package.ops[GATED.hash], (x.requires_grad_(), w.requires_grad_()))


def test_the_operator_has_pytorchs_gradients(package: Any) -> None:
    x, w = (t.requires_grad_() for t in inputs())
    a, b = package.ops[GATED.hash](x, w)
    got = torch.autograd.grad((a * 2 + b).sum(), (x, w))
    a, b = gated(x, w)
    for mine, theirs in zip(got, torch.autograd.grad((a * 2 + b).sum(), (x, w)), strict=True):
        torch.testing.assert_close(mine, theirs)
    assert package.counts()[GATED.hash]["kernel"] == 1


def test_the_operator_works_in_one_graph_also_in_training(package: Any) -> None:
    op = package.ops[GATED.hash]

    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y, z = op(x * 2, w)
        return (y + z).relu().sum()

    def plain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y, z = gated(x * 2, w)
        return (y + z).relu().sum()

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    x, w = inputs()
    torch.testing.assert_close(compiled(x, w), plain(x, w))
    x.requires_grad_(), w.requires_grad_()
    got = torch.autograd.grad(compiled(x, w), (x, w))
    for mine, theirs in zip(got, torch.autograd.grad(plain(x, w), (x, w)), strict=True):
        torch.testing.assert_close(mine, theirs)
    assert set(package.counts()[GATED.hash]) == {"kernel"}


def test_inductor_takes_the_operator_too(package: Any) -> None:
    op = package.ops[GATED.hash]
    x, w = inputs()
    got = torch.compile(lambda x, w: op(x, w)[1] * 2, fullgraph=True)(x, w)
    torch.testing.assert_close(got, gated(x, w)[1] * 2)


def test_a_layer_that_is_one_kernel_is_found_and_kernelized(make: Exporter) -> None:
    model, x = net()
    regions = regions_of(model, x)
    plans = layer_plans(model, (x,), {}, [region for region, _ in regions])
    ((name, (plan,)),) = plans.items()
    assert name == "Norm" and plan["inputs"] == [0, "weight"] and not plan["training"]
    package = make(regions, layers=plans)
    with torch.no_grad():
        want = model(x)
        assert package.kernelize(model) == ["blocks.0.norm", "blocks.1.norm", "blocks.2.norm", "last"]
        for _ in range(2):
            torch.testing.assert_close(model(x), want)
        assert package.counts()[plan["region"]] == {"kernel": 8}
        model.last.weight.mul_(2)
        torch.testing.assert_close(model(x), net()[0].requires_grad_(False)(x) * 2 - model.head.bias)
        model(x[:1])  # another shape is the layer's own forward
    model(x).sum().backward()
    assert model.last.weight.grad is not None and package.counts()[plan["region"]] == {"kernel": 12}


def test_a_transformers_norm_is_kernelized(make: Exporter) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2, vocab_size=50
    )
    model = transformers.LlamaForCausalLM(config).eval().requires_grad_(False)
    tokens = torch.arange(12).view(1, 12)
    norm = model.model.norm
    ((region, _),) = regions_of(norm, torch.randn(1, 12, 64))
    plans = layer_plans(model, (tokens,), {}, [region])
    assert plans["LlamaRMSNorm"][0]["inputs"] == [0, "weight"]
    package = make([(region, 5)], layers=plans)
    want = model(tokens).logits
    assert len(package.kernelize(model)) == 5
    with torch.no_grad():
        torch.testing.assert_close(model(tokens).logits, want, rtol=1e-4, atol=1e-5)
    assert package.counts() == {region.hash: {"kernel": 5}}


def test_exported_programs_hold_the_kernels(make: Exporter, tmp_path: Path) -> None:
    model, x = net()
    regions = regions_of(model, x)
    package = make(regions)
    program = torch.export.export(model, (x,)).run_decompositions({})
    assert package.place(program.graph_module, as_ops=True) == sum(count for _, count in regions)
    torch.export.save(program, tmp_path / "net.pt2")
    again = torch.export.load(tmp_path / "net.pt2").module()
    torch.testing.assert_close(again(x), model(x))
    assert {name: sum(kinds.values()) for name, kinds in package.counts().items()} == {
        r.hash: n for r, n in regions
    }


def test_a_model_that_records_gradients_is_pytorchs_own(make: Exporter) -> None:
    model, x = net()
    package = make(regions_of(model, x))
    fast = package.apply(model)
    fast(x).sum().backward()
    assert model.head.weight.grad is not None and not any(package.counts().values())
    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x))
    assert all(kinds for kinds in package.counts().values())


def test_a_new_shape_is_another_graph_without_kernels(make: Exporter) -> None:
    model, x = net()
    package = make(regions_of(model, x))
    fast = package.apply(model, fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(fast(x[:1]), model(x[:1]))
    assert not any(package.counts().values())


def test_two_exports_live_in_one_process(make: Exporter) -> None:
    first, second = make([(GATED, 1)]), make([(GATED, 1)])
    assert first.ops[GATED.hash] is not second.ops[GATED.hash]


def test_the_loader_is_small_and_needs_torch_alone() -> None:
    import ast

    import kernelforge_lab.export as room

    folder = Path(room.__file__).parent
    assert len((folder / "loader.py").read_text().splitlines()) < 300
    for name in ("loader.py", "operators.py", "placing.py"):
        tree = ast.parse((folder / name).read_text())
        names = {
            a.name.split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for a in node.names
        }
        froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names |= {str(node.module).split(".")[0] for node in froms if node.level == 0}
        inner = {node.module for node in froms if node.level}
        assert names - set(sys.stdlib_module_names) == {"torch"} and inner <= {"loader", "operators"}
