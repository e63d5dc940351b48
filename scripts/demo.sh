#!/usr/bin/env bash
# On a fresh machine: sets up, builds, trains on the example photos, draws pictures, prints where they are.
# Until sdtune carries its own base the weights are random: this shows that everything runs, not what a trained model draws.
#
#   scripts/demo.sh [RUN_FOLDER]      default: runs/backpack_dog
set -euo pipefail
cd "$(dirname "$0")/.."
run=${1:-runs/backpack_dog}
base=models/tiny-random
scripts/setup.sh
[ -f "$base/model_index.json" ] || .venv/bin/python scripts/make_tiny_base.py "$base"
.venv/bin/sdtune train --images examples/backpack_dog --base "$base" --output "$run" --overwrite \
  --instance-prompt "a photo of sks backpack" --with-prior-preservation --class-prompt "a photo of a backpack" --num-class-images 16 \
  --train-batch-size 4 --learning-rate 2e-4 --max-train-steps 200 --checkpointing-steps 100 --seed 0
.venv/bin/sdtune sample --model "$run/model" --prompt "a photo of sks backpack on a beach" --num-images 4 --seed 0 \
  --output "$run/pictures"
