"""Compiling stock ahead in a process of its own, which stands still while anything is timed.

Inductor spends seconds per region. Doing that beside the proof of kernels, and leaving the result in
inductor's own cache on disk, keeps it out of the search's way; a compile that never ends can be killed.

``python -m kernelforge_lab.judge.compile_ahead THREADS DEVICE`` is the process itself.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ..kernels.region import Region
from . import channel
from .sandbox import die_with_parent
from .stock import compile_with_inductor, failure

if TYPE_CHECKING:
    from torch import Tensor


class CompileAhead:
    """One region after the other, in the order they were asked for."""

    def __init__(self, threads: int, device: str = "cpu", modes: Sequence[Mapping[str, Any]] = ({},)) -> None:
        self._threads = threads
        self._device = device
        self._modes = [dict(mode) for mode in modes]
        self._results: dict[str, str] = {}
        self._wanted: dict[str, Region] = {}
        self._queue: queue.Queue[Region] = queue.Queue()
        self._changed = threading.Condition()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._serve, name="compile-ahead", daemon=True)
        self._thread.start()

    def begin(self, region: Region) -> None:
        """Compile it when there is time. Returns at once."""
        with self._changed:
            if region.hash not in self._wanted:
                self._wanted[region.hash] = region
                self._queue.put(region)

    def wait(self, region: Region, limit_s: float) -> str:
        """Until the region is compiled; "" when that worked, else why not."""
        self.begin(region)
        with self._changed:
            done = self._changed.wait_for(lambda: region.hash in self._results, limit_s)
        if not done:
            self._restart()
            return f"torch.compile took longer than {limit_s:.0f} s"
        return self._results[region.hash]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing compiles inside."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def close(self) -> None:
        self._restart()

    def _restart(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _signal(self, number: int) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            with suppress(OSError):
                os.killpg(process.pid, number)

    def _serve(self) -> None:
        while True:
            region = self._queue.get()
            answer = self._ask(region)
            with self._changed:
                self._results[region.hash] = answer
                self._changed.notify_all()

    def _ask(self, region: Region) -> str:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(self._threads), self._device],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            channel.send(process.stdin, (region.text, self._modes))
            return str(channel.receive(process.stdout))
        except (OSError, EOFError, ValueError):
            self._restart()
            return "torch.compile ended its process"


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.nice(5)
    die_with_parent()
    import torch

    torch.set_num_threads(int(sys.argv[1]))
    while True:
        try:
            text, modes = channel.receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            region = Region.parse(text)
            for mode in modes:
                compile_with_inductor(region, _example(region, sys.argv[2]), mode)
            answer = ""
        except Exception as error:  # noqa: BLE001 - inductor raises anything; the reason is the answer
            answer = failure(error)
        channel.send(answers, answer)


def _example(region: Region, device: str) -> list[Tensor]:
    """Inputs of the region's specs, all zeros: compiling looks at layout only."""
    import torch

    from .inputs import view_storage
    from .layout import storage_bytes

    storages = [torch.zeros(storage_bytes(s), dtype=torch.uint8, device=device) for s in region.inputs]
    return [view_storage(data, spec) for data, spec in zip(storages, region.inputs, strict=True)]


if __name__ == "__main__":
    main()
