#!/usr/bin/env bash
# Sets up, builds and runs every test but those that take hours (test_container.py, test_release.py, test_stable_diffusion_cpp.py): the C++ ones under ctest,
# the oracle's under pytest. Arguments go to pytest. Prints each stage's time.
#
# Environment: SDTUNE_SHORT_TESTS=1    leaves out tests marked as long: further layouts, trainings that learn, waits
#              SDTUNE_TEST_JOBS=N      workers of pytest (default: the number of cores)
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh --tests
built=$SECONDS
export PATH="$PWD/.venv/bin:$PATH"
# Two programs of two threads each on two cores slow each other several times: LibTorch's threads spin while they wait.
OMP_NUM_THREADS=${OMP_NUM_THREADS-1} ctest --test-dir build --no-tests=error --output-on-failure -j "$(nproc)"
# What computes in parallel itself, with all threads.
ctest --test-dir build --no-tests=error --output-on-failure -R '^test_(kernels|optim)$'
ran_ctest=$SECONDS
# Packages are installed without bytecode: the first import writes it, or each process that tests start compiles torch and diffusers anew.
unset PYTHONDONTWRITEBYTECODE
# A worker a core, each with files of its own and one thread, which is faster than one worker with all threads.
# An oracle test that is skipped fails here: SDTUNE_NO_SKIP makes conftest.py turn skips into failures.
export SDTUNE_NO_SKIP=${SDTUNE_NO_SKIP-1}
selected=()
[ -z "${SDTUNE_SHORT_TESTS:-}" ] || selected=(-m "not long")
OMP_NUM_THREADS=${OMP_NUM_THREADS-1} .venv/bin/python -m pytest tests/python "${selected[@]}" --ignore tests/python/test_demo.py \
  --ignore tests/python/test_container.py --ignore tests/python/test_release.py \
  --ignore tests/python/test_stable_diffusion_cpp.py -n "${SDTUNE_TEST_JOBS:-$(nproc)}" --dist loadfile --durations 30 "$@"
# The demo has the machine to itself, as its users do.
[ $# -gt 0 ] || .venv/bin/python -m pytest tests/python/test_demo.py "${selected[@]}"
echo "test: setup and build $built s, ctest $((ran_ctest - built)) s, pytest $((SECONDS - ran_ctest)) s"
