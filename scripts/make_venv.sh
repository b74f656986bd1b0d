#!/usr/bin/env bash
# Makes the virtual environment, or says exactly what is missing: make_venv.sh PYTHON FOLDER
set -euo pipefail
python="$1" folder="$2"

if ! command -v "$python" >/dev/null; then
  echo "There is no $python. Install Python 3.11 or newer, or say: make PYTHON=/path/to/python3.12 …" >&2
  exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "$("$python" --version) is too old: kernelforge-lab needs Python 3.11 or newer." >&2
  echo "Install one, or say: make PYTHON=/path/to/python3.12 …" >&2
  exit 1
fi
if ! "$python" -m venv "$folder"; then
  echo "This Python cannot make virtual environments (Debian and Ubuntu: sudo apt-get install -y python3-venv)." >&2
  rm -rf "$folder"
  exit 1
fi
