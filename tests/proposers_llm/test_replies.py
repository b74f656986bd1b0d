"""What a model may say, and what becomes of it: read over a real connection, chat and responses API."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelforge_lab.kernels.format import parse
from kernelforge_lab.proposers.base import Proposal
from kernelforge_lab.proposers.llm import replies
from kernelforge_lab.proposers.outcome import Outcome

from .asks import KERNEL, PARENT, REGION, ask, fenced, proposer
from .server import Server, say

EDIT = """Idea: no branch.
<<<<<<< SEARCH
  for (long i = 0; i < NUMEL; ++i) y[i] = x[i] > 0 ? x[i] : 0;
=======
  for (long i = 0; i < NUMEL; ++i) y[i] = kf::max(x[i], 0.f);
>>>>>>> REPLACE
"""
TRITON = "```python\nimport triton\n@triton.jit\ndef relu(x, y):\n    pass\n```"

# name -> (reply, finish reason, outcome): every reply is a typed outcome.
REPLIES: dict[str, tuple[str, str, Outcome]] = {
    "a whole file": (fenced(), "stop", Outcome.KERNEL),
    "another fence language": (fenced(language="c++"), "stop", Outcome.KERNEL),
    "a tilde fence": (fenced().replace("```", "~~~"), "stop", Outcome.KERNEL),
    "a four-tick fence": (fenced().replace("```", "````"), "stop", Outcome.KERNEL),
    "windows line ends": (fenced().replace("\n", "\r\n"), "stop", Outcome.KERNEL),
    "the file alone, without a fence": (KERNEL, "stop", Outcome.KERNEL),
    "a fence that is not closed": (fenced().rstrip().rstrip("`"), "stop", Outcome.KERNEL),
    "the same file twice": (fenced() + fenced(), "stop", Outcome.KERNEL),
    "a snippet beside the file": ("```cpp\nint x;\n```\n" + fenced(), "stop", Outcome.KERNEL),
    "unicode quotes": (fenced(KERNEL.replace('"C"', "“C”")), "stop", Outcome.KERNEL),
    "no-break spaces": (fenced(KERNEL.replace("void relu", "void\u00a0relu")), "stop", Outcome.KERNEL),
    "zero-width spaces": (fenced(KERNEL.replace("relu(", "relu\u200b(")), "stop", Outcome.KERNEL),
    "a lone surrogate": (fenced().replace("goes", "goes \ud800"), "stop", Outcome.KERNEL),
    "an edit": (EDIT, "stop", Outcome.KERNEL),
    "an edit in a fence": (f"```\n{EDIT}```", "stop", Outcome.KERNEL),
    "an edit with other white space": (EDIT.replace("  for (long", "\tfor  (long"), "stop", Outcome.KERNEL),
    "an edit of lines that are not there": (EDIT.replace("x[i] : 0", "x[i] : 1"), "stop", Outcome.BAD_EDIT),
    "an edit of lines that are there twice": (
        EDIT.replace("  for (long i = 0; i < NUMEL; ++i) y[i] = x[i] > 0 ? x[i] : 0;", "// the end"),
        "stop",
        Outcome.BAD_EDIT,
    ),
    "an edit without an end": (EDIT.replace(">>>>>>> REPLACE", ""), "stop", Outcome.BAD_EDIT),
    "an edit that searches for nothing": (
        "<<<<<<< SEARCH\n=======\nint x;\n>>>>>>> REPLACE\n",
        "stop",
        Outcome.BAD_EDIT,
    ),
    "an edit cut off": (EDIT.split(">>>>", maxsplit=1)[0], "length", Outcome.TRUNCATED),
    "an edit that changes nothing": (
        "<<<<<<< SEARCH\n}\n=======\n}\n>>>>>>> REPLACE\n",
        "stop",
        Outcome.UNCHANGED,
    ),
    "the parent again": (fenced(PARENT), "stop", Outcome.UNCHANGED),
    "prose": ("One could use AVX-512 here.", "stop", Outcome.NO_CODE),
    "the file inside prose, no fence": (f"Here it is:\n{KERNEL}", "stop", Outcome.NO_CODE),
    "nothing": ("", "stop", Outcome.EMPTY),
    "white space": ("\n\n  \n", "stop", Outcome.EMPTY),
    "reasoning that ate the tokens": ("", "length", Outcome.OUT_OF_TOKENS),
    "two different files": (fenced() + fenced(PARENT), "stop", Outcome.TWO_KERNELS),
    "a host main": (fenced(KERNEL + "int main() { return 0; }\n"), "stop", Outcome.HOST_CODE),
    "a host main alone": ("```cpp\nint main() { return 0; }\n```", "stop", Outcome.HOST_CODE),
    "a torch extension": (
        fenced(KERNEL + "torch::Tensor f(torch::Tensor x) { return x; }\n"),
        "stop",
        Outcome.HOST_CODE,
    ),
    "a launch of another name": (
        fenced(KERNEL.replace("launch relu", "launch rely")),
        "stop",
        Outcome.WRONG_NAME,
    ),
    "Triton": (TRITON, "stop", Outcome.WRONG_LANGUAGE),
    "Triton cut off": (TRITON.rstrip("`"), "length", Outcome.WRONG_LANGUAGE),
    "PyTorch": (
        "```python\nimport torch\ndef relu(x):\n    return x.clamp(min=0)\n```",
        "stop",
        Outcome.WRONG_LANGUAGE,
    ),
    "a CUDA kernel for the cpu": (
        fenced(KERNEL.replace("target cpu", "target cuda").replace("args", "grid=(1) block=(32) args")),
        "stop",
        Outcome.WRONG_TARGET,
    ),
    "a __global__ function for the cpu": (
        fenced(KERNEL.replace('extern "C" void', 'extern "C" __global__ void')),
        "stop",
        Outcome.WRONG_TARGET,
    ),
    "code without forge lines": (
        "```cpp\nvoid relu(const float* x, float* y) {}\n```",
        "stop",
        Outcome.BAD_FORGE_LINE,
    ),
    "a forge line that cannot be read": (
        fenced(KERNEL.replace("args=(in0, out0)", "args=(in0, out0")),
        "stop",
        Outcome.BAD_FORGE_LINE,
    ),
    "a tensor that the region does not have": (
        fenced(KERNEL.replace("in0, out0", "in7, out0")),
        "stop",
        Outcome.BAD_FORGE_LINE,
    ),
    "an output that nobody writes": (
        fenced(KERNEL.replace("args=(in0, out0)", "args=(in0)")),
        "stop",
        Outcome.BAD_FORGE_LINE,
    ),
    "cut off in the kernel": (fenced().split("for (")[0], "length", Outcome.TRUNCATED),
    "cut off without saying so": (fenced().split("for (")[0], "stop", Outcome.TRUNCATED),
    "cut off before any code": ("Let me think about the layout.", "length", Outcome.TRUNCATED),
    "braces that do not close": (fenced(KERNEL.rstrip().rstrip("}")), "stop", Outcome.TRUNCATED),
    "a refusal": ("I'm sorry, I cannot help with that.", "stop", Outcome.REFUSED),
    "a content filter": ("", "content_filter", Outcome.REFUSED),
    "200 KB of text": ("very fast " * 20_000, "stop", Outcome.TOO_LONG),
    "a file of 200 KB": (fenced(KERNEL + "// padding\n" * 20_000), "stop", Outcome.TOO_LONG),
}


def answer(text: str, finish: str, **changes: Any) -> tuple[Proposal, Server]:
    with Server(
        [say(text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"), finish=finish)]
    ) as server:
        return proposer(server.url, **changes).propose(ask()), server


def test_at_least_forty_kinds_of_reply_are_told_apart() -> None:
    assert len(REPLIES) >= 40
    assert {outcome for _, _, outcome in REPLIES.values()} >= {o for o in Outcome if o.is_repairable}


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("name", REPLIES)
def test_every_reply_has_its_outcome(name: str, api: str) -> None:
    text, finish, outcome = REPLIES[name]
    proposal, server = answer(text, finish, api=api)
    assert (proposal.outcome, bool(proposal.reason)) == (outcome, outcome is not Outcome.KERNEL), (
        proposal.reason
    )
    assert (proposal.kernel is not None) == (outcome is Outcome.KERNEL)
    # One more turn for a reply that telling the model may repair, none for any other.
    assert len(server.requests) == len(proposal.calls) == (2 if outcome.is_repairable else 1)
    if proposal.kernel is not None:
        body = KERNEL.split('extern "C"')[1].split()
        assert proposal.kernel.source.split('extern "C"')[1].split()[: len(body)] == body
        assert proposal.idea


def test_the_second_turn_says_what_was_wrong_and_its_answer_counts() -> None:
    with Server([say(TRITON), say(fenced())]) as server:
        proposal = proposer(server.url).propose(ask())
    assert proposal.outcome is Outcome.KERNEL and proposal.kernel is not None
    assert [call.outcome for call in proposal.calls] == [Outcome.WRONG_LANGUAGE, Outcome.KERNEL]
    said = server.requests[1]["messages"]
    assert [m["role"] for m in said] == ["system", "user", "assistant", "user"]
    assert "Python or Triton" in said[-1]["content"] and said[2]["content"] == TRITON
    assert said[:2] == server.requests[0]["messages"], "the prefix stays, so that it is cached"


def test_a_bad_edit_asks_for_the_whole_file() -> None:
    with Server([say(EDIT.replace("x[i] : 0", "x[i] : 1")), say(fenced())]) as server:
        proposal = proposer(server.url).propose(ask())
    assert proposal.kernel is not None and proposal.kernel.source == KERNEL
    assert "whole kernel file" in server.requests[1]["messages"][-1]["content"]


def test_reasoning_that_ate_the_tokens_gets_more_of_them() -> None:
    with Server([say("", finish="length"), say(fenced())]) as server:
        proposal = proposer(server.url, output_tokens=3000).propose(ask())
    assert proposal.kernel is not None
    assert [r["max_tokens"] for r in server.requests] == [3000, 6000]


def test_the_idea_is_the_kernels_own_line_else_the_replys() -> None:
    assert replies.read(fenced(), REGION, "cpu").idea == "no branch"
    edited = replies.read(EDIT, REGION, "cpu", parent=PARENT)
    assert edited.idea == "no branch.", "the parent's idea line is still in the source"
    without = fenced(KERNEL.replace("// forge: idea no branch\n", ""))
    assert replies.read(without, REGION, "cpu").idea == "the parent's branch goes."


_WORDS = st.sampled_from(
    [
        *KERNEL.splitlines(keepends=True),
        *EDIT.splitlines(keepends=True),
        "```\n",
        "```cpp\n",
        "~~~\n",
        "{",
        "}",
        "\0",
    ]
)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.text(), st.lists(st.one_of(_WORDS, st.text(max_size=8)), max_size=30).map("".join)),
    st.sampled_from(["stop", "length", "content_filter", "", "tool_calls"]),
    st.sampled_from(["", PARENT]),
)
def test_no_reply_whatever_raises_and_a_kernel_is_always_a_whole_file(
    text: str, finish: str, base: str
) -> None:
    parsed = replies.read(text, REGION, "cpu", parent=base, finish=finish)
    assert isinstance(parsed.outcome, Outcome)
    if parsed.outcome is Outcome.KERNEL:
        assert parse(parsed.source).launches
    else:
        assert parsed.reason and not parsed.source


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(fenced())))
def test_a_reply_cut_anywhere_is_never_taken_for_a_kernel_that_it_is_not(at: int) -> None:
    parsed = replies.read(fenced()[:at], REGION, "cpu", finish="length")
    assert parsed.outcome in (Outcome.KERNEL, Outcome.TRUNCATED, Outcome.OUT_OF_TOKENS)
    if parsed.outcome is Outcome.KERNEL:
        assert parsed.source.strip() == KERNEL.strip()
