#!/usr/bin/env bash
# Installs Chromium for the browser tests where there is none. Without root or apt they are skipped.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
if ! command -v apt-get >/dev/null; then
  echo "no Chromium and no apt-get here: browser tests are skipped"
  exit 0
fi
as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! sudo -n true 2>/dev/null; then
    echo "no Chromium and no root here: browser tests are skipped (sudo apt-get install -y chromium runs them)"
    exit 0
  fi
  as_root=(sudo -n)
fi
echo "installing Chromium for the browser tests"
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends chromium >/dev/null
