"""An exported folder as a wheel. A wheel is a zip with three more files, so no build tool is needed."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path
from typing import Final

from ..exc import ForgeError

VERSION: Final = "1.0"  # of the package; the run it came from is in its metadata
_LEFT_OUT: Final = frozenset({"__pycache__"})


def write_wheel(folder: Path, name: str, summary: str, into: Path) -> Path:
    """Pack ``folder`` as package ``name`` into a wheel in the folder ``into``; its path.

    ``name`` is a Python identifier. The same folder gives the same bytes. Raises ForgeError.
    """
    info = f"{name}-{VERSION}.dist-info"
    files = {
        f"{name}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not _LEFT_OUT & set(path.parts) and path.suffix != ".whl"
    }
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {VERSION}\nSummary: {summary}\n"
        "Requires-Python: >=3.11\nRequires-Dist: torch>=2.6\n"
    ).encode()
    files[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: kernelforge-lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    target = into / f"{name}-{VERSION}-py3-none-any.whl"
    try:
        into.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
            for path, data in files.items():
                wheel.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), data)
    except OSError as error:
        raise ForgeError(
            f"The wheel {target} could not be written: {error}.", "Name a folder you can write to."
        ) from error
    return target


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
