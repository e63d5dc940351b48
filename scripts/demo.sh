#!/usr/bin/env bash
# On a fresh machine: sets up, builds, fine-tunes the bundled base on five photos of one synthetic person, generates images of six
# prompts before and after, and prints where the sheet is.
#
#   scripts/demo.sh [RUN_FOLDER]      default: runs/me
set -euo pipefail
cd "$(dirname "$0")/.."
run=${1:-runs/me}
# Without a GPU here, compiling kernels for all kinds of them would only take time.
[ -e /dev/nvidiactl ] || export SDTUNE_CUDA=${SDTUNE_CUDA:-OFF}
scripts/setup.sh
setup_s=$SECONDS
device=auto
if ! .venv/bin/sdtune doctor --machine >/dev/null; then
  echo "demo: warning: this machine's GPU cannot be used (.venv/bin/sdtune doctor --machine says why); going on with the CPU" >&2
  device=cpu
fi
.venv/bin/sdtune train --images examples/me --output "$run" --overwrite --device "$device"
# A sampler that adds noise at each step gives this small base's faces more detail than the base's default.
.venv/bin/sdtune sample --model "$run" --prompts demo --sampler dpm++2m_sde --grid "$run/sheet.png" --compare portrait-64 \
  --references examples/me --output "$run/pictures" --device "$device"
echo "demo: the sheet is $run/sheet.png; setting up took $setup_s s, training and generating $((SECONDS - setup_s)) s"
