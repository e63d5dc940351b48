#!/usr/bin/env bash
# Makes .venv import sdtune from a build folder (default: build), ahead of an installed one: after `ninja -C build _native`
# nothing needs to be installed. Undo with --remove.
set -euo pipefail
cd "$(dirname "$0")/.."
link=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/sdtune_development.pth
if [ "${1:-}" = "--remove" ]; then rm -f "$link"; exit; fi
folder=$(realpath "${1:-build}")/python
printf 'import sys; sys.path.insert(0, %q)\n' "$folder" | sed "s|, \(.*\))|, '\1')|" >"$link"
echo "dev_install: import sdtune comes from $folder"
