#!/usr/bin/env bash
# On a fresh machine: sets up, builds, fine-tunes the bundled base on five photos of one synthetic person, generates images of six
# prompts before and after, and prints where the sheet is.
#
#   scripts/demo.sh [RUN_FOLDER]      default: runs/demo. A run that is there is deleted.
set -euo pipefail
cd "$(dirname "$0")/.."
run=${1:-runs/demo}
# Without a GPU here, compiling kernels for all kinds of them would only take time.
. scripts/gpu_devices.sh
has_gpu_device || export SDTUNE_CUDA=${SDTUNE_CUDA:-OFF}
scripts/setup.sh
setup_s=$SECONDS
.venv/bin/sdtune demo --output "$run"
echo "demo: setting up took $setup_s s, training and generating $((SECONDS - setup_s)) s"
