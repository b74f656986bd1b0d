"""An export works where kernelforge-lab is not: same outputs, by the same machine code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kernelforge_lab.capture.trace import GraphBackend, through
from kernelforge_lab.deploy.install import Installer
from kernelforge_lab.export import export
from kernelforge_lab.targets import get
from kernelforge_lab.targets.elf import read_shared_object

from ..deploy.helpers import certified
from .made import history, regions_of
from .net import net
from .venv import torch_alone

HERE = Path(__file__).parent


@pytest.mark.slow
def test_a_wheel_in_a_venv_with_torch_alone_gives_what_the_forged_model_gives(tmp_path: Path) -> None:
    model, x = net()
    regions = regions_of(model, x)
    past = history("Net", regions)
    wheel = export(past, tmp_path / "out", wheel=True)
    work = tmp_path / "work"
    work.mkdir()
    for name in ("net.py", "program.py"):
        shutil.copy(HERE / name, work)

    kernels = {record.hash: node.kernel("cpu") for record, node in past.winners()}
    winners = {region.hash: certified(region, kernels[region.hash]) for region, _ in regions}
    installer = Installer(winners, shadow=0)
    forged = through(model, GraphBackend(installer.build))
    with torch.inference_mode():
        torch.save(forged(x), work / "forged.pt")
        torch.save(model(x), work / "stock.pt")

    python = torch_alone(tmp_path / "venv")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--no-index",
        "--no-deps",
        "--quiet",
    ]
    subprocess.run([*pip, str(wheel)], check=True)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    cache = tmp_path / "cache"
    environment = {**kept, "KERNELFORGE_EXPORT_CACHE": str(cache)}
    done = subprocess.run(
        [python, "program.py"], cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])

    assert said["found"] == [], "nothing of ours, and nothing that torch does not require, is there"
    assert said["from"].startswith(str(tmp_path / "venv"))
    assert said["same"] and said["close"] < 1e-5
    # Every place of every region is served: no call fell back, none was missed.
    assert said["counts"] == {region.hash: {"kernel": 3 * count} for region, count in regions}
    # Same speed: the very same machine code. (What the calls around it cost is measured in docs/export.md.)
    ours = set()
    for region, _ in regions:
        facts = read_shared_object(Path(get("cpu").build(kernels[region.hash], region).path))
        assert facts is not None
        ours.add(facts.code_hash)
    theirs = [read_shared_object(path) for path in cache.glob("*.so")]
    assert {facts.code_hash for facts in theirs if facts} == ours
