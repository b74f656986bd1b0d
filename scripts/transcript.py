"""Record what the LLM's prompts are answered with: exact prompts out, replies in, verdicts kept.

    python scripts/transcript.py ask   cpu WORKDIR [NAME …]   # stock, templates, then WORKDIR/NAME.prompt.md
    python scripts/transcript.py judge cpu WORKDIR [NAME …]   # reads WORKDIR/NAME.reply.md, judges, and
                                                              # writes tests/transcripts/cpu/NAME.json

    python scripts/transcript.py measure cpu WORKDIR          # the gains again, on a quieter machine

Whoever answers writes ``NAME.reply.md`` from the prompt alone. When a kernel is wrong, ``judge`` writes the
repair prompt that the tool would send (``NAME.repair1.prompt.md``) and reads ``NAME.repair1.reply.md``.
``cuda`` needs a GPU for both steps.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from kernelforge_lab import targets
from kernelforge_lab.capture import capture
from kernelforge_lab.capture.workload import WorkloadRegion
from kernelforge_lab.judge.job import Job, Limits
from kernelforge_lab.judge.pool import JudgePool
from kernelforge_lab.judge.verdict import Verdict
from kernelforge_lab.kernels.format import parse
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.proposers.base import Ask, Facts, Repair
from kernelforge_lab.proposers.llm import menus, prompt, transcript
from kernelforge_lab.proposers.llm.proposer import LlmProposer
from kernelforge_lab.proposers.llm.settings import Settings
from kernelforge_lab.proposers.purse import Purse
from kernelforge_lab.proposers.templates.proposer import TemplatesProposer
from kernelforge_lab.search.regions import bottleneck_of
from kernelforge_lab.search.reward import reachable_us
from kernelforge_lab.search.work import REPAIRABLE

OUT = Path(__file__).parent.parent / "tests" / "transcripts"
Tensors = tuple[torch.Tensor, ...]
# On the cpu the duel decides, so stock is eager alone: torch.compile takes longer than everything else.
LIMITS = {"cpu": Limits(compile_s=0.0, time_s=1.0), "cuda": Limits()}


def rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    return (wide * torch.pow(wide.pow(2).mean(-1, keepdim=True) + 1e-6, -0.5) * w.float()).type_as(x)


def add_rms_norm(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> Tensors:
    hidden = x + y
    return rms_norm(hidden, w), hidden


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


def q_norm_rope(x: torch.Tensor, w: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return rope(rms_norm(x, w).transpose(1, 2), cos, sin)


def masked_softmax(x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.masked_fill(~keep, float("-inf")) * 0.125, dim=-1)


def batch_norm_relu_add(x: torch.Tensor, r: torch.Tensor, *stats: torch.Tensor) -> torch.Tensor:
    mean, var, w, b = stats
    return F.relu(F.batch_norm(x, mean, var, w, b) + r)


def decay_mask(g: torch.Tensor) -> torch.Tensor:
    """As the gated delta rule builds it: exp of the differences below the diagonal."""
    return torch.tril(torch.exp(torch.tril(g.unsqueeze(-1) - g.unsqueeze(-2))), diagonal=-1)


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator).to(dtype)


def cases(target: str) -> dict[str, tuple[Callable[..., Any], Tensors]]:
    """Region kinds in sizes that keep the target busy: ``k`` times more rows on a GPU."""
    k = 8 if target == "cuda" else 1
    n, bf16 = normal, torch.bfloat16
    keep = torch.rand(1, 1, 512, 512, generator=torch.Generator().manual_seed(1)) > 0.3
    stats = (n(64), n(64).abs() + 0.5, n(64), n(64))
    rows = 512 * k
    return {
        "add_rms_norm": (add_rms_norm, (n(rows, 2304), n(rows, 2304) * 0.5, n(2304))),
        "add_rms_norm_bf16": (
            add_rms_norm,
            (n(rows, 2304, dtype=bf16), n(rows, 2304, dtype=bf16), n(2304, dtype=bf16)),
        ),
        "gelu_mul": (lambda g, u: F.gelu(g, approximate="tanh") * u, (n(rows, 9216), n(rows, 9216) * 0.5)),
        "silu_mul_bf16": (
            lambda g, u: F.silu(g) * u,
            (n(rows, 4096, dtype=bf16), n(rows, 4096, dtype=bf16) * 0.5),
        ),
        "gelu_exact": (F.gelu, (n(rows, 3072),)),
        "softmax": (lambda x: torch.softmax(x, -1), (n(2 * rows, 2048),)),
        "log_softmax": (lambda x: torch.log_softmax(x, -1), (n(64 * k, 32000),)),
        "layer_norm": (lambda x, w, b: F.layer_norm(x, (2304,), w, b), (n(rows, 2304), n(2304), n(2304))),
        "group_norm_silu": (
            lambda x, w, b: F.silu(F.group_norm(x, 32, w, b)),
            (n(k, 256, 64, 64), n(256), n(256)),
        ),
        "rope": (rope, (n(1, 8 * k, 512, 256), n(1, 1, 512, 256), n(1, 1, 512, 256) * 0.5)),
        "q_norm_rope": (
            q_norm_rope,
            (n(1, 512, 8 * k, 128), n(128), n(1, 1, 512, 128), n(1, 1, 512, 128) * 0.5),
        ),
        "batch_norm_relu_add": (
            batch_norm_relu_add,
            (n(4 * k, 64, 56, 56), n(4 * k, 64, 56, 56) * 0.5, *stats),
        ),
        "masked_softmax": (masked_softmax, (n(1, 8 * k, 512, 512), keep)),
        "decay_mask": (decay_mask, (n(8 * k, 16, 64),)),
    }  # fmt: skip


def item_of(name: str, target: str) -> tuple[WorkloadRegion, Any]:
    function, inputs = cases(target)[name]
    if target == "cuda":
        inputs = tuple(t.cuda() for t in inputs)
    with torch.no_grad():
        workload = capture(function, inputs, {}, target=target)
    (item,) = workload.regions
    return item, workload.roofs


def ask(target: str, folder: Path, names: list[str]) -> None:
    """Prompts, and what they were made from. A judge per region, as a run would have found it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        item, roofs = item_of(name, target)
        region, bottleneck = item.region, bottleneck_of(item, roofs)
        writer, threads = TemplatesProposer(), torch.get_num_threads() if target == "cpu" else 0
        tried: list[tuple[Kernel, Verdict]] = []
        with JudgePool(target) as pool:
            stock = pool.prepare(region, item.stats).result()
            for strategy in writer.strategies(region, target, None):
                kernel = writer.propose(Ask(region, target, strategy, threads=threads))
                if kernel is not None:
                    kernel, verdict = best_of(pool, item, settled(kernel))
                    tried.append((kernel, verdict))
                    print(
                        name,
                        strategy,
                        verdict.status.value,
                        speedup(verdict),
                        dict(kernel.params),
                        flush=True,
                    )
        tried.sort(key=lambda pair: -speedup(pair[1]))
        parent, verdict = tried[0]
        floor_us = min(item.floor_us, stock.floor_us) if stock.floor_us else item.floor_us
        facts = Facts(
            bottleneck, tuple((k, round(v, 1)) for k, v in stock.times_us.items()), round(floor_us, 1),
            round(reachable_us(floor_us, bottleneck), 1), 0.2, 4, round(roofs.bandwidth_gbps, 1),
            round(roofs.gflops, 1),
        )  # fmt: skip
        strategy = menus.menu(target, bottleneck, has_parent=True)[0]
        question = Ask(
            region, target, strategy, parent, verdict, tuple(tried[1:4]), threads=threads, facts=facts,
        )  # fmt: skip
        machine = prompt.machine_of(target)
        text = prompt.as_text(prompt.messages(question, machine))
        (folder / f"{name}.prompt.md").write_text(text, "utf-8")
        data = transcript.ask_as_json(question, machine)
        (folder / f"{name}.ask.json").write_text(json.dumps(data, ensure_ascii=False), "utf-8")


def judge(target: str, folder: Path, names: list[str]) -> None:
    """Every reply read as the tool reads it, judged, and its finalist compared with the templates'."""
    (OUT / target).mkdir(parents=True, exist_ok=True)
    for name in names:
        if not (folder / f"{name}.reply.md").exists():
            continue
        item, _ = item_of(name, target)
        inputs = cases(target)[name][1]
        data = json.loads((folder / f"{name}.ask.json").read_text("utf-8"))
        question, machine = transcript.ask_from_json(data)
        assert question.parent is not None
        assert question.region.hash == item.region.hash
        turns: list[dict[str, Any]] = []
        with JudgePool(target) as pool:
            kernel, verdict = answered(
                pool, item, question, machine=machine, stem=folder / name, turns=turns, inputs=inputs
            )
            # The duel decides on the cpu; on a GPU nobody else is there, so finalists can be compared.
            both = target == "cuda" and verdict.status.is_correct
            ours = final(pool, item, kernel, 11) if both else verdict
            theirs = final(pool, item, question.parent, 11) if both else question.parent_verdict
            assert theirs is not None
        if target == "cpu" and verdict.status.is_correct:
            # Both kernels in turns on the same tensors: what else the machine does hits them alike.
            gain, low, high = duel(item, question.parent, kernel, inputs)
        else:
            gain = speedup(ours) / speedup(theirs) if speedup(theirs) else 0.0
            low = high = gain
        against = ours.timing.stock if ours.timing else "-"
        print(
            f"{name}: {ours.status.value} {speedup(ours):.2f}× of {against}, "
            f"templates {speedup(theirs):.2f}×, gain {gain:.2f} ({low:.2f}–{high:.2f}); "
            f"{dict(kernel.params)} {ours.evidence[:300]}",
            flush=True,
        )
        result = {
            "name": name,
            "ask": data,
            "turns": turns,
            "params": dict(kernel.params),
            "source": kernel.source,
            "stats": [asdict(s) for s in item.stats],
            "verdict": ours.as_json(),
            "templates": theirs.as_json(),
            "gain": [round(gain, 3), round(low, 3), round(high, 3)],
        }
        path = OUT / target / f"{name}.json"
        path.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", "utf-8")


def measure(target: str, _folder: Path, names: list[str]) -> None:
    """Duel again, each side with the parameters that are best now, and keep the gains in the transcripts."""
    for name in names:
        path = OUT / target / f"{name}.json"
        if not path.exists():
            continue
        data = json.loads(path.read_text("utf-8"))
        question, _ = transcript.ask_from_json(data["ask"])
        assert question.parent is not None
        item, _ = item_of(name, target)
        inputs = cases(target)[name][1]
        kernel = settled(Kernel(data["source"], item.region.hash, target))
        kernel, old = (fastest(item, side, inputs) for side in (kernel, question.parent))
        data["params"], data["gain"] = (
            dict(kernel.params),
            [round(g, 3) for g in duel(item, old, kernel, inputs)],
        )
        print(name, data["gain"], dict(kernel.params), dict(old.params), flush=True)
        path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf-8")


def answered(
    pool: JudgePool,
    item: WorkloadRegion,
    question: Ask,
    *,
    machine: prompt.Machine,
    stem: Path,
    turns: list[dict[str, Any]],
    inputs: Tensors,
) -> tuple[Kernel, Verdict]:
    """The answer's kernel with its best parameters, repaired twice at most."""
    reply = stem.with_name(f"{stem.name}.reply.md").read_text("utf-8")
    for turn in range(3):
        said = prompt.as_text(prompt.messages(question, machine))
        endpoint = transcript.ReplayEndpoint([(said, reply)])
        proposal = LlmProposer(Settings(("you",), "http://localhost/v1"), machine, endpoint).propose(
            replace(question, purse=Purse(1.0))
        )
        if proposal.kernel is None:
            raise SystemExit(f"{stem.name}: {proposal.outcome.value}: {proposal.reason}")
        kernel = settled(proposal.kernel)
        job = Job(item.region, kernel, item.stats, limits=LIMITS[kernel.target])
        verdict = pool.submit(job).result()
        if question.target == "cpu" and verdict.status.is_correct:
            kernel = fastest(item, kernel, inputs)
        elif verdict.status.is_correct:
            kernel, verdict = best_of(pool, item, kernel)
        turns.append({"prompt": said, "reply": reply, "verdict": verdict.as_json()})
        answer = stem.with_name(f"{stem.name}.repair{turn + 1}.reply.md")
        if verdict.status not in REPAIRABLE or turn == 2:
            break
        question = replace(question, repair=Repair(turn + 1, proposal.kernel, verdict, proposal.said))
        text = prompt.as_text(prompt.messages(question, machine))
        stem.with_name(f"{stem.name}.repair{turn + 1}.prompt.md").write_text(text, "utf-8")
        if not answer.exists():
            break
        reply = answer.read_text("utf-8")
    return kernel, verdict


def fastest(item: WorkloadRegion, kernel: Kernel, inputs: Tensors) -> Kernel:
    """The kernel with the parameters that win duels against its first ones."""
    tunes = parse(kernel.source).tunes
    found = [(1.0, kernel)]
    for values in itertools.product(*tunes.values()):
        other = kernel.tuned(**dict(zip(tunes, values, strict=True)))
        if other.params != kernel.params:
            found.append((duel(item, kernel, other, inputs)[0], other))
    return max(found, key=lambda pair: pair[0])[1]


def duel(item: WorkloadRegion, old: Kernel, new: Kernel, inputs: Tensors) -> tuple[float, float, float]:
    """Time of the old kernel over the new one's, run in turns, with the range over four parts of the data.

    By the quiet tenth of each, because the machine may be shared: a median would measure the others.
    """
    region, machine = item.region, targets.get("cpu")
    tensors = dict(zip(region.input_names, capture_order(item, inputs), strict=True))
    for name, spec in zip(region.output_names, region.outputs, strict=True):
        tensors[name] = torch.empty_strided(spec.shape, spec.strides, dtype=getattr(torch, spec.dtype))
    pointers = {name: tensor.data_ptr() for name, tensor in tensors.items()}
    calls = [machine.load(machine.build(kernel, region))(pointers) for kernel in (old, new)]
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(96):
        for which in (0, 1, 1, 0) if turn % 2 else (1, 0, 0, 1):
            calls[which]()
            start = time.perf_counter()
            for _ in range(3):
                calls[which]()
            times[which].append(time.perf_counter() - start)
    parts = sorted(_quiet(times[0][k::4]) / _quiet(times[1][k::4]) for k in range(4))
    return _quiet(times[0]) / _quiet(times[1]), parts[0], parts[-1]


def _quiet(times: list[float]) -> float:
    """The time that a tenth of the blocks beat: what a kernel takes when nothing else runs."""
    return sorted(times)[len(times) // 10]


def capture_order(item: WorkloadRegion, inputs: Tensors) -> list[torch.Tensor]:
    """Tensors of the region's specs; which values they hold does not matter for time (all are normal)."""
    made = []
    for spec in item.region.inputs:
        fitting = [
            t for t in inputs if tuple(t.shape) == spec.shape and str(t.dtype) == f"torch.{spec.dtype}"
        ]
        made.append(fitting[0].clone() if fitting else torch.rand(spec.shape).to(getattr(torch, spec.dtype)))
    return made


def settled(kernel: Kernel) -> Kernel:
    tunes = parse(kernel.source).tunes
    return kernel.tuned(**{**{n: v[0] for n, v in tunes.items()}, **dict(kernel.params)})


def best_of(pool: JudgePool, item: WorkloadRegion, kernel: Kernel) -> tuple[Kernel, Verdict]:
    """The kernel with the first parameters, then the best of all its combinations (quick races)."""
    first = pool.submit(Job(item.region, kernel, item.stats)).result()
    if not first.status.is_correct:
        return kernel, first
    tunes = parse(kernel.source).tunes
    combinations = [dict(zip(tunes, values, strict=True)) for values in itertools.product(*tunes.values())]
    found = [(kernel, first)]
    for params in combinations[:16]:
        other = kernel.tuned(**params)
        if other.params != kernel.params:
            found.append((other, pool.submit(Job(item.region, other, item.stats, quick=True)).result()))
    return max(found, key=lambda pair: speedup(pair[1]))


def final(pool: JudgePool, item: WorkloadRegion, kernel: Kernel, seed: int) -> Verdict:
    return pool.submit(
        Job(item.region, kernel, item.stats, seed, finalist=True, limits=LIMITS[kernel.target])
    ).result()


def speedup(verdict: Verdict) -> float:
    return verdict.timing.speedup if verdict.timing and verdict.status.is_correct else 0.0


def main() -> None:
    what, target, folder, *names = sys.argv[1:]
    {"ask": ask, "judge": judge, "measure": measure}[what](target, Path(folder), names or list(cases(target)))


if __name__ == "__main__":
    main()
