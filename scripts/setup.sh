#!/usr/bin/env bash
# Sets this machine up, builds sdtune and installs it into .venv. Run it again at any time: what is done is not done twice.
#
#   scripts/setup.sh             packages, .venv, build, install
#   scripts/setup.sh --tests     also what only tests need: the C++ tests, the oracle's Python packages, a browser, linters
#   scripts/setup.sh --tools     packages and .venv only, without building
#
# It compiles sources in groups, a quarter of the time of a first build; the presets of CMakePresets.json compile single files,
# which is faster from the second build on.
#
# Environment: SDTUNE_CUDA=ON|OFF   build the CUDA kernels (default: ON where nvcc or a GPU is found, else OFF)
#              SDTUNE_JOBS=N        parallel compilations (default: as many as cores and memory allow)
#              SDTUNE_SETUP_PYTHON=FILE   the Python, 3.11 or later, that .venv is made with (default: python3)
#              SDTUNE_SKIP_APT=1    install no system packages
set -euo pipefail
cd "$(dirname "$0")/.."
# pip counts what PYTHONPATH names as installed, and installs where others say: LibTorch would then not be in .venv. NVIDIA's containers
# hold pip to their own torch by PIP_CONSTRAINT.
unset PYTHONPATH PYTHONHOME PIP_CONSTRAINT PIP_PREFIX PIP_TARGET PIP_USER
. scripts/gpu_devices.sh
. scripts/compile_jobs.sh

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 2; }

# install_packages LIST...
install_packages() {
  command -v dpkg-query >/dev/null || die "this script installs Debian or Ubuntu packages; on another system install what $* list, then run it with SDTUNE_SKIP_APT=1"
  local missing=()
  while read -r package; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done < <(cat "$@" | grep -v '^#')
  [ ${#missing[@]} -eq 0 ] && return
  local as_root=() name
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing and need root: ${missing[*]}"
    as_root=(sudo env)
    for name in http_proxy https_proxy no_proxy; do  # sudo drops them, and apt reads them
      [ -z "${!name:-}" ] || as_root+=("$name=${!name}")
    done
  fi
  say "installing ${#missing[@]} system packages"
  # On a fresh machine unattended-upgrades may hold apt's locks for minutes. update itself waits for none.
  local tries=1
  until "${as_root[@]}" apt-get update -qq; do
    [ "$tries" -lt 6 ] || die "apt-get update failed $tries times"
    tries=$((tries + 1))
    say "apt-get update failed; once more in 15 s"
    sleep 15
  done
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
    install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# has_pip FOLDER: whether the environment there is whole. One that was ended while it was made has a Python and no pip.
has_pip() { "$1/bin/python" -m pip --version >/dev/null 2>&1; }

# What the system brings too old: before anything large is downloaded.
check_versions() {
  local compiler version used=$python remedy="name another one"
  if has_pip .venv; then used=.venv/bin/python remedy="remove .venv and name another one"; fi
  "$used" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$used is no Python 3.11 or later, as Debian 12 and Ubuntu 24.04 have it; $remedy: SDTUNE_SETUP_PYTHON=/path/to/python3.12"
  read -ra compiler <<<"${CXX:-g++}"
  version=$("${compiler[@]}" -dumpversion) || die "${compiler[*]} does not run; name a compiler: CXX=g++-12"
  case "$("${compiler[@]}" --version)" in
    *clang*) ;;
    *) [ "${version%%.*}" -ge 12 ] || die "${compiler[*]} has version $version, and C++20 needs g++ 12 or later; name another one: CXX=g++-12" ;;
  esac
}

# Whether an nvcc of the system has the CUDA that LibTorch's wheel is built with (requirements/cuda.txt names it); else the wheels
# there bring one.
has_nvcc() {
  local needed nvcc
  needed=$(sed -n 's/^nvidia-cuda-nvcc==\([0-9]*\)\..*/\1/p' requirements/cuda.txt)
  for nvcc in "${CUDACXX:-}" "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
    [ -x "$nvcc" ] || continue
    if "$nvcc" --version | grep -q "release $needed\."; then return 0; fi
    say "$nvcc is not CUDA $needed and is not used"
  done
  return 1
}

find_cuda() {
  case "${SDTUNE_CUDA:-}" in
    ON | OFF) ;;
    "") # nvcc of any version, and a driver of any age, say that this is a machine for GPUs.
      if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || has_gpu_device; then SDTUNE_CUDA=ON; else SDTUNE_CUDA=OFF; fi ;;
    *) die "SDTUNE_CUDA: must be ON or OFF (got $SDTUNE_CUDA)" ;;
  esac
}

# is_installed FILE, install_python FILE: packages of a list. A stamp a file: what is installed is not installed twice. Of torch the
# version must be there too: pip puts another one in its place where a package that was installed since asks for it.
is_installed() {
  local torch
  torch=$(sed -n 's/^torch==//p' "$1")
  [ -z "$torch" ] || compgen -G ".venv/lib/python3*/site-packages/torch-$torch*.dist-info" >/dev/null || return 1
  [ "$(cat ".venv/sdtune-$(basename "$1")" 2>/dev/null)" = "$(sha256sum <"$1")" ]
}

install_python() {
  if is_installed "$1"; then return; fi
  say "installing Python packages of $1"
  local words=(-r "$1")
  case "$1" in
    requirements/torch-cpu.txt | requirements/test-schemas.txt) words=(--no-deps -r "$1") ;;
    requirements/test.txt) words=(-r requirements/torch.txt -r requirements/build.txt -r "$1") ;;
  esac
  # Not compiled to bytecode: sdtune imports nothing of torch, and who imports a file compiles it then.
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile "${words[@]}"
  sha256sum <"$1" >".venv/sdtune-$(basename "$1")"
}

# Trackers need other versions of what the oracle pins.
make_tracker_venv() {
  local list=requirements/trackers.txt stamp=.venv/sdtune-trackers.txt
  [ "$(cat "$stamp" 2>/dev/null)" != "$(sha256sum <"$list")" ] || return 0
  say "installing Python packages of $list into .venv/trackers"
  has_pip .venv/trackers || "$python" -m venv --clear .venv/trackers
  .venv/trackers/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r "$list"
  sha256sum <"$list" >"$stamp"
}

# Packages that only the tests' oracles see (tests/python/oracles.py).
make_oracle_folder() {
  local list=requirements/oracles.txt stamp=.venv/sdtune-oracles.txt
  [ "$(cat "$stamp" 2>/dev/null)" != "$(sha256sum <"$list")" ] || return 0
  say "installing Python packages of $list into .venv/oracles"
  rm -rf .venv/oracles
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --target .venv/oracles -r "$list"
  sha256sum <"$list" >"$stamp"
}

make_venv() {
  if ! has_pip .venv; then
    say "making .venv"
    # CMake would take what it found out of the former Python for this one's, since the path is the same.
    rm -f build/CMakeCache.txt
    "$python" -m venv --clear .venv
  fi
  local file files=(requirements/torch.txt requirements/build.txt)
  if [ "$SDTUNE_CUDA$tests" = OFFOFF ] && ! is_installed requirements/torch.txt; then
    files=(requirements/torch-cpu.txt requirements/build.txt)
  fi
  [ "$tests" = OFF ] || make_tracker_venv
  [ "$tests" = OFF ] || files+=(requirements/test.txt requirements/test-schemas.txt)
  if [ "$SDTUNE_CUDA" = ON ] && ! has_nvcc; then files+=(requirements/cuda.txt); fi
  for file in "${files[@]}"; do install_python "$file"; done
  [ "$tests" = OFF ] || make_oracle_folder
}

build() {
  export PATH="$PWD/.venv/bin:$PATH"
  # Where ccache cannot write it fails, and every compilation with it.
  if [ -z "${CCACHE_DIR:-}" ] && [ ! -w "${HOME:-}" ]; then export CCACHE_DIR=$PWD/build/ccache; fi
  say "building (SDTUNE_CUDA=$SDTUNE_CUDA)"
  local started=$SECONDS
  cmake -S . -B build -G Ninja -DPython_EXECUTABLE="$PWD/.venv/bin/python" -DSDTUNE_CUDA="$SDTUNE_CUDA" \
    -DSDTUNE_UNITY=ON -DSDTUNE_TESTS="$tests" -DCMAKE_INSTALL_PREFIX="$PWD/.venv" >build-configure.log || { cat build-configure.log; exit 1; }
  rm -f build-configure.log
  # Without a preprocessor run before each compile, which a first build would only lose time with.
  CCACHE_DEPEND=1 ninja -C build -j "$(compile_jobs)" --quiet
  cmake --install build >/dev/null
  say "built in $((SECONDS - started)) s"
  if ! is_installed requirements/torch.txt; then
    say "LibTorch's CPU part alone was installed; SDTUNE_CUDA=ON scripts/setup.sh adds NVIDIA's libraries and our kernels"
  fi
  say "done: .venv/bin/sdtune, and 'import sdtune' from .venv/bin/python"
}

python=${SDTUNE_SETUP_PYTHON:-python3}
lists=(scripts/apt-packages.txt) builds=yes tests=OFF
for option in "$@"; do
  case "$option" in
    --tools) builds=no ;;
    --tests) lists+=(scripts/apt-test-packages.txt) tests=ON ;;
    *) die "$option: unknown option (allowed: --tools, --tests)" ;;
  esac
done
find_cuda
[ -n "${SDTUNE_SKIP_APT:-}" ] || install_packages "${lists[@]}"
check_versions
make_venv
[ "$builds" = no ] || build
