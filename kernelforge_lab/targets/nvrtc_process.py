"""NVRTC in a process of its own: ``python nvrtc_process.py``, one JSON line a request and an answer.

A source may make the compiler crash or think for ever; here that costs nobody anything. It also keeps
NVRTC out of the person's process, where torch has one of perhaps another version.
Runs as a file, without the package: it starts in 0.2 s.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import Any


def main() -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        from cuda.bindings import nvrtc

        hello = {"version": _value(nvrtc.nvrtcVersion()), "archs": _value(nvrtc.nvrtcGetSupportedArchs())}
    except Exception as error:  # noqa: BLE001 - a missing library is raised as anything; the reader decides
        hello = {"error": f"{type(error).__name__}: {error}"}
    _send(answers, hello)
    for line in requests:
        _send(answers, compile_source(**json.loads(line)))


def compile_source(source: str, options: list[str], headers: dict[str, str]) -> dict[str, Any]:
    """{"ok", "log", "cubin": base64}; ``headers`` are what ``#include`` finds, by name."""
    from cuda.bindings import nvrtc

    names = [name.encode() for name in headers]
    texts = [text.encode() for text in headers.values()]
    program = _value(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", len(names), texts, names))
    flags = [option.encode() for option in options]
    status = nvrtc.nvrtcCompileProgram(program, len(flags), flags)[0]
    log = bytearray(_value(nvrtc.nvrtcGetProgramLogSize(program)))
    nvrtc.nvrtcGetProgramLog(program, log)
    answer: dict[str, Any] = {"ok": int(status) == 0, "log": log.rstrip(b"\0").decode(errors="replace")}
    if answer["ok"]:
        cubin = bytearray(_value(nvrtc.nvrtcGetCUBINSize(program)))
        nvrtc.nvrtcGetCUBIN(program, cubin)
        answer["cubin"] = base64.b64encode(cubin).decode()
    elif not answer["log"]:
        answer["log"] = f"NVRTC said {status.name}."
    nvrtc.nvrtcDestroyProgram(program)
    return answer


def _value(result: Any) -> Any:
    """What a binding returns besides its status."""
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(status.name)
    return values if len(values) > 1 else values[0]


def _send(stream: Any, answer: dict[str, Any]) -> None:
    stream.write(json.dumps(answer).encode() + b"\n")
    stream.flush()


if __name__ == "__main__":
    # Not this folder: its modules must not stand in for installed ones.
    sys.path.pop(0)
    main()
