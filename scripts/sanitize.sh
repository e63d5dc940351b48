#!/usr/bin/env bash
# Builds every test that needs no LibTorch with sanitizers, and runs them. Exit 1 on a finding.
#
#   scripts/sanitize.sh            address and undefined behaviour, then threads
#   scripts/sanitize.sh memory     address and undefined behaviour: every LibTorch-free test
#   scripts/sanitize.sh threads    thread sanitizer: those that start threads (loader, observers, manifests, renderer, preemption watch)
#
# CMake knows which tests these are (tests/CMakeLists.txt, scripts/torch_free_tests.py). LibTorch itself is not instrumented, so
# these programs do not link it, and nothing is suppressed.
#
# Environment: SDTUNE_JOBS=N    parallel compilations and programs (default: the number of cores)
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
jobs=${SDTUNE_JOBS:-$(nproc)}

# run_tests FOLDER SANITIZERS FLAGS LABEL TARGET...: the tests that have this label
run_tests() {
  local folder=$1 sanitizers=$2 flags=$3 label=$4 started=$SECONDS
  shift 4
  cmake -S . -B "$folder" -G Ninja -DPython_EXECUTABLE="$PWD/.venv/bin/python" -DSDTUNE_SANITIZE="$sanitizers" -DSDTUNE_UNITY=ON \
    -DSDTUNE_APP=OFF -DSDTUNE_PYTHON=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="$flags" >/dev/null
  ninja -C "$folder" -j "$jobs" --quiet "$@"
  ctest --test-dir "$folder" -L "^$label\$" -j "$jobs" --no-tests=error --output-on-failure
  echo "sanitize: $sanitizers: $((SECONDS - started)) s"
}
# Without optimization g++ compiles these checks in half the time.
memory() { run_tests build-sanitize-memory address,undefined "-O0 -g1" torch_free torch_free_tests; }
threads() { run_tests build-sanitize-threads thread "-O0 -g1" threads test_torch_free test_files test_renderer test_rental; }

# Undefined behaviour ends the program too: without halt_on_error it is only printed. A stack for signal handlers is what one of the
# tests sets up itself (model/base/signal_stack.h), so the address sanitizer leaves it alone.
export ASAN_OPTIONS=detect_leaks=1:use_sigaltstack=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 TSAN_OPTIONS=halt_on_error=1
case "${1:-all}" in
  memory) memory ;;
  threads) threads ;;
  all) memory; threads ;;
  *) echo "sanitize: error: $1: unknown (allowed: memory, threads)" >&2; exit 2 ;;
esac
