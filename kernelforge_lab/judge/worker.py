"""The checker process: ``python -m kernelforge_lab.judge.worker TARGET THREADS``, driven over its pipes.

Requests on standard input are (number, kind, payload), answers on the original standard output are
(number, ok, value). Ends by itself when the person's process does.
"""

from __future__ import annotations

import os
import sys
import traceback
from queue import Queue
from threading import Thread
from typing import IO, TYPE_CHECKING, Any

from ..exc import ForgeError, WorkerDied
from . import channel

if TYPE_CHECKING:
    from .checker import Checker


def main() -> None:
    target, threads = sys.argv[1], int(sys.argv[2]) or None
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not end up among the answers.
    os.dup2(2, 1)
    pending: Queue[Any] = Queue()
    from .checker import Checker

    try:
        checker = Checker(target, threads)
    except ForgeError as error:
        _refuse_all(requests, answers, error)
        return
    Thread(target=_read, args=(requests, pending, checker), daemon=True).start()
    while (request := pending.get()) is not None:
        number, kind, payload = request
        try:
            channel.send(answers, (number, True, _answer(checker, kind, payload)))
        except ForgeError as error:
            channel.send(answers, (number, False, error))
        except Exception as error:  # noqa: BLE001 - a fault of ours on one job must not end the others
            lines = traceback.format_exc().strip().splitlines()
            text = f"The judge failed: {type(error).__name__}: {error}."
            channel.send(answers, (number, False, WorkerDied(text, "\n".join(lines[-12:]))))
    checker.close()


def _read(requests: IO[bytes], pending: Queue[Any], checker: Checker) -> None:
    """Requests into the queue; what will be needed soon is begun at once, whatever is being judged."""
    while True:
        try:
            request = channel.receive(requests)
        except EOFError:
            pending.put(None)
            # The person's process is gone: whatever is being judged is for nobody.
            checker.close()
            os._exit(0)
        if request[1] == "soon":
            checker.compile_ahead.begin(request[2])
        else:
            pending.put(request)


def _refuse_all(requests: IO[bytes], answers: IO[bytes], error: ForgeError) -> None:
    while True:
        try:
            number, kind, _ = channel.receive(requests)
        except EOFError:
            return
        if kind != "soon":
            channel.send(answers, (number, False, error))


def _answer(checker: Checker, kind: str, payload: Any) -> Any:
    if kind == "judge":
        return checker.judge(payload)
    if kind == "prepare":
        return checker.prepare(*payload)
    return None


if __name__ == "__main__":
    main()
