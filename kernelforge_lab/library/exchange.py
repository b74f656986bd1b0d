"""Proven kernels from one machine to another, as one JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from ..exc import ForgeError, KernelSourceError, ProblemError
from ..kernels.format import parse
from ..kernels.region import Region
from .library import Library, Proof

FORMAT: Final = 1
_FIELDS: Final = {f.name: f.type for f in fields(Proof)}


def export_proofs(proofs: Sequence[Proof], path: str | Path) -> Path:
    """Write proofs to a file. Raises ForgeError when there are none or it cannot be written."""
    if not proofs:
        raise ForgeError("The library has no such kernel.", "Runs fill it with what they prove.")
    file = Path(path).expanduser()
    data = {"format": FORMAT, "proofs": [asdict(proof) for proof in proofs]}
    try:
        file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise ForgeError(
            f"The library cannot be written to {file}: {error}.", "Name another file."
        ) from error
    return file


def import_proofs(library: Library, path: str | Path) -> list[Proof]:
    """Add a file's kernels to the library; nothing of it is believed before it is proven here again.

    Raises ProblemError when the file is not one of ours or an entry is damaged; then nothing is added.
    """
    file = Path(path).expanduser()
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ProblemError(f"{file} cannot be read: {error}.") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("proofs"), list):
        raise ProblemError(f"{file} is not a kernelforge library of format {FORMAT}.")
    proofs = [_checked(entry, number, file) for number, entry in enumerate(data["proofs"], start=1)]
    for proof in proofs:
        library.add(proof)
    return proofs


def _checked(entry: Any, number: int, file: Path) -> Proof:
    """One entry as a Proof whose parts fit together."""
    try:
        if not isinstance(entry, dict) or set(entry) != set(_FIELDS):
            raise ValueError("its fields are not those of a proof")
        proof = Proof(**entry)
        if Region.parse(proof.text).hash != proof.region:
            raise ValueError("its region's text and hash differ")
        if parse(proof.source).target != proof.target:
            raise ValueError("its source is for another target")
        if not all(type(value) is int for value in proof.params.values()):
            raise ValueError("its parameters are not whole numbers")
        if not proof.speedup > 0:
            raise ValueError("its verdict has no timing")
        float(proof.found_at)
        return proof
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, KernelSourceError) as error:
        raise ProblemError(f"{file}: entry {number} cannot be used: {error}.") from error
