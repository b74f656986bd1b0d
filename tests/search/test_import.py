"""Importing the package is cheap: no torch, no pandas, no database."""

import subprocess
import sys

CODE = """
import sys
import kernelforge_lab
kernelforge_lab.Run, kernelforge_lab.forge, kernelforge_lab.load
heavy = {"torch", "pandas", "sqlalchemy", "pycuda", "IPython", "altair"} & set(sys.modules)
print(sorted(heavy))
"""


def test_the_public_face_loads_without_heavy_packages() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
