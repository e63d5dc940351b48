#!/usr/bin/env bash
# Builds the container image with Docker, or with buildah where no Docker engine runs, from what git has committed.
#
#   scripts/docker/build.sh [--target runtime|devel|workbench] [--cuda] [--base IMAGE] [--tag NAME] [--wheel FILE]
#                           [--user NAME] [--certificates FILE] [-- OPTIONS OF THE ENGINE'S BUILD]
#
# The tag is sdtune:VERSION-cpu or sdtune:VERSION-cu130, with -devel or -workbench behind it (docs/container.md).
# --user root makes a workbench for clouds whose volumes belong to root; its tag ends with -root.
# --certificates names the authorities that pip trusts while it builds, behind a proxy that signs for others; none of them is
# in the image afterwards.
# --wheel takes a wheel that was built elsewhere (python -m build --wheel) in place of building one, half an hour less. Where no
# registry is reachable, scripts/docker/base.sh makes a base image.
# buildah needs no engine and, with BUILDAH_ISOLATION=chroot (taken where runc and crun are missing), few privileges;
# set it where they are there but refused, as inside another container.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/compile_jobs.sh
base=debian:12 tag="" target=runtime user=sdtune cuda=OFF wheel="" certificates=""
die() { printf 'build: error: %s\n' "$*" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case "$1" in
    --base) base=${2:?--base: has no value}; shift 2 ;;
    --tag) tag=${2:?--tag: has no value}; shift 2 ;;
    --target) target=${2:?--target: has no value}; shift 2 ;;
    --user) user=${2:?--user: has no value}; shift 2 ;;
    --cuda) cuda=ON; shift ;;
    --wheel) wheel=${2:?--wheel: has no value}; shift 2 ;;
    --certificates) certificates=${2:?--certificates: has no value}; shift 2 ;;
    --) shift; break ;;
    *) die "$1: unknown option (allowed: --target, --cuda, --base, --tag, --wheel, --user, --certificates, --)" ;;
  esac
done
case "$target" in runtime | devel | workbench) ;; *) die "--target: $target is none (allowed: runtime, devel, workbench)" ;; esac
case "$user" in
  sdtune) ;;
  root) [ "$target" = workbench ] || die "--user root is for --target workbench alone" ;;
  *) die "--user: $user is none (allowed: sdtune, root)" ;;
esac
version=$(sed -n 's/^project(sdtune VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
kind=cpu
[ "$cuda" = OFF ] || kind=cu130
[ "$target" = runtime ] || kind+=-$target
[ "$user" = sdtune ] || kind+=-root
tag=${tag:-sdtune:$version-$kind}

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
git archive HEAD | tar -x -C "$context"
if [ -n "$wheel" ]; then
  [ -f "$wheel" ] || die "--wheel: $wheel is not a file"
  case "$cuda-$(basename "$wheel")" in
    ON-*+cpu-*) die "--wheel: $(basename "$wheel") has no CUDA kernels, which --cuda asks for" ;;
    OFF-*+cu[0-9]*) die "--wheel: $(basename "$wheel") has CUDA kernels, and needs --cuda" ;;
  esac
  mkdir "$context/dist"
  cp "$wheel" "$context/dist/"
fi
trust=()
if [ -n "$certificates" ]; then
  [ -f "$certificates" ] || die "--certificates: $certificates is not a file"
  cp "$certificates" "$context/requirements/certificates.crt"
  trust=(--build-arg PIP_CERT=/src/requirements/certificates.crt)
fi
arguments=(--file scripts/docker/Dockerfile --target "$target" --tag "$tag" --build-arg "BASE=$base" --build-arg "CUDA=$cuda"
           --build-arg "WORKBENCH_USER=$user" --build-arg "VERSION=$version" --build-arg "REVISION=$(git rev-parse HEAD)"
           --build-arg "JOBS=$(compile_jobs)" "${trust[@]}" "$@" .)
cd "$context"
if command -v docker >/dev/null && docker info >/dev/null 2>&1; then
  docker build "${arguments[@]}"
  size=$(docker images --format '{{.Size}}' "$tag")
elif command -v buildah >/dev/null; then
  if [ -z "${BUILDAH_ISOLATION:-}" ] && ! command -v runc >/dev/null && ! command -v crun >/dev/null; then
    export BUILDAH_ISOLATION=chroot
  fi
  buildah build "${arguments[@]}"
  size=$(buildah images --format '{{.Size}}' "$tag")
else
  die "neither a running Docker engine nor buildah is here (install one: apt-get install buildah)"
fi
echo "build: made $tag${size:+, $size}"
