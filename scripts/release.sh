#!/usr/bin/env bash
# Makes what a release consists of, from what git has committed, into one folder (docs/release.md):
#
#   scripts/release.sh [--output DIR] [--python PYTHON]... [--images] [--cuda-only | --cpu-only]
#
#   sdtune-VERSION+cpu-*.whl, sdtune-VERSION+cu130-*.whl   for the Python of .venv, built and tested; and for each --python, built the
#                                                           same way and not tested
#   sdtune-VERSION+cpu-linux-ARCH.tar.gz, …+cu130-…         program and libraries, without Python
#   sdtune-VERSION-KIND.tar                                 with --images: container images (docs/container.md), by Docker or buildah
#   *.spdx.json, NOTES.md, C_LIBRARY.txt, SHA256SUMS
#
# Every wheel is compiled from nothing in a copy of the commit, so this takes a quarter of an hour a wheel on two cores.
# SDTUNE_JOBS: parallel compilations (default: as many as cores and memory allow). SDTUNE_RELEASE_WHEELS=DIR takes
# finished wheels from there in place of compiling them.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/compile_jobs.sh
say() { printf 'release: %s\n' "$*"; }
die() { printf 'release: error: %s\n' "$*" >&2; exit 2; }

output=release pythons=() images=no kinds=(cpu cu130)
while [ $# -gt 0 ]; do
  case "$1" in
    --output) output=${2:?--output: has no value}; shift 2 ;;
    --python) pythons+=("${2:?--python: has no value}"); shift 2 ;;
    --images) images=yes; shift ;;
    --cuda-only) kinds=(cu130); shift ;;
    --cpu-only) kinds=(cpu); shift ;;
    *) die "$1: unknown option (allowed: --output, --python, --images, --cuda-only, --cpu-only)" ;;
  esac
done
[ -x .venv/bin/python ] || die ".venv is missing: scripts/setup.sh --tools"
[ -z "$(git status --porcelain --untracked-files=no)" ] || die "there are changes that are not committed, and a release is of a commit"
for python in ${pythons[@]+"${pythons[@]}"}; do
  command -v "$python" >/dev/null || die "--python: $python is not a program"
done
if [ -e "$output" ] && [ -n "$(ls -A "$output")" ]; then die "--output: $output is not empty"; fi
mkdir -p "$output"
output=$(realpath "$output")
version=$(sed -n 's/^project(sdtune VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
CMAKE_BUILD_PARALLEL_LEVEL=$(compile_jobs)
export SOURCE_DATE_EPOCH CMAKE_BUILD_PARALLEL_LEVEL
own=$PWD/.venv/bin/python
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# tag_of PYTHON: as wheels are named after it, cp311
tag_of() { "$1" -c 'import sys; print("cp%d%d" % sys.version_info[:2])'; }

# build_wheel KIND PYTHON, which has LibTorch and the tools of requirements/build.txt
build_wheel() {
  local kind=$1 python=$2 cuda=OFF finished
  [ "$kind" = cpu ] || cuda=ON
  if [ -n "${SDTUNE_RELEASE_WHEELS:-}" ]; then
    finished=("$SDTUNE_RELEASE_WHEELS"/sdtune-"$version+$kind-$(tag_of "$python")"-*.whl)
    [ -f "${finished[0]}" ] || die "SDTUNE_RELEASE_WHEELS: holds no wheel sdtune-$version+$kind-$(tag_of "$python")-*"
    cp "${finished[@]}" "$output/"
    return
  fi
  rm -rf "${copy:?}/source"
  mkdir "$copy/source"
  git archive HEAD | tar -x -C "$copy/source"
  SDTUNE_WHEEL_KIND=$kind PATH="$(dirname "$python"):$PATH" "$python" -m build --wheel --no-isolation --outdir "$output" \
    -C "cmake.define.SDTUNE_CUDA=$cuda" -C cmake.define.SDTUNE_TESTS=OFF "$copy/source" >"$copy/log" 2>&1 || { tail -30 "$copy/log"; exit 1; }
}

# tools_of PYTHON: an environment of that interpreter with the same LibTorch, nvcc and tools; prints its Python.
tools_of() {
  local folder
  folder=$copy/$(tag_of "$1")
  if [ ! -d "$folder" ]; then
    "$1" -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check -r requirements/torch.txt -r requirements/cuda.txt \
      -r requirements/build.txt build==1.6.1 >&2
  fi
  echo "$folder/bin/python"
}

# build_image KIND TARGET WHEEL
build_image() {
  local tag=sdtune:$version-$1 cuda=() file
  [ "$2" = runtime ] || tag+=-$2
  [ "$1" = cpu ] || cuda=(--cuda)
  scripts/docker/build.sh --target "$2" ${cuda[@]+"${cuda[@]}"} --wheel "$3" --tag "$tag" \
    --base "${SDTUNE_RELEASE_BASE:-debian:12}" ${PIP_CERT:+--certificates "$PIP_CERT"}
  file=$output/${tag/:/-}.tar
  if command -v docker >/dev/null && docker info >/dev/null 2>&1; then
    docker save --output "$file" "$tag"
  else
    buildah push --quiet "$tag" "oci-archive:$file:$tag"
  fi
  say "$(basename "$file"), $(du -h "$file" | cut -f1)"
}

for kind in "${kinds[@]}"; do
  started=$SECONDS
  build_wheel "$kind" "$own"
  wheel=$(ls "$output"/sdtune-"$version+$kind-$(tag_of "$own")"-*.whl)
  say "$(basename "$wheel"), $(du -h "$wheel" | cut -f1), in $((SECONDS - started)) s"
  "$own" scripts/release/c_library.py "$wheel" | tee -a "$output/C_LIBRARY.txt"
  "$own" scripts/release/sbom.py "$wheel" >"$output/sdtune-$version+$kind.spdx.json"
  started=$SECONDS
  tarball=$("$own" scripts/release/tarball.py "$wheel" "$output")
  "$own" scripts/release/sbom.py "$wheel" --tarball "$tarball" >"${tarball%.tar.gz}.spdx.json"
  say "$(basename "$tarball"), $(du -h "$tarball" | cut -f1), in $((SECONDS - started)) s"
  for python in ${pythons[@]+"${pythons[@]}"}; do
    build_wheel "$kind" "$(tools_of "$python")"
    "$python" -c 'import sys; print("CPython %d.%d" % sys.version_info[:2])' >>"$output/UNTESTED.txt"
    say "a wheel for $("$python" --version) was built, and not tested"
  done
  if [ "$images" = yes ]; then
    for target in runtime devel workbench; do build_image "$kind" "$target" "$wheel"; done
  fi
done
[ ! -f "$output/UNTESTED.txt" ] || sort -u -o "$output/UNTESTED.txt" "$output/UNTESTED.txt"
# What changed: the newest part of the changelog.
awk '/^## /{ if (seen++) exit } seen' CHANGELOG.md >"$output/NOTES.md"
sums=$(cd "$output" && sha256sum -- *)
echo "$sums" >"$output/SHA256SUMS"
say "$output holds $(ls "$output" | wc -l) files"
