#!/usr/bin/env bash
# clang-format over every C++ and CUDA source; --check only reports.
set -euo pipefail
cd "$(dirname "$0")/.."
format=$(command -v clang-format-14 || command -v clang-format)
mode=-i
[ "${1:-}" = "--check" ] && mode="--dry-run -Werror"
git ls-files --cached --others --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh' | while read -r f; do [ ! -f "$f" ] || echo "$f"; done | xargs -r "$format" $mode
