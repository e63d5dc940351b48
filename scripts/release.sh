#!/usr/bin/env bash
# Makes what a release consists of, from what git has committed, into one folder (docs/release.md):
#
#   scripts/release.sh [--output DIR] [--python PYTHON]... [--images] [--cuda-only | --cpu-only]
#
#   sdtune-VERSION+cpu-*.whl, sdtune-VERSION+cu130-*.whl   for the Python of .venv, built and tested; and for each --python, built the
#                                                           same way and not tested
#   sdtune-VERSION+cpu-linux-ARCH.tar.gz, …+cu130-…         program and libraries, without Python
#   sdtune-VERSION-KIND.oci.tar                             with --images: container images (docs/container.md), by buildah
#   *.spdx.json, NOTES.md, C_LIBRARY.txt, SHA256SUMS
#
# Every wheel is compiled from nothing in a copy of the commit, so this takes a quarter of an hour a wheel on two cores.
# SDTUNE_JOBS: parallel compilations. SDTUNE_RELEASE_WHEELS=DIR takes finished wheels from there in place of compiling them.
set -euo pipefail
cd "$(dirname "$0")/.."
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
export SOURCE_DATE_EPOCH CMAKE_BUILD_PARALLEL_LEVEL=${SDTUNE_JOBS:-$(nproc)}
own=$PWD/.venv/bin/python
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# build_wheel KIND PYTHON [OPTIONS OF build]
build_wheel() {
  local kind=$1 python=$2 cuda=OFF
  [ "$kind" = cpu ] || cuda=ON
  if [ -n "${SDTUNE_RELEASE_WHEELS:-}" ]; then
    cp "$SDTUNE_RELEASE_WHEELS"/sdtune-*+"$kind"-*.whl "$output/"
    return
  fi
  rm -rf "$copy"/*
  git archive HEAD | tar -x -C "$copy"
  SDTUNE_WHEEL_KIND=$kind PATH="$(dirname "$own"):$PATH" "$python" -m build --wheel "${@:3}" --outdir "$output" \
    -C "cmake.define.SDTUNE_CUDA=$cuda" -C cmake.define.SDTUNE_TESTS=OFF "$copy" >"$copy.log" 2>&1 || { tail -30 "$copy.log"; exit 1; }
}

for kind in "${kinds[@]}"; do
  started=$SECONDS
  build_wheel "$kind" "$own" --no-isolation
  wheel=$(ls "$output"/sdtune-"$version+$kind"-*.whl)
  say "$(basename "$wheel"), $(du -h "$wheel" | cut -f1), in $((SECONDS - started)) s"
  "$own" scripts/release/c_library.py "$wheel" | tee -a "$output/C_LIBRARY.txt"
  "$own" scripts/release/sbom.py "$wheel" >"$output/sdtune-$version+$kind.spdx.json"
  started=$SECONDS
  tarball=$("$own" scripts/release/tarball.py "$wheel" "$output")
  say "$(basename "$tarball"), $(du -h "$tarball" | cut -f1), in $((SECONDS - started)) s"
  for python in ${pythons[@]+"${pythons[@]}"}; do
    build_wheel "$kind" "$python"
    "$python" -c 'import sys; print("CPython %d.%d" % sys.version_info[:2])' >>"$output/UNTESTED.txt"
    say "a wheel for $("$python" --version) was built, and not tested"
  done
  if [ "$images" = yes ]; then
    cuda=(); [ "$kind" = cpu ] || cuda=(--cuda)
    for target in runtime workbench; do
      tag=sdtune:$version-$kind; [ "$target" = runtime ] || tag+=-$target
      scripts/docker/build.sh --target "$target" ${cuda[@]+"${cuda[@]}"} --wheel "$wheel" --tag "$tag" \
        --base "${SDTUNE_RELEASE_BASE:-debian:12}" ${PIP_CERT:+--certificates "$PIP_CERT"}
      buildah push --quiet "$tag" "oci-archive:$output/${tag/:/-}.oci.tar:$tag"
    done
  fi
done
# What changed: the newest part of the changelog.
awk '/^## /{ if (seen++) exit } seen' CHANGELOG.md >"$output/NOTES.md"
(cd "$output" && sha256sum -- * | grep -v ' SHA256SUMS$' >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
say "$output holds $(ls "$output" | wc -l) files"
