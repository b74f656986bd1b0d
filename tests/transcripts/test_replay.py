"""Recorded transcripts: the same prompts, the same replies and the same kernels again; still correct.

``scripts/transcript.py`` records them: whoever answered had only the prompt, as with ``run.prompt``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelforge_lab import targets
from kernelforge_lab.judge.job import Job, Limits
from kernelforge_lab.judge.pool import JudgePool
from kernelforge_lab.judge.verdict import Verdict
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.stats import InputStats
from kernelforge_lab.proposers.base import Proposal, Repair
from kernelforge_lab.proposers.llm import prompt, transcript
from kernelforge_lab.proposers.llm.proposer import LlmProposer
from kernelforge_lab.proposers.llm.settings import Settings
from kernelforge_lab.proposers.purse import Purse

FOLDER = Path(__file__).parent
RECORDED = {f"{p.parent.name}/{p.stem}": p for p in sorted(FOLDER.glob("*/*.json"))}
CPU = [name for name in RECORDED if name.startswith("cpu/")]


def read(name: str) -> dict[str, Any]:
    return dict(json.loads(RECORDED[name].read_text("utf-8")))


def replay(data: dict[str, Any]) -> list[Proposal]:
    """Every turn again, each from a prompt rendered anew."""
    ask, machine = transcript.ask_from_json(data["ask"])
    proposals = []
    for number, turn in enumerate(data["turns"], start=1):
        endpoint = transcript.ReplayEndpoint([(turn["prompt"], turn["reply"])])
        writer = LlmProposer(Settings(("you",), "http://localhost/v1"), machine, endpoint)
        proposal = writer.propose(replace(ask, purse=Purse(1.0)))
        proposals.append(proposal)
        if proposal.kernel is not None:
            verdict = Verdict.from_json(turn["verdict"])
            ask = replace(ask, repair=Repair(number, proposal.kernel, verdict, proposal.said))
    return proposals


def test_there_is_a_transcript_for_each_kind_of_region() -> None:
    assert len(CPU) >= 12


@pytest.mark.parametrize("name", RECORDED)
def test_a_transcript_replays_bit_for_bit(name: str) -> None:
    data = read(name)
    proposals = replay(data)
    assert proposals[-1].kernel is not None, proposals[-1].reason
    assert proposals[-1].kernel.source == data["source"]


@pytest.mark.parametrize("name", RECORDED)
def test_an_ask_survives_its_own_json(name: str) -> None:
    ask, machine = transcript.ask_from_json(read(name)["ask"])
    again = json.loads(json.dumps(transcript.ask_as_json(ask, machine)))
    assert transcript.ask_from_json(again) == (ask, machine)
    assert prompt.as_text(prompt.messages(ask, machine)) == read(name)["turns"][0]["prompt"]


def test_most_answers_are_faster_than_the_templates_best() -> None:
    gains = [read(name)["gain"][0] for name in CPU]
    assert sum(gain > 1.1 for gain in gains) >= len(gains) / 2


def test_a_changed_prompt_is_noticed() -> None:
    data = read(CPU[0])
    data["turns"][0]["prompt"] += "!"
    assert "differs" in replay(data)[0].reason


@pytest.mark.slow
@pytest.mark.skipif("avx512f" not in targets.get("cpu").device().features, reason="kernels for AVX-512")
def test_the_kernels_of_the_transcripts_are_still_correct() -> None:
    with JudgePool("cpu") as pool:
        for name in CPU:
            data = read(name)
            ask, _ = transcript.ask_from_json(data["ask"])
            kernel = Kernel(data["source"], ask.region.hash, "cpu", tuple(sorted(data["params"].items())))
            stats = tuple(InputStats(**s) for s in data["stats"])
            job = Job(ask.region, kernel, stats, seed=5, limits=Limits(compile_s=0.0), timed=False)
            verdict = pool.submit(job).result()
            assert verdict.status.is_correct, (name, verdict.status, verdict.evidence)
