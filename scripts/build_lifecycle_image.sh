#!/usr/bin/env bash
# Build moorage/lifecycle:1, the image of one static binary that behaves (or fails) like `vllm serve`;
# see tests/images/lifecycle/vllm.c. The binary stays in the cache, to be run without Docker too.
#
#   scripts/build_lifecycle_image.sh [--binary-only]
#
# Reads MOORAGE_BUILD_CACHE and DOCKER_HOST.
set -euo pipefail

tag=moorage/lifecycle:1
source=$(dirname "$0")/../tests/images/lifecycle
context=${MOORAGE_BUILD_CACHE:-$HOME/.cache/moorage/images}/lifecycle

main() {
  local inputs
  inputs=$(cat "$0" "$source/vllm.c" "$source/Dockerfile" <(uname -m) | sha256sum | cut -c1-16)
  make_binary "$inputs"
  echo "$context/vllm"
  [[ ${1:-} == --binary-only ]] || make_image "$inputs"
}

make_binary() {
  [[ $(cat "$context/inputs" 2>/dev/null) != "$1" ]] || return 0
  need gcc "gcc libc6-dev"
  mkdir -p "$context"
  # Compiled aside: a running copy cannot be overwritten, only replaced.
  gcc -static -s -Os -Wall -Wextra -Werror -o "$context/vllm.new" "$source/vllm.c"
  mv "$context/vllm.new" "$context/vllm"
  echo "$1" >"$context/inputs"
}

make_image() {
  need docker docker.io
  docker version >/dev/null || fail "the Docker daemon does not answer"
  if [[ $(label_of "$tag") == "$1" ]]; then
    echo "$tag is up to date"
    return
  fi
  need busybox busybox-static # a shell, as the images of engines have one
  cp "$(command -v busybox)" "$context/busybox"
  docker build --quiet --label "moorage.build=$1" --tag "$tag" --file "$source/Dockerfile" "$context"
  docker image prune --force --filter label=moorage.build >/dev/null # the one it replaces
  echo "$tag built in $SECONDS s"
}

label_of() { docker image inspect -f '{{index .Config.Labels "moorage.build"}}' "$1" 2>/dev/null || true; }

need() { command -v "$1" >/dev/null || fail "$1 is missing: apt install $2"; }

fail() {
  echo "$0: $1" >&2
  exit 1
}

# One build of it at a time; who comes second finds it done.
exec 9<"$0"
! command -v flock >/dev/null || flock 9
main "$@"
