"""Reads what we need from a shared object: its code as bytes, and the symbols it imports and exports.

Sixty-four-bit little-endian ELF (x86-64 and aarch64 Linux); anything else is answered with None.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROGBITS, _STRTAB, _RELA, _NOBITS, _DYNSYM = 1, 3, 4, 8, 11
_INIT_ARRAY, _FINI_ARRAY = 14, 15
_ALLOC: Final = 0x2
# Differ between builds of one source, or repeat what other sections say.
_IGNORED: Final = (".eh_frame", ".eh_frame_hdr", ".interp", ".comment")
# An entry of .init_array; every gcc object has one of its own (frame_dummy).
_POINTER_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    kind: int
    flags: int
    data: bytes
    size: int
    link: int


@dataclass(frozen=True, slots=True)
class SharedObject:
    """``constructors`` counts functions that run when the object is loaded, beyond the compiler's own."""

    imports: tuple[str, ...]
    exports: tuple[str, ...]
    constructors: int
    text_bytes: int
    code_hash: str


def read_shared_object(path: Path) -> SharedObject | None:
    """Facts about the object at ``path``; None when it is no 64-bit little-endian ELF file."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    try:
        sections = read_sections(data)
        imports, exports = _dynamic_symbols(sections)
    except (struct.error, IndexError, ValueError, OverflowError):
        return None
    digest = hashlib.sha256()
    for section in sections:
        if _is_code(section):
            digest.update(f"{section.name}:{section.size}:".encode() + section.data)
    arrays = sum(s.size // _POINTER_BYTES for s in sections if s.kind == _INIT_ARRAY)
    return SharedObject(
        imports=imports,
        exports=exports,
        constructors=max(0, arrays - 1),
        text_bytes=sum(s.size for s in sections if s.name == ".text"),
        code_hash=digest.hexdigest(),
    )


def _is_code(section: Section) -> bool:
    """Whether two objects that differ here behave differently.

    Relocations and dynamic names belong to it: calls to ``sinf`` and ``cosf`` are the same bytes in .text.
    """
    if not section.flags & _ALLOC or section.name in _IGNORED:
        return False
    return section.kind in (_PROGBITS, _STRTAB, _RELA, _NOBITS, _INIT_ARRAY, _FINI_ARRAY)


def read_sections(data: bytes) -> list[Section]:
    """All sections of a 64-bit little-endian ELF file (shared objects and cubins alike)."""
    table_at = struct.unpack_from("<Q", data, 0x28)[0]
    entry_bytes, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table_at + i * entry_bytes) for i in range(count)]
    names_at = headers[names_index][4]
    sections = []
    for name, kind, flags, _address, offset, size, link, *_rest in headers:
        start = names_at + name
        text = data[start : data.index(b"\0", start)].decode()
        body = b"" if kind == _NOBITS else data[offset : offset + size]
        sections.append(Section(text, kind, flags, body, size, link))
    return sections


def _dynamic_symbols(sections: list[Section]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    imports: list[str] = []
    exports: list[str] = []
    for table in sections:
        if table.kind != _DYNSYM:
            continue
        names = sections[table.link].data
        for name, _info, _other, section, _value, _size in struct.iter_unpack("<IBBHQQ", table.data):
            text = names[name : names.index(b"\0", name)].decode(errors="replace")
            if text:
                (imports if section == 0 else exports).append(text)
    return tuple(sorted(imports)), tuple(sorted(exports))
