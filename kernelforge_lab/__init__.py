"""kernelforge-lab: forge faster kernels for the PyTorch model in your notebook.

>>> import kernelforge_lab as kf
>>> run = kf.forge(model, inputs, minutes=3)  # doctest: +SKIP
>>> run.wait(); fast = run.apply()  # doctest: +SKIP

In a notebook: ``%load_ext kernelforge_lab``, then ``%%forge`` above the cell that runs the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .comparison import compare
    from .entry import forge, load
    from .run import Run

__all__ = ["Run", "__version__", "compare", "forge", "load", "load_ipython_extension"]


def load_ipython_extension(ipython: Any) -> None:
    """Called by ``%load_ext kernelforge_lab``."""
    from .notebook import magics

    magics.load_ipython_extension(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Called by ``%unload_ext kernelforge_lab``: stops the runs that cells started."""
    from .notebook import magics

    magics.unload_ipython_extension(ipython)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "kernelforge-lab"}]


def __getattr__(name: str) -> Any:
    # Loaded on first use: importing the package costs neither torch nor pandas nor SQLAlchemy.
    if name == "__version__":
        from importlib import metadata

        try:
            return metadata.version("kernelforge-lab")
        except metadata.PackageNotFoundError:
            return "0+unknown"
    if name == "Run":
        from .run import Run

        return Run
    if name in ("forge", "load"):
        from . import entry

        return getattr(entry, name)
    if name == "compare":
        from .comparison import compare

        return compare
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
