#!/usr/bin/env bash
# Makes the files that tests/python/test_compatibility.py opens, with the program of an older commit:
#
#   git worktree add ../old 68da9cb && cmake -S ../old -B ../old/build -G Ninja -DPython_EXECUTABLE=$PWD/.venv/bin/python
#   ninja -C ../old/build sdtune sdtune-faces _native
#   tests/compatibility/make_fixtures.sh ../old/build 68da9cb
#
# The first argument is that build folder; the second the name of the folder beside this script that is made anew.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
build="$(cd "$1" && pwd)"
sdtune="$build/app/sdtune"
python="$here/../../.venv/bin/python"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 SOURCE_DATE_EPOCH=0
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

"$python" "$here/make_base.py" .
"$sdtune" render --output me --subject 0 --views 3 --no-captions >/dev/null  # identity evaluations read renders
mv mask.png "me/$(basename "$(ls me/*.png | head -1)" .png).mask.png"

STEPS=12
EVERY=4
common=(--base base --device cpu --seed 5 --train-batch-size 2 --max-train-steps "$STEPS"
  --checkpointing-steps "$EVERY" --checkpoints-total-limit 1 --learning-rate 1e-3 --lr-scheduler cosine
  --class-data-dir class_images --num-class-images 3 --class-num-inference-steps 2 --cache-dir cache --random-flip)
full=("${common[@]}" --images photos --gradient-accumulation-steps 2 --with-prior-preservation --snr-gamma 5 --noise-offset 0.1
  --caption-dropout-rate 0.2 --validation-prompt "a photo of sks person" --validation-steps 4 --num-validation-images 1
  --validation-inference-steps 2 --validation-data-dir me)
lora=("${common[@]}" --images me --method lora --rank 2 --lora-alpha 3 --lora-dropout 0.1 --masked-loss
  --identity-steps 4 --num-identity-images 8 --identity-inference-steps 1)
bf16=("${common[@]}" --images photos --micro-batch 1 --mixed-precision bf16 --report-to none)

# killed FOLDER OPTIONS...: a run that is killed after its first checkpoint, and with identity_steps, after the evaluation there.
killed() {
  local folder="$1" pid
  shift
  "$sdtune" train --output "$folder" "$@" 2>/dev/null &
  pid=$!
  until [ -d "$folder/checkpoints/step-0000000$EVERY" ] && { [[ " $* " != *identity-steps* ]] || grep -qs "\"step\":$EVERY" "$folder/identity.jsonl"; }; do sleep 0.002; kill -0 "$pid"; done
  kill -KILL "$pid"
  wait "$pid" 2>/dev/null || true
  [ "$(ls "$folder/checkpoints")" = "step-0000000$EVERY" ] && [ ! -e "$folder/model" ] || { echo "$folder was killed too late"; exit 1; }
}

# whole FOLDER OPTIONS...: the same run, left alone.
whole() {
  local folder="$1"
  shift
  "$sdtune" train --output "$folder" "$@" 2>/dev/null
}

for kind in full lora bf16; do
  declare -n options="$kind"
  whole "whole_$kind" "${options[@]}"
  killed "run_$kind" "${options[@]}"
done

mkdir printed images
"$sdtune" sample --model whole_full --lora whole_lora:0.75 --prompt "a (photo:1.2) of sks person" --negative-prompt blurry \
  --seed 7 --steps 3 --sampler dpm++2m_karras --guidance-scale 4.5 --output images --device cpu >/dev/null
"$sdtune" convert --model whole_full/model --output single.safetensors --dtype float16 >/dev/null
"$sdtune" convert --model base --lora whole_lora/model/pytorch_lora_weights.safetensors --output kohya.safetensors >/dev/null
"$sdtune" check "${full[@]}" --output nowhere --json >printed/check.json
"$sdtune" doctor --images photos --base base --json >printed/doctor.json
"$sdtune" plan "${full[@]}" --output nowhere --json >printed/plan.json
for what in base single.safetensors kohya.safetensors; do "$sdtune" inspect "$what" --json >"printed/inspect_${what%.*}.json"; done
"$sdtune" eval --model whole_full --base base --subject 0 --quick --steps 1 --device cpu --output eval --json >printed/eval.json
cp -r base broken
"$python" -c "from safetensors.torch import load_file, save_file
file = 'broken/unet/diffusion_pytorch_model.safetensors'
tensors = load_file(file)
tensors['conv_out.bias'][0] = float('nan')
save_file(tensors, file, metadata={'format': 'pt'})"
"$sdtune" train "${common[@]}" --images photos --base broken --max-skipped-steps 1 --output failed 2>/dev/null || [ $? = 6 ]
export PYTHONPATH="$build/python"
"$python" "$here/write_every_option.py" every_option.yaml
"$python" "$here/write_python_names.py" python_names.json

# What a finished run folder holds, without the numbers in names.
for kind in full lora; do (cd "whole_$kind" && find . -type f | sed 's/events.out.tfevents.*/events.out.tfevents/' | sort) >"printed/tree_$kind.txt"; done

# Only what is opened.
target="$here/$2/files"
rm -rf "$target"
mkdir -p "$target/expected"
for kind in lora bf16; do cp "whole_$kind/checkpoints/step-0000000$((2 * EVERY))/weights.safetensors" "$target/expected/$kind.safetensors"; done
rm -rf run_*/cache whole_*/cache run_*/run.lock whole_*/checkpoints whole_*/samples whole_*/best whole_*/report.html
rm -rf run_*/*tfevents* whole_*/*tfevents* failed/checkpoints failed/samples failed/cache failed/*tfevents*
cp -r base photos me class_images cache printed images run_* whole_full whole_lora failed *.safetensors every_option.* python_names.json "$target/"
find "$target" -type f -printf '%s\n' | awk '{sum += $1} END {print sum, "bytes"}'
