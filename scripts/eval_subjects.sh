#!/usr/bin/env bash
# Tunes the portrait base on each of the ten reserved subjects 0..9 with train's defaults, evaluates each, and writes one
# table: FOLDER/eval_subjects.json and .md. A subject that is evaluated already is not done again; FOLDER/settings.json says with
# what the results were made, and with other settings the folder is refused.
#
#   scripts/eval_subjects.sh [FOLDER]      default: runs/subjects
#
# BASE and JUDGE name folders to use instead of the installed ones, DETAIL the people to render (64 or 128) where it is not that
# of the base, SUBJECTS other numbers ("0 1 2"), EVAL_FLAGS more flags of eval (--quick), TRAIN_ONLY=1 leaves the evaluation to a later call, TRAIN_FLAGS more flags of train: only without them the
# figures are those of the defaults.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-runs/subjects}
program=${SDTUNE_PROGRAM:-.venv/bin/sdtune}
base=${BASE:-portrait-128}
detail=${DETAIL:-$(python3 scripts/eval_settings.py detail "$base")}
read -r -a train_flags <<< "${TRAIN_FLAGS:-}"
read -r -a eval_flags <<< "${EVAL_FLAGS:-}"
[ -z "${JUDGE:-}" ] || eval_flags+=(--judge "$JUDGE")
read -r -a subjects <<< "${SUBJECTS:-0 1 2 3 4 5 6 7 8 9}"
python3 scripts/eval_settings.py keep "$folder" "$base" "detail=$detail" "train_flags=${TRAIN_FLAGS:-}" "eval_flags=${EVAL_FLAGS:-}" \
  "judge=${JUDGE:-}"
for subject in "${subjects[@]}"; do
  here="$folder/$subject"
  [ ! -f "$here/eval/eval.json" ] || continue
  if [ ! -f "$here/train_seconds" ] || [ ! -f "$here/photos/labels.jsonl" ]; then
    "$program" render --subject "$subject" --detail "$detail" --views 5 --size 256 --no-captions --output "$here/photos" --overwrite
    start=$(date +%s)
    "$program" train --images "$here/photos" --base "$base" --output "$here/run" --overwrite "${train_flags[@]}"
    echo $(($(date +%s) - start)) > "$here/train_seconds"
  fi
  [ -z "${TRAIN_ONLY:-}" ] || continue
  "$program" eval --model "$here/run" --base "$base" --images "$here/photos" --output "$here/eval" "${eval_flags[@]}"
done
[ -z "${TRAIN_ONLY:-}" ] || exit 0
python3 scripts/eval_table.py "$folder" "${subjects[@]}"
