#!/usr/bin/env bash
# Builds `sdtune prove` with the CUDA kernels and runs it: what sdtune promises, tried on the GPU of this machine (docs/gpu.md).
#
#   scripts/prove.sh [OPTIONS OF PROVE]               builds here (needs what scripts/setup.sh installs), runs
#   scripts/prove.sh --pack DIR                       here, without a GPU: builds, and gathers in DIR what another machine lacks
#   scripts/prove.sh --built DIR [OPTIONS OF PROVE]   there, in a copy of this repository: runs what --pack made; nothing is fetched or
#                                                     compiled, and no OpenCV is needed
#
# Without --images the photos are examples/me. `--sd15` in place of --base makes a base of Stable Diffusion 1.5's size with random
# weights, for a machine without weights: kernels, parity, ranks and diffusers say as much of it as of the real one.
# On a GPU the kernels are first compared with plain loops (tests/gpu). Exit code: that of `sdtune prove`, or 1 where a kernel differs.
#
# Environment: SDTUNE_PYTHON = a python3 with torch 2.11.0 (default: .venv/bin/python, else python3); SDTUNE_CUDA=OFF builds without
# kernels, for --device cpu; SDTUNE_CUDA_ARCHITECTURES (default: every one that LibTorch supports); SDTUNE_PROVE_BUILD = a build folder
# to take as it is, in place of building.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/compile_jobs.sh

mode=build folder="" cuda=${SDTUNE_CUDA:-ON} random_base=no photos=examples/me words=()
while [ $# -gt 0 ]; do
  case "$1" in
    --pack | --built | --images)
      [ $# -ge 2 ] || { echo "prove.sh: error: $1: needs a folder behind it" >&2; exit 2; } ;;&
    --pack) mode=pack folder=$2; shift ;;
    --built)
      [ -d "$2" ] || { echo "prove.sh: error: $2: there is no such folder (--built names what --pack made)" >&2; exit 2; }
      mode=built folder=$(realpath "$2"); shift ;;
    --sd15) random_base=yes ;;
    --images) photos=$2; shift ;;
    *) words+=("$1") ;;
  esac
  shift
done

python=${SDTUNE_PYTHON:-}
if [ -z "$python" ]; then [ -x .venv/bin/python ] && python=.venv/bin/python || python=python3; fi
export SDTUNE_PYTHON=$(command -v "$python")
torch_folder=$("$python" -c 'import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec("torch").origin).parent)' 2>/dev/null) || {
  echo "prove.sh: error: $python has no torch: scripts/setup.sh makes .venv with it, or SDTUNE_PYTHON names another Python" >&2; exit 2; }
# What a GPU machine of ours has no copy of; all pure Python. The versions are those of requirements/test.txt.
wheels=(diffusers transformers open-clip-torch ftfy)

build() {
  local tree=${SDTUNE_PROVE_BUILD:-build-prove} targets=(sdtune)
  [ "$cuda" = OFF ] || targets+=(sdtune_cuda check_kernels)
  programs=$tree/app libraries=$PWD/$tree/lib checks=$tree/gpu/check_kernels
  [ -z "${SDTUNE_PROVE_BUILD:-}" ] || return 0
  PATH="$(dirname "$SDTUNE_PYTHON"):$PATH"
  cmake -S . -B "$tree" -G Ninja -DPython_EXECUTABLE="$SDTUNE_PYTHON" -DSDTUNE_CUDA="$cuda" -DSDTUNE_UNITY=ON \
    -DSDTUNE_CUDA_ARCHITECTURES="${SDTUNE_CUDA_ARCHITECTURES:-release}" -DSDTUNE_PYTHON=OFF -DSDTUNE_TESTS=OFF \
    -DSDTUNE_TORCH_DIR="$torch_folder" >/dev/null
  ninja -C "$tree" -j "$(compile_jobs)" --quiet "${targets[@]}"
}

# System libraries that are neither LibTorch's nor the C library's.
system_libraries() {
  ldd "$@" | awk '$3 ~ /^\// {print $3}' | grep -Ev "^$torch_folder|nvidia|/lib(c|m|dl|rt|pthread|util|resolv|z|gcc_s|stdc\+\+)\.so" | sort -u
}

pack() {
  mkdir -p "$folder/bin" "$folder/lib" "$folder/wheels" "$folder/share/sdtune/haarcascades"
  local program found=()
  for program in "$programs/sdtune" "$programs/sdtune-faces" "$checks"; do
    if [ -x "$program" ]; then cp "$program" "$folder/bin/"; found+=("$program"); fi
  done
  [ ! -f "$libraries/libsdtune_cuda.so" ] || cp "$libraries/libsdtune_cuda.so" "$folder/lib/"
  system_libraries "${found[@]}" | xargs -r -I{} cp -L {} "$folder/lib/"
  local cascades=/usr/share/opencv4/haarcascades
  if [ -d "$cascades" ]; then
    cp "$cascades"/haarcascade_frontalface_alt.xml "$cascades"/haarcascade_frontalface_alt2.xml "$folder/share/sdtune/haarcascades/"
  else
    echo "prove.sh: warning: $cascades is missing (Debian's opencv-data): the packed sdtune-faces finds no faces" >&2
  fi
  for wheel in "${wheels[@]}"; do
    pinned=$(grep -h "^$wheel==" requirements/test.txt || echo "$wheel")
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: -d "$folder/wheels" "$pinned"
  done
  du -sh "$folder"
}

install_wheels() {
  programs=$folder/bin libraries=$folder/lib checks=$folder/bin/check_kernels
  site=$(mktemp -d)
  trap 'rm -rf "$site"' EXIT
  "$python" -m pip install -q --no-index --no-deps --no-compile --target "$site" "$folder"/wheels/*.whl
  export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}"
}

# Beside the repository's ignored build folders, so that a second call takes the same one.
make_random_base() {
  local folder=build-prove/random
  mkdir -p "$folder"
  "$python" - "$folder" <<'PYTHON'
import sys
from pathlib import Path
sys.path.insert(0, "scripts")
from bench.models import MODELS, write_pipeline
write_pipeline(MODELS["sd15"], Path(sys.argv[1]))
PYTHON
  words+=(--base "$folder/sd15-pipeline")
}

case $mode in
  build) build ;;
  pack) build; pack; exit ;;
  built) install_wheels ;;
esac
[ "$random_base" = no ] || make_random_base
export LD_LIBRARY_PATH="$torch_folder/lib:$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
status=0
case " ${words[*]} " in *" --device cpu "*|*" --device=cpu "*) ;; *)
  export SDTUNE_CUDA_LIBRARY="$libraries/libsdtune_cuda.so"
  "$checks" || status=1 ;;
esac
code=0
"$programs/sdtune" prove --images "$photos" ${words[@]+"${words[@]}"} || code=$?
[ $code -ne 0 ] || code=$status
exit $code
