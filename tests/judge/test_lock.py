"""Two judges on one machine measure one after the other."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from kernelforge_lab.judge.lock import DeviceLock

HOLDER = """
import sys
from pathlib import Path
from kernelforge_lab.judge.lock import DeviceLock
with DeviceLock("cpu", Path(sys.argv[1])).held():
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_device_is_measured_by_one_process_at_a_time(tmp_path: Path) -> None:
    other = holder(tmp_path)
    mine = threading.Event()

    def measure() -> None:
        with DeviceLock("cpu", tmp_path).held():
            mine.set()

    thread = threading.Thread(target=measure, daemon=True)
    thread.start()
    assert not mine.wait(0.3)
    with DeviceLock("cuda-1", tmp_path).held():
        pass  # another device is free
    assert other.stdin is not None
    other.stdin.close()
    assert mine.wait(10)
    other.wait(10)


def test_a_killed_holder_frees_the_device(tmp_path: Path) -> None:
    other = holder(tmp_path)
    os.kill(other.pid, 9)
    other.wait(10)
    with DeviceLock("cpu", tmp_path).held():
        pass


def test_holding_may_be_nested(tmp_path: Path) -> None:
    lock = DeviceLock("cpu", tmp_path)
    with lock.held(), lock.held():
        pass
    with DeviceLock("cpu", tmp_path).held():
        pass
