"""``python -m kernelforge_lab.cli`` where the installed script is not on PATH."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
