"""A fresh virtual environment with torch and what torch requires, and nothing else, at no download."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path


def torch_alone(folder: Path) -> Path:
    """Make the environment in ``folder``; its Python. Packages are links to those of this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for path in sorted(_needed("torch")):
        (site / path.name).symlink_to(path)
    return folder / "bin" / "python"


def _needed(name: str) -> set[Path]:
    """Top-level files and folders of a distribution and of all it requires."""
    found: set[Path] = set()
    waiting, known = [name], set()
    while waiting:
        current = waiting.pop()
        if current in known:
            continue
        known.add(current)
        try:
            distribution = importlib.metadata.distribution(current)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform
        root = Path(str(distribution.locate_file("")))
        tops = {
            file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")
        }
        found |= {root / top for top in tops if (root / top).exists() and not top.endswith(".pth")}
        wanted = [text for text in distribution.requires or () if "extra ==" not in text]
        waiting += [re.split(r"[ ;<>=!~\[(]", text, maxsplit=1)[0] for text in wanted]
    return found
