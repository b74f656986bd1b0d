"""The report as a notebook: it holds the kernels and judges them again where it is run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import nbformat

from . import picture
from .report_text import facts, fenced, head, text, won
from .summary import Summary, gain

Json = dict[str, Any]

_JUDGE: Final = """\
from kernelforge_lab.notebook.verify import verify

verify(KERNELS)"""

_WHAT: Final = """\
## Judge them again

The next cell holds the kernels, the one after it proves and times each again on this machine: same oracle, \
fresh inputs, against the fastest that PyTorch offers here. It takes about ten seconds a kernel."""


def notebook(events: Sequence[Json]) -> str:
    """A run as the JSON text of a notebook. Its outputs are this run's; running it makes new ones."""
    summary = Summary(events)
    cells = [nbformat.v4.new_markdown_cell("\n".join([*head(summary), picture.img_tag(summary)]))]
    winners = won(summary)
    for region, node in winners:
        title = f"## {text(region.info['title'])}: {gain(region):.2f}×"
        body = [title, "", *facts(region, node), "", *fenced(node.source, "cpp")]
        cells.append(nbformat.v4.new_markdown_cell("\n".join(body)))
    if winners:
        cells.append(nbformat.v4.new_markdown_cell(_WHAT))
        kernels = [
            {
                "region": r.info["text"],
                "source": n.source,
                "params": n.params,
                "target": summary.target,
                "speedup": gain(r),
            }
            for r, n in winners
        ]
        # Data, not code: whatever a proposer wrote stays inside one string.
        cells.append(
            nbformat.v4.new_code_cell(f"import json\n\nKERNELS = json.loads({json.dumps(kernels)!r})")
        )
        cells.append(nbformat.v4.new_code_cell(_JUDGE))
    for number, cell in enumerate(cells):
        cell["id"] = f"report-{number}"
    made = nbformat.v4.new_notebook(cells=cells)
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return str(nbformat.writes(made))
