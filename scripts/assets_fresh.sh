#!/usr/bin/env bash
# Builds the front end anew and fails when that differs from what is committed.
set -euo pipefail
cd "$(dirname "$0")/.."
built=(kernelforge_lab/static kernelforge_lab/labextension)

PATH="$PWD/.venv/bin:$PATH" npm run --silent build >/dev/null
changed="$(git status --porcelain --untracked-files=all -- "${built[@]}")"
if [ -n "$changed" ]; then
  echo "The committed front end is not what the sources build. Run 'npm run build' and commit:" >&2
  echo "$changed" >&2
  exit 1
fi
