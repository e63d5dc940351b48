#!/usr/bin/env bash
# Runs what C++ tests state of runs and of sdtune-faces against the libraries of commit 68da9cb, where most of it fails:
#
#   tests/compatibility/run_cpp_tests.sh ../old ../old/build-old
#
# train_test.cpp is today's, with that commit's calls (adapt_train_test.py). face_finder_68da9cb.cpp holds three tests of
# tests/train/data/face_program_test.cpp; the finder is that commit's, with a patience of 0.5 s in place of 60 s.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
checkout="$(cd "$1" && pwd)"
build="$(cd "$2" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export PATH="$here/../../.venv/bin:$PATH" OMP_NUM_THREADS=1 SDTUNE_SHARE="$checkout"

python "$here/adapt_train_test.py" "$work/train_test.cpp"
cp "$here/face_finder_68da9cb.cpp" "$work/face_test.cpp"
sed 's/kPatience = {60, 0};/kPatience = {0, 500000};/' "$checkout/train/data/face_finder.cpp" >"$work/face_finder_half_second.cpp"
grep -q '{0, 500000}' "$work/face_finder_half_second.cpp"

# Compiled as one of that build's files, linked as its program.
flags=$(python - "$build/compile_commands.json" <<'PY'
import json, shlex, sys
words = shlex.split(next(e["command"] for e in json.load(open(sys.argv[1])) if "sdtune_run.dir" in e["output"]))
print(*(w for i, w in enumerate(words) if w.startswith(("-D", "-std", "-fPIC")) or "-isystem" in (w, words[i - 1])))
PY
)
link=$(ninja -C "$build" -t commands app/sdtune | tail -1 | sed 's/^: && //; s/ && :$//')
failed=0
for name in train_test face_test; do
  # shellcheck disable=SC2086
  g++ $flags -O1 -I"$checkout" -I"$work" -c "$work/$name.cpp" -o "$work/$name.o"
  (cd "$build" && eval "$(sed "s#[^ ]*\.cxx\.o -o app/sdtune#$work/$name.o -o $work/$name -lgmock -lgtest -lgtest_main#; s#[^ ]*main\.cpp\.o -o app/sdtune#$work/$name.o -o $work/$name -lgmock -lgtest -lgtest_main#" <<<"$link")")
  "$work/$name" || failed=1
done
exit "$failed"
