"""The messages for one ask, rendered from the templates in ``prompts/``. Pure: equal asks, equal text.

What is the same for every call comes first (the system message: rules, machine, example), then what is
the same for a region, then the step: providers charge a tenth for a prefix they have seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import jinja2

from ...exc import ForgeError
from ...targets.base import DeviceInfo
from ..base import Ask, Messages, Repair
from ..outcome import Outcome
from .evidence import brief, describe
from .menus import text_of
from .replies import Parsed

_FOLDER: Final = Path(__file__).parent / "prompts"
_LANGUAGE: Final = {"cpu": "C++/OpenMP", "cuda": "CUDA C++"}
_FENCE_LANGUAGE: Final = {"cpu": "cpp", "cuda": "cuda"}
_EXAMPLE: Final = {"cpu": "example_cpu.cpp", "cuda": "example_cuda.cu"}
_INCLUDES: Final = (
    "immintrin.h, omp.h and the C++ standard headers for arithmetic (cmath, cstdint, algorithm …)"
)
_SIBLINGS: Final = 12
_HINT_CHARS: Final = 2_000

# Of a device's many features, those a kernel writer chooses code by.
_TELLING: Final = re.compile(
    r"avx2|avx512\w*|avx_vnni|amx\w*|fma|f16c|neon|asimd\w*|sve\w*|sm_\d+a?|bf16|i8mm"
)


@dataclass(frozen=True)
class Machine:
    """The device as the prompt tells it. Sizes in bytes, 0 when unknown."""

    name: str = "an unknown device"
    threads: int = 0
    l1_bytes: int = 0
    l2_bytes: int = 0
    llc_bytes: int = 0
    features: tuple[str, ...] = ()

    @classmethod
    def of(cls, info: DeviceInfo) -> Machine:
        telling = tuple(sorted(f for f in info.features if _TELLING.fullmatch(f)))
        return cls(info.name, info.threads, info.l1_bytes, info.l2_bytes, info.llc_bytes, telling)


def machine_of(target: str) -> Machine:
    """This machine's device for a target; an unknown one where there is none."""
    from ... import targets

    try:
        return Machine.of(targets.get(target).device())
    except ForgeError:
        return Machine()


def messages(ask: Ask, machine: Machine) -> Messages:
    """System and user message; for a repair the conversation so far and the verdict on its kernel."""
    if ask.repair is not None:
        return (*ask.repair.said, ("user", _repair(ask.repair)))
    return (("system", system(ask.target, machine)), ("user", _question(ask)))


@lru_cache(maxsize=16)
def system(target: str, machine: Machine) -> str:
    example = _EXAMPLE[target]
    return _render(
        "system.md.j2",
        target=target,
        language=_LANGUAGE[target],
        fence_language=_FENCE_LANGUAGE[target],
        includes=_INCLUDES,
        device=machine,
        caches=_caches(machine),
        example=(_FOLDER / example).read_text("utf-8").strip(),
        example_region=(_FOLDER / f"{example.split('.')[0]}.txt").read_text("utf-8").strip(),
    )


def reply_repair(parsed: Parsed, target: str) -> str:
    """What to say about a reply that is no kernel."""
    return _render(
        "reply_repair.md.j2",
        outcome=Outcome(parsed.outcome).value,
        reason=parsed.reason,
        target=target,
        language=_LANGUAGE[target],
    )


def as_text(said: Messages) -> str:
    """Messages as one text to read or to paste into a chat."""
    return "\n\n".join(f"<{role}>\n{text}\n</{role}>" if role != "user" else text for role, text in said)


def _question(ask: Ask) -> str:
    region = ask.region
    about = _render(
        "region.md.j2",
        region=region,
        facts=ask.facts,
        spelled_inputs=", ".join(f"in{i} {spec}" for i, spec in enumerate(region.inputs)),
        spelled_outputs=", ".join(f"out{i} {spec}" for i, spec in enumerate(region.outputs)),
    )
    parent = ask.parent.source.strip() if ask.parent else ""
    hint = _plain(ask.hint)[:_HINT_CHARS]
    step = _render(
        "step.md.j2",
        parent=parent,
        parent_verdict=describe(ask.parent_verdict) if ask.parent_verdict else "",
        params=", ".join(f"{k}={v}" for k, v in ask.parent.params) if ask.parent else "",
        siblings=[
            f"{kernel.strategy} ({kernel.proposer}): {_plain(kernel.idea)[:200]} → {brief(verdict)}"
            for kernel, verdict in ask.siblings[-_SIBLINGS:]
        ],
        strategy=ask.strategy,
        tactic=text_of(ask.strategy),
        hint=hint,
        fence=_fence(parent, hint),
        fence_language=_FENCE_LANGUAGE[ask.target],
    )
    return f"{about}\n\n{step}"


def _repair(repair: Repair) -> str:
    evidence = describe(repair.verdict)
    return _render("repair.md.j2", turn=repair.turn, evidence=evidence, fence=_fence(evidence))


def _fence(*texts: str) -> str:
    """A fence that none of the texts can close: longer than any run of backticks in them."""
    longest = max((len(run) for text in texts for run in re.findall("`+", text)), default=0)
    return "`" * max(3, longest + 1)


def _plain(text: str) -> str:
    """A person's text without control characters."""
    return "".join(c for c in text.strip() if c.isprintable() or c == "\n")


def _render(template: str, **values: object) -> str:
    return _environment().get_template(template).render(**values)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    # Prompts are text for a model, not HTML.
    environment = jinja2.Environment(  # noqa: S701
        loader=jinja2.FileSystemLoader(_FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    environment.globals.update(us=_us, percent=_percent, bytes=_bytes)
    return environment


def _caches(machine: Machine) -> str:
    levels = (("L1", machine.l1_bytes), ("L2", machine.l2_bytes), ("last cache", machine.llc_bytes))
    return "".join(f", {name} {_kib(size)}" for name, size in levels if size)


def _kib(size: int) -> str:
    return f"{size / 2**20:g} MiB" if size >= 2**20 else f"{size / 2**10:g} KiB"


def _bytes(size: int) -> str:
    return f"{size / 1e6:.2f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


def _us(time_us: float) -> str:
    return f"{time_us:.0f} µs" if time_us >= 100 else f"{time_us:.1f} µs"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
