#!/usr/bin/env bash
# Proves sdtune on a GPU and measures it against diffusers; writes one JSON and ends with 1 where a check fails.
#
#   scripts/gpu_check.sh                     on a machine with a GPU: builds there (no OpenCV, pybind11 or GoogleTest), runs
#   scripts/gpu_check.sh --pack DIR          here, without a GPU: builds, and gathers in DIR what such a machine lacks
#   scripts/gpu_check.sh --built DIR         there: runs what --pack made; nothing is fetched or compiled
#   scripts/gpu_check.sh --cpu               dry run on tiny models without a GPU
#
# Options: --output FILE (default gpu_check.json). Environment: SDTUNE_PYTHON = a python3 with torch 2.11.0 (default:
# .venv/bin/python, else python3); SDTUNE_CUDA_ARCHITECTURES (default: every one that LibTorch supports).
set -euo pipefail
cd "$(dirname "$0")/.."

mode=build device=cuda folder="" output=gpu_check.json
while [ $# -gt 0 ]; do
  case "$1" in
    --cpu) device=cpu ;;
    --pack) mode=pack folder=$2; shift ;;
    --built) mode=built folder=$2; shift ;;
    --output) output=$2; shift ;;
    *) echo "gpu_check: error: unknown option $1" >&2; exit 2 ;;
  esac
  shift
done

python=${SDTUNE_PYTHON:-}
if [ -z "$python" ]; then [ -x .venv/bin/python ] && python=.venv/bin/python || python=python3; fi
torch_folder=$("$python" -c 'import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec("torch").origin).parent)')
# What a GPU machine of ours has no copy of; all pure Python. The versions are those of requirements/test.txt.
wheels=(diffusers transformers open-clip-torch ftfy)

build() {
  export PATH="$(dirname "$python"):$PATH"
  local cuda=ON targets=(device_probe check_kernels sdtune_cuda) tree=build-gpu
  if [ "$device" = cpu ] && [ -f build/build.ninja ]; then  # the everyday build has the probe too
    ninja -C build --quiet device_probe
    binaries=build/gpu libraries=build/lib
    return
  fi
  if [ "$device" = cpu ]; then cuda=OFF targets=(device_probe) tree=build-gpu-cpu; fi
  cmake -S . -B "$tree" -G Ninja -DPython_EXECUTABLE="$(command -v "$python")" -DSDTUNE_CUDA=$cuda -DSDTUNE_APP=OFF \
    -DSDTUNE_CUDA_ARCHITECTURES="${SDTUNE_CUDA_ARCHITECTURES:-release}" -DSDTUNE_PYTHON=OFF -DSDTUNE_IMAGE=OFF \
    -DSDTUNE_TESTS=OFF -DSDTUNE_TORCH_DIR="$torch_folder" >/dev/null
  ninja -C "$tree" --quiet "${targets[@]}"
  binaries=$tree/gpu libraries=$tree/lib
}

pack() {
  mkdir -p "$folder/gpu" "$folder/lib" "$folder/wheels"
  cp "$binaries"/* "$folder/gpu/"
  cp "$libraries"/*.so "$folder/lib/"
  # System libraries that are not LibTorch's and not the C library's.
  ldd "$binaries/device_probe" | awk '$3 ~ /^\// {print $3}' | grep -Ev "$torch_folder|nvidia|/lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so" |
    xargs -r -I{} cp -L {} "$folder/lib/"
  for wheel in "${wheels[@]}"; do
    pinned=$(grep -h "^$wheel==" requirements/test.txt || echo "$wheel")
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: -d "$folder/wheels" "$pinned"
  done
  du -sh "$folder"
}

install_wheels() {
  [ -d "$folder/wheels" ] || return 0
  site=$(mktemp -d)
  "$python" -m pip install -q --no-index --no-deps --no-compile --target "$site" "$folder"/wheels/*.whl
  export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}"
}

case $mode in
  build) build ;;
  pack) build; pack; exit ;;
  built) binaries=$folder/gpu libraries=$folder/lib; install_wheels ;;
esac

export LD_LIBRARY_PATH="$torch_folder/lib:$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SDTUNE_CUDA_LIBRARY="$PWD/$libraries/libsdtune_cuda.so"
[[ $libraries = /* ]] && export SDTUNE_CUDA_LIBRARY="$libraries/libsdtune_cuda.so"
"$python" scripts/gpu/measure.py --binaries "$binaries" --device "$device" --output "$output"
