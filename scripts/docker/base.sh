#!/usr/bin/env bash
# Makes a base image of Debian 12 from Debian's packages alone, for build.sh --base, where no image registry is reachable.
#
#   scripts/docker/base.sh [TAG]      default: sdtune-base
#
# Needs debootstrap and buildah, and root. MIRROR names another place of Debian's packages.
set -euo pipefail
tag=${1:-sdtune-base}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" ${MIRROR:+"$MIRROR"} >/dev/null
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
container=$(buildah from scratch)
buildah add --quiet "$container" "$root" / >/dev/null
buildah commit --quiet --rm "$container" "$tag" >/dev/null
echo "base: made $tag"
