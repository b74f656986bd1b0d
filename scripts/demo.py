"""Execute a notebook as a person would, without one, and say what came out: demo.py NOTEBOOK.

The executed notebook and the run's report go to ``build/``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

# Of one cell: the run's own limit is minutes, a slow machine may need longer to measure.
_CELL_TIMEOUT_S = 1200
_BUILD = Path("build")

# Runs in the notebook's kernel after its last cell.
_RESULT = """
import kernelforge_lab
from kernelforge_lab.cli.forge import as_text

last = [value for value in list(globals().values()) if isinstance(value, kernelforge_lab.Run)][-1]
last.report({report!r})
print()
print(as_text(last, {report!r}))
"""


class Spoken(NotebookClient):
    """Prints what cells print at the moment they do."""

    def output(self, outs: list[Any], msg: dict[str, Any], display_id: str, cell_index: int) -> Any:
        if msg["msg_type"] == "stream":
            print(msg["content"]["text"], end="", flush=True)
        return super().output(outs, msg, display_id, cell_index)


def main(path: Path) -> int:
    """Returns the exit code: 1 when a cell raised, 2 when there is no such notebook."""
    if not path.is_file():
        print(f"There is no {path}.", file=sys.stderr)
        return 2
    _BUILD.mkdir(exist_ok=True)
    report = (_BUILD / f"{path.stem}.html").resolve()
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(_RESULT.format(report=str(report))))
    start = time.monotonic()
    # The kernel of this environment, whatever kernels the person has installed elsewhere.
    client = Spoken(notebook, timeout=_CELL_TIMEOUT_S, resources={"metadata": {"path": str(path.parent)}})
    client.kernel_name = "python3"
    # Its warnings (that it listens on TCP without encryption, for one) are not about the demo.
    client.extra_arguments = ["--IPKernelApp.log_level=ERROR"]
    try:
        client.execute()
    except (CellExecutionError, DeadKernelError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        nbformat.write(notebook, _BUILD / path.name)
    print(f"{path} took {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
