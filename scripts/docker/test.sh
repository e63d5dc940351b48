#!/usr/bin/env bash
# Checks the image that build.sh made: renders five photos of a reserved subject inside it, trains on them and generates images,
# from Python too, as the image's own user and without any network. Takes a minute or two and removes what it made.
#
#   scripts/docker/test.sh [TAG] [BASE_FOLDER]      default: sdtune, and the bundled base
set -euo pipefail
tag=${1:-sdtune}
base=${2:-}
work=$(mktemp -d)
container=""
finish() {
  [ -z "$container" ] || buildah rm "$container" >/dev/null
  rm -rf "$work"
}
trap finish EXIT
mkdir "$work/run"
volumes=(--volume "$work/run:/work")
[ -z "$base" ] || volumes+=(--volume "$(realpath "$base"):/base:ro")

if command -v docker >/dev/null && docker info >/dev/null 2>&1; then
  user=$(docker run --rm --network none --entrypoint id "$tag" -u)
  inside() { docker run --rm --network none "${volumes[@]}" "$tag" "$@"; }
  python() { docker run --rm --network none "${volumes[@]}" --entrypoint /opt/sdtune/bin/python "$tag" "$@"; }
else
  container=$(buildah from "$tag")
  isolation=${BUILDAH_ISOLATION:-chroot}
  # chroot isolation has no network namespace of its own, so the whole of buildah runs in an empty one; and tini is not
  # the first process there, as it is under Docker (-s).
  in_container() { unshare --net buildah run --isolation "$isolation" "${volumes[@]}" "$container" -- "$@"; }
  user=$(in_container id -u)
  inside() { in_container /usr/bin/tini -s -- /opt/sdtune/bin/sdtune "$@"; }
  python() { in_container /opt/sdtune/bin/python "$@"; }
fi
[ "$user" -ne 0 ] || { echo "test: error: the image runs as root" >&2; exit 1; }
chown "$user" "$work/run"

inside --version
inside render --output me --subject 0 --views 5 --no-captions
inside train --images me --output runs/me ${base:+--base /base} --max-train-steps 20 --num-class-images 8 --train-batch-size 2
inside sample --prompt "a photo of sks person on a beach" --output pictures
ls "$work"/run/pictures/*.png
# Images come back as PIL's, and HEIC photos can be read: libheif is loaded when one comes.
python -c 'import ctypes, sdtune
ctypes.CDLL("libheif.so.1")
pipe = sdtune.StableDiffusionPipeline.from_pretrained("runs/me/model")
pipe("a photo of sks person", num_inference_steps=4, seed=0).images[0].save("from_python.png")'
ls "$work"/run/from_python.png
echo "test: ok, as user $user and without a network"
