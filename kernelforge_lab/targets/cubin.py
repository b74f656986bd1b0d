"""Reads what we need from a cubin: its functions, their parameters and limits, and its code as bytes."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .elf import Section, read_sections

_SYMTAB: Final = 2
_TEXT: Final = ".text."
_INFO: Final = ".nv.info."
# Attributes of .nv.info (named as cuobjdump names them) and the one form that carries a payload.
_SIZED: Final = 4
_KPARAM_INFO: Final = 0x17
_MAX_THREADS: Final = 0x05
_SYMBOL: Final = struct.Struct("<IBBHQQ")


@dataclass(frozen=True, slots=True)
class Parameter:
    """Where an argument lies in a function's parameter block, in bytes."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Function:
    """A ``__global__`` function. ``threads_max`` is its launch bound (0: none given)."""

    name: str
    parameters: tuple[Parameter, ...]
    threads_max: int
    text_bytes: int
    code_hash: str


def read_cubin(data: bytes) -> dict[str, Function]:
    """Functions by name. Raises ValueError when ``data`` is no cubin that we can read."""
    if data[:5] != b"\x7fELF\x02":
        raise ValueError("not a readable cubin: it is no 64-bit ELF file")
    try:
        sections = read_sections(data)
        shared = _shared_hash(sections)
        by_name = {section.name: section for section in sections}
        found = {}
        for section in sections:
            name = section.name.removeprefix(_TEXT)
            info = by_name.get(_INFO + name)
            if name != section.name and info is not None:
                found[name] = _function(name, section, info, by_name.get(f".rela{_TEXT}{name}"), shared)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"not a readable cubin: {error}") from None
    return found


def _function(name: str, text: Section, info: Section, moved: Section | None, shared: str) -> Function:
    parameters: dict[int, Parameter] = {}
    threads_max = 0
    for attribute, payload in _attributes(info.data):
        if attribute == _KPARAM_INFO:
            ordinal, offset, packed = struct.unpack_from("<4xHHI", payload)
            parameters[ordinal] = Parameter(offset, packed >> 18)
        elif attribute == _MAX_THREADS:
            x, y, z = struct.unpack_from("<III", payload)
            threads_max = x * y * z
    digest = hashlib.sha256(text.data)
    if moved is not None:
        # Calls and addresses of globals are filled in when loading: what they name is part of the code.
        digest.update(moved.data + shared.encode())
    ordered = tuple(parameters[i] for i in sorted(parameters))
    return Function(name, ordered, threads_max, text.size, digest.hexdigest())


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        size = value if form == _SIZED else 0
        yield attribute, data[at : at + size]
        at += size


def _shared_hash(sections: list[Section]) -> str:
    """Over what functions share: each other's code, constants, globals, the shape of the symbol table."""
    digest = hashlib.sha256()
    for section in sections:
        if re.match(r"\.text\.|\.nv\.(?:constant|global)", section.name):
            digest.update(f"{section.size}:".encode() + section.data)
        elif section.kind == _SYMTAB:
            for _name, *rest in _SYMBOL.iter_unpack(section.data):
                digest.update(repr(rest).encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Usage:
    """What ptxas says a function needs: registers, bytes of stack and of spills (stores and loads together)
    per thread, bytes of static shared memory per block.
    """

    registers: int = 0
    shared_bytes: int = 0
    stack_bytes: int = 0
    spill_bytes: int = 0


_ENTRY: Final = re.compile(r"Compiling entry function '([^']+)'")
_PTXAS: Final = re.compile(r"^(?:ptxas info\b|ptxas\s+\.|\s+\d+ bytes stack frame).*\n?", re.MULTILINE)


def read_usage(log: str) -> dict[str, Usage]:
    """Usage by function, from the words of ``ptxas -v`` (cubins do not hold spills)."""
    parts = _ENTRY.split(log)
    return {name: _usage(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def without_usage(log: str) -> str:
    """What the compiler said besides."""
    return _PTXAS.sub("", log).strip()


def _usage(text: str) -> Usage:
    def bytes_of(what: str) -> int:
        match = re.search(rf"(\d+) bytes {what}", text)
        return int(match[1]) if match else 0

    registers = re.search(r"Used (\d+) registers", text)
    return Usage(
        registers=int(registers[1]) if registers else 0,
        shared_bytes=bytes_of("smem"),
        stack_bytes=bytes_of("stack frame"),
        spill_bytes=bytes_of("spill stores") + bytes_of("spill loads"),
    )
