"""The kernel files of this folder, and what their first lines say."""

from __future__ import annotations

import re
from pathlib import Path

from kernelforge_lab.judge.job import Job, Limits
from kernelforge_lab.kernels.kernel import Kernel
from tests.judge.regions import region

FOLDER = Path(__file__).parent
BAD = sorted((FOLDER / "bad_kernels").glob("*.cu"))
GOOD = sorted((FOLDER / "good_kernels").glob("*.cu"))
# compile_s 0: stock is eager alone, which is enough to judge correctness and saves minutes.
QUICK = Limits(call_s=1.0, time_s=0.2, compile_s=0.0)


def job(path: Path) -> tuple[Job, set[str]]:
    source = path.read_text()
    fields = dict(re.findall(r"^// (region|expect): (.*)$", source, re.MULTILINE))
    target = region(fields["region"])
    return Job(target, Kernel(source, target.hash, "cuda"), limits=QUICK), set(
        fields.get("expect", "").split()
    )
