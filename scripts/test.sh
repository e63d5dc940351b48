#!/usr/bin/env bash
# Sets up, builds and runs every test: the C++ ones under ctest, the oracle's under pytest. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
export PATH="$PWD/.venv/bin:$PATH"
ctest --test-dir build --output-on-failure -j "$(nproc)"
# An oracle test that is skipped fails here: SDTUNE_NO_SKIP makes conftest.py turn skips into failures.
SDTUNE_NO_SKIP=${SDTUNE_NO_SKIP-1} .venv/bin/python -m pytest tests/python "$@"
