#!/usr/bin/env bash
# Builds stable-diffusion.cpp, to which tests/python/test_stable_diffusion_cpp.py compares images, from the sources that its Python
# package carries on PyPI. Takes about ten minutes on two cores; nothing of it is installed or used by the product.
#
#   scripts/stable_diffusion_cpp.sh [FOLDER]     default: build-stable-diffusion-cpp; prints the program's path at the end
#
# Environment: SDTUNE_JOBS=N    parallel compilations (default: the number of cores)
set -euo pipefail
cd "$(dirname "$0")/.."
package=stable-diffusion-cpp-python
version=0.4.7
[ $# -le 1 ] || { echo "stable_diffusion_cpp: error: $2: one folder is allowed" >&2; exit 2; }
folder=${1:-build-stable-diffusion-cpp}
[ -x .venv/bin/pip ] || { echo "stable_diffusion_cpp: error: .venv is missing: scripts/setup.sh --tools" >&2; exit 2; }
export PATH="$PWD/.venv/bin:$PATH"
mkdir -p "$folder"
folder=$(realpath "$folder")
source=$folder/source
if [ ! -d "$source" ]; then
  # Its sources alone: pip would compile the Python package, which has no program.
  pip download --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-binary "$package" --dest "$folder" "$package==$version" >&2
  rm -rf "$source.new"
  mkdir "$source.new"
  tar -xzf "$folder/${package//-/_}-$version.tar.gz" -C "$source.new" --strip-components 3 \
    "${package//-/_}-$version/vendor/stable-diffusion.cpp"
  mv "$source.new" "$source"
fi
cmake -S "$source" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSD_WEBP=OFF -DSD_WEBM=OFF -Wno-dev >"$folder/log" 2>&1 ||
  { tail -20 "$folder/log" >&2; exit 1; }
cmake --build "$folder/build" --target sd-cli --parallel "${SDTUNE_JOBS:-$(nproc)}" >"$folder/log" 2>&1 ||
  { tail -20 "$folder/log" >&2; exit 1; }
echo "$folder/build/bin/sd-cli"
