"""The library of proven kernels: what one run found, later runs and other models use."""

from .exchange import export_proofs, import_proofs
from .library import Library, Proof, open_library

__all__ = ["Library", "Proof", "export_proofs", "import_proofs", "open_library"]
