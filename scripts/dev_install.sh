#!/usr/bin/env bash
# Makes .venv import sdtune from a build folder (default: build), ahead of an installed one: after `ninja -C build _native`
# nothing needs to be installed. Undo with --remove.
set -euo pipefail
cd "$(dirname "$0")/.."
die() { printf 'dev_install: error: %s\n' "$*" >&2; exit 2; }
[ -x .venv/bin/python ] || die ".venv is missing: scripts/setup.sh makes it"
link=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/sdtune_development.pth
if [ "${1:-}" = "--remove" ]; then rm -f "$link"; exit; fi
folder=$(realpath -m "${1:-build}")/python
[ -f "$folder/sdtune/__init__.py" ] || die "$folder holds no sdtune: name a build folder, or make one (cmake --preset cpu-release)"
.venv/bin/python -c 'import sys; print(f"import sys; sys.path.insert(0, {sys.argv[1]!r})")' "$folder" >"$link"
echo "dev_install: import sdtune comes from $folder"
