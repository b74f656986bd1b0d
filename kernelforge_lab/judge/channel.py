"""Length-prefixed pickles over a pipe, between the person's process and its own checker.

Only used between two processes of ours: the runner, which candidates live in, speaks JSON instead.
"""

from __future__ import annotations

import pickle
import struct
from typing import IO, Any, Final

_HEAD: Final = struct.Struct("<Q")


def send(stream: IO[bytes], message: Any) -> None:
    """Raises OSError or ValueError when the other side is gone."""
    data = pickle.dumps(message)
    stream.write(_HEAD.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """The next message. Raises EOFError when the other side is gone."""
    head = _read(stream, _HEAD.size)
    return pickle.loads(_read(stream, _HEAD.unpack(head)[0]))  # noqa: S301 - both ends are ours


def _read(stream: IO[bytes], size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = stream.read(size - len(data))
        if not part:
            raise EOFError("the other process ended")
        data += part
    return data
