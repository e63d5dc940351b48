#!/usr/bin/env bash
# Trains portrait-128, the bundled base of 128 px, on: in rounds, each on other people; stop it (SIGTERM) and start it again as often
# as you like.
#
#   scripts/train_portrait_128.sh WORK                 goes on where WORK is, without end
#   scripts/train_portrait_128.sh WORK pack FILE.tar   what another machine needs to go on, below 100 MB
#
# The first round starts from models/portrait-128, WORK/round-2, round-3, .. each from the model before; the newest model folder is
# the one to try. A round is resumed from its own checkpoints, which are too large to hand on; what is packed is the last finished
# round. The autoencoder stays as it is: other latents would ask for another UNet.
#
# ROUNDS stops after so many (default 12), STEPS are those of a round (6000), BATCH its batch size (32). SDTUNE_PROGRAM names another
# program, OMP_NUM_THREADS and RENDER_THREADS (1 each) how many cores it takes, FLAGS more flags of `sdtune pretrain` ("--device cuda
# --mixed-precision bf16"): they are part of what a checkpoint must have been made with.
set -euo pipefail
work=$(mkdir -p "${1:?the folder to train in}" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
read -r -a flags <<< "${FLAGS:---device cpu --mixed-precision no}"
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
seen=28672 images=32768  # that the base was trained on; of a round

child=
trap '[ -z "$child" ] || kill -TERM "$child"' TERM INT

# In the background, so that the signal reaches it: it saves what it has.
pretrain() {
  local code=0
  echo "$(date -u +%FT%TZ) pretrain $*"
  nice -n 19 "${SDTUNE_PROGRAM:-.venv/bin/sdtune}" pretrain --design portrait-128 --stage base --render-threads "${RENDER_THREADS:-1}" \
    --initial-classifier models/portrait-judge-128 --base-steps "${STEPS:-6000}" --base-batch-size "${BATCH:-32}" \
    --base-learning-rate 1e-3 --evaluation-steps 2000 --checkpointing-steps 200 --figure-images 256 "${flags[@]}" "$@" &
  child=$!
  wait "$child" || code=$?
  if kill -0 "$child" 2> /dev/null; then wait "$child" || code=$?; fi  # the signal ended the first wait
  [ "$code" = 0 ] || exit "$code"
}

is_finished() { [ -f "$1/base/result.json" ]; }

if [ "${2:-}" = pack ]; then
  archive=$(realpath "${3:?the archive to write}")
  cd "$work"
  newest=$(for folder in round-*; do is_finished "$folder" && echo "$folder"; done | sort -V | tail -1)
  [ -n "$newest" ] || { echo "train_portrait_128.sh: error: $work: no round is finished" >&2; exit 2; }
  tar -cf "$archive" "$newest/model" "$newest/base/result.json" && ls -lh "$archive"
  exit
fi

before=models/portrait-128
for ((round = 1; round <= ${ROUNDS:-12}; round++)); do
  now=$work/round-$round
  if ! is_finished "$now"; then
    rm -rf "$work/round-$((round - 1))"/{pictures,latents} "$work/round-$((round - 1))"/base/checkpoints
    pretrain --output "$now" --initial-model "$before" --first-image $((seen + images * (round - 1))) --num-images $images
  fi
  before=$now/model
done
