#!/usr/bin/env bash
# Static checks: ruff over Python, clang-tidy (.clang-tidy) over the LibTorch-free folders and what changed.
#
#   scripts/lint.sh               LibTorch-free folders, and what is not committed
#   scripts/lint.sh --changed     only what is not committed, for a hook before a commit
#   scripts/lint.sh --all         every folder
#   scripts/lint.sh --python      ruff alone
#
# Sources are read in groups, so a finding may be in a source beside the changed one.
#
# Environment: SDTUNE_LINT_SINCE=COMMIT    what changed since it counts as changed (default: HEAD)
#              SDTUNE_LINT_MOST=N          at most N groups besides the LibTorch-free ones (default: no bound)
#              SDTUNE_JOBS=N               parallel runs (default: the number of cores)
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
started=$SECONDS
mode=${1:-}
case "$mode" in
  "" | --changed | --all | --python) ;;
  *) echo "lint: error: $mode: unknown option (allowed: --changed, --all, --python)" >&2; exit 2 ;;
esac

ruff check --quiet .
[ "$mode" != --python ] || exit 0

tidy=$(command -v clang-tidy-14 || command -v clang-tidy) || { echo "lint: error: clang-tidy is missing: scripts/setup.sh --tools --tests" >&2; exit 2; }
# Without the precompiled header, which clang cannot read. Nothing is built. Smaller groups than the build has: of what lies beside a
# changed source, less is read again.
cmake --preset lint -B build-lint-groups -DSDTUNE_UNITY=ON -DSDTUNE_UNITY_BATCH=16 -DSDTUNE_TESTS=OFF >/dev/null
sed -i 's/ -fno-thread-jumps//' build-lint-groups/compile_commands.json  # GCC's, which clang refuses
groups() { scripts/lint_groups.py build-lint-groups "$@"; }
free="" others=""
[ "$mode" = --changed ] || free=$(groups --free)
if [ "$mode" = --all ]; then others=$(groups); else others=$(groups --since "${SDTUNE_LINT_SINCE:-HEAD}"); fi
others=$(grep -vxF "$free" <<<"$others" || true)
most=${SDTUNE_LINT_MOST:-$(wc -l <<<"$others")}
left_out=$(tail -n "+$((most + 1))" <<<"$others" | grep -c . || true)
chosen=$({ echo "$free"; head -n "$most" <<<"$others"; } | grep . || true)
if [ -n "$chosen" ]; then
  xargs -P "${SDTUNE_JOBS:-$(nproc)}" -n 1 "$tidy" --quiet -p build-lint-groups --extra-arg=-Wno-unknown-warning-option <<<"$chosen" \
    2> >(grep -v "warnings\? generated" >&2)
fi
echo "lint: ok, $(grep -c . <<<"$chosen") groups, $left_out left out, $((SECONDS - started)) s"
