#!/usr/bin/env bash
# Is the best step's model better than the last step's? Tunes the portrait base on each of the ten reserved subjects twice too
# long, with identity evaluations, evaluates both models of each run, and writes the paired differences:
# FOLDER/eval_best.json and .md. A subject that is done is not done again; FOLDER/settings.json says with what the results were made,
# and with other settings the folder is refused.
#
#   scripts/eval_best.sh [FOLDER]      default: runs/best
#
# BASE and JUDGE name folders to use instead of the installed ones, SUBJECTS other numbers ("0 1 2"), EVAL_FLAGS more flags of
# eval (--quick). The prompts and seeds of eval are none of the identity evaluations' (docs/likeness.md).
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-runs/best}
program=${SDTUNE_PROGRAM:-.venv/bin/sdtune}
base=${BASE:-portrait-128}
detail=$(python3 scripts/eval_settings.py detail "$base")
read -r -a eval_flags <<< "${EVAL_FLAGS:-}"
train_flags=(--base "$base" --max-train-steps 1000 --checkpointing-steps 100 --identity-steps 100)
[ -z "${JUDGE:-}" ] || { eval_flags+=(--judge "$JUDGE"); train_flags+=(--identity-judge "$JUDGE"); }
python3 scripts/eval_settings.py keep "$folder" "$base" "detail=$detail" "train_flags=${train_flags[*]}" "eval_flags=${EVAL_FLAGS:-}" \
  "judge=${JUDGE:-}"
# Both with the seeds of eval and with others, which the table averages.
evaluate() {
  "$program" eval --model "$here/run" --base "$base" --images "$here/photos" --output "$here/$1-2" --seed 100000 "${eval_flags[@]}"
  "$program" eval --model "$here/run" --base "$base" --images "$here/photos" --output "$here/$1" "${eval_flags[@]}"
}
for subject in ${SUBJECTS:-0 1 2 3 4 5 6 7 8 9}; do
  here="$folder/$subject"
  [ ! -f "$here/last/eval.json" ] || continue
  "$program" render --subject "$subject" --detail "$detail" --views 5 --size 256 --no-captions --output "$here/photos" --overwrite
  "$program" train --images "$here/photos" --output "$here/run" --overwrite "${train_flags[@]}"
  evaluate best
  # The last hundred steps again, for the model that the run would have had without looking.
  "$program" train --images "$here/photos" --output "$here/run" --resume-from-checkpoint latest --no-keep-best "${train_flags[@]}"
  evaluate last
done
python3 scripts/eval_best_table.py "$folder"
