#!/usr/bin/env bash
# Trains portrait-128, the base of 128 px, stage after stage; stop it (SIGTERM) and start it again as often as you like.
#
#   scripts/train_portrait_128.sh WORK                 goes on where WORK is; without end, once the first base is there
#   scripts/train_portrait_128.sh WORK pack FILE.tar   what another machine needs to go on, below 100 MB
#
# WORK/first holds the stages features, vae, judge, text and base, WORK/round-2, round-3, .. more of the base, each on
# other people and from the model before: the newest model folder is the one to try. A round is resumed from its own
# checkpoints, which are too large to hand on; what is packed resumes from the last finished round.
#
# The first base starts from training/portrait-128/model, which earlier trainings handed on (training/portrait-128/README.md).
#
# ROUNDS stops after so many (default 12). SDTUNE_PROGRAM names another program, OMP_NUM_THREADS and RENDER_THREADS (1
# each) how many cores it takes, FLAGS more flags of `sdtune pretrain` ("--device cuda --mixed-precision bf16"): they are
# part of what a checkpoint must have been made with.
set -euo pipefail
work=$(mkdir -p "${1:?the folder to train in}" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
first=$work/first
read -r -a flags <<< "${FLAGS:---device cpu --mixed-precision no}"
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

child=
trap '[ -z "$child" ] || kill -TERM "$child"' TERM INT

# In the background, so that the signal reaches it: it saves what it has.
pretrain() {
  local code=0
  echo "$(date -u +%FT%TZ) pretrain $*"
  nice -n 19 "${SDTUNE_PROGRAM:-.venv/bin/sdtune}" pretrain --design portrait-128 --render-threads "${RENDER_THREADS:-1}" \
    --base-steps 6000 --base-batch-size 32 --base-learning-rate 1e-3 --evaluation-steps 2000 --checkpointing-steps 200 \
    --figure-images 256 "${flags[@]}" "$@" &
  child=$!
  wait "$child" || code=$?
  if kill -0 "$child" 2> /dev/null; then wait "$child" || code=$?; fi  # the signal ended the first wait
  [ "$code" = 0 ] || exit "$code"
}

is_finished() { [ -f "$1/base/result.json" ]; }

pack() {
  local files=() stage newest
  cd "$work"
  if is_finished first; then
    files=(first/judge/model)
    for newest in first round-*; do is_finished "$newest" && files+=("$newest/base/result.json") && stage=$newest; done
    files+=("$stage/model")
  else
    for stage in first/features first/vae first/judge first/text; do
      newest=$(ls -d "$stage"/checkpoints/step-* 2> /dev/null | tail -1 || true)
      if [ -f "$stage/result.json" ]; then files+=("$stage/result.json" "$stage/result.safetensors"); else files+=($newest); fi
    done
    [ ! -d first/judge/model ] || files+=(first/judge/model)
  fi
  tar -cf "$1" "${files[@]}" && ls -lh "$1"
}

if [ "${2:-}" = pack ]; then pack "$(realpath "${3:?the archive to write}")"; exit; fi

if ! is_finished "$first"; then
  pretrain --output "$first" --stage all --initial-model training/portrait-128/model --num-images 49152 \
    --features-steps 600 --features-images 16384 --vae-steps 4000 --vae-batch-size 16 --vae-learning-rate 1e-3 \
    --classifier-steps 1500 --text-steps 300 --text-learning-rate 3e-4
fi
before=$first
for ((round = 2; round <= ${ROUNDS:-12}; round++)); do
  now=$work/round-$round
  if ! is_finished "$now"; then
    rm -rf "$before"/{pictures,latents} "$before"/{features,vae,judge,text,base}/checkpoints
    pretrain --output "$now" --stage base --initial-model "$before/model" --initial-classifier "$first/judge/model" \
      --first-image $((49152 + 32768 * (round - 2))) --num-images 32768
  fi
  before=$now
done
