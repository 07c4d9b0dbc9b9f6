#!/usr/bin/env bash
# Build moorage/vllm-cpu-ray:VERSION: the vLLM image for CPU, with Ray added. vLLM on CPU refuses
# Ray, so it shows how a cluster is started, not how it serves.
#
#   scripts/build_vllm_cpu_ray_image.sh [VERSION]
#
# Reads PYTHON (a Python 3.11), RAY_VERSION, DOCKER_HOST and pip's own settings.
set -euo pipefail

version=${1:-0.32.0}
ray=${RAY_VERSION:-2.60.0}
python=${PYTHON:-python3.11}
base=moorage/vllm-cpu:$version
tag=moorage/vllm-cpu-ray:$version
container=
folder=

main() {
  "$(dirname "$0")/build_vllm_cpu_image.sh" "$version"
  local inputs
  inputs=$(cat "$0" <(echo "$ray $(docker image inspect -f '{{.Id}}' "$base")") | sha256sum | cut -c1-16)
  if [[ $(label_of "$tag") == "$inputs" ]]; then
    echo "$tag is up to date"
    return
  fi
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"; [[ -z $container ]] || docker rm -f "$container" >/dev/null' EXIT
  mkdir -p "$folder/opt" "$folder/usr/local/bin"
  "$python" -m pip install --quiet --target "$folder/opt/ray" "ray==$ray"
  cat >"$folder/usr/local/bin/ray" <<'PY'
#!/usr/bin/python3
import sys

from ray.scripts.scripts import main

if __name__ == "__main__":
    sys.exit(main())
PY
  chmod 755 "$folder/usr/local/bin/ray" "$folder"
  container=$(docker create "$base")
  docker cp --quiet "$folder/." "$container:/"
  # vLLM's own packages come first: what both bring is vLLM's.
  docker commit -c 'ENV PYTHONPATH=/opt/vllm:/opt/ray' -c "LABEL moorage.build=$inputs" \
    "$container" "$tag" >/dev/null
  docker run --rm --network none --entrypoint ray "$tag" --version
  echo "$tag built in $SECONDS s"
}

label_of() { docker image inspect -f '{{index .Config.Labels "moorage.build"}}' "$1" 2>/dev/null || true; }

# One build of it at a time; who comes second finds it done.
exec 9<"$0"
! command -v flock >/dev/null || flock 9
main
