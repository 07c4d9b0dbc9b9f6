#!/usr/bin/env bash
# Build moorage/helper:1 without pulling any image: a small Debian with Python's standard library, as
# the helper containers need it on hosts (`helper_image` of a fleet). Other images stand on it.
#
#   scripts/build_helper_image.sh
#
# Reads DOCKER_HOST.
set -euo pipefail

tag=moorage/helper:1
suite=bookworm

main() {
  local inputs
  inputs=$(cat "$0" <(uname -m) | sha256sum | cut -c1-16)
  need docker docker.io
  docker version >/dev/null || fail "the Docker daemon does not answer"
  if [[ $(label_of "$tag") == "$inputs" ]]; then
    echo "$tag is up to date"
    return
  fi
  need mmdebstrap mmdebstrap
  base_system | docker import \
    -c 'ENV PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin LANG=C.UTF-8' \
    -c 'CMD ["sh"]' -c "LABEL moorage.build=$inputs" - "$tag" >/dev/null
  docker run --rm --network none "$tag" python3 -c 'import hashlib, json, ssl, urllib.request'
  docker image prune --force --filter label=moorage.build >/dev/null # the one it replaces
  echo "$tag built in $SECONDS s"
}

base_system() { # libgomp1 and libnuma1 are vLLM's
  # minbase leaves the standard library without .pyc files, and a container has nowhere to keep them.
  mmdebstrap --quiet --variant=minbase \
    --include=python3-minimal,libpython3.11-stdlib,libgomp1,libnuma1,ca-certificates \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='chroot "$1" python3 -m compileall -q /usr/lib/python3.11 /usr/lib/python3' \
    "$suite" -
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
main
