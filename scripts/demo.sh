#!/usr/bin/env bash
# On a fresh machine: sets up, builds, fine-tunes the bundled base on five photos of one synthetic person, generates images of six
# prompts before and after, and prints where the sheet is.
#
#   scripts/demo.sh [RUN_FOLDER]      default: runs/me
set -euo pipefail
cd "$(dirname "$0")/.."
run=${1:-runs/me}
scripts/setup.sh
setup_s=$SECONDS
.venv/bin/sdtune train --images examples/me --output "$run" --overwrite
# A sampler that adds noise at each step gives this small base's faces more detail than the base's default.
.venv/bin/sdtune sample --model "$run" --prompts demo --sampler dpm++2m_sde --grid "$run/sheet.png" --compare portrait-64 \
  --references examples/me --output "$run/pictures"
echo "demo: the sheet is $run/sheet.png; setting up took $setup_s s, training and generating $((SECONDS - setup_s)) s"
