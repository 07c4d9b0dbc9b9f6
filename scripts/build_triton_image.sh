#!/usr/bin/env bash
# Build moorage/triton:1 without pulling any image: moorage/helper:1, the tritonserver in the wheel of nvidia-pytriton,
# and a backend that keeps the contract of NVIDIA's vLLM backend without a GPU (tests/triton/model.py).
#
#   scripts/build_triton_image.sh
#
# Reads PYTHON (with pip), MOORAGE_BUILD_CACHE, DOCKER_HOST and pip's own settings. Needs apt for Python's library.
set -euo pipefail

tag=moorage/triton:1
pytriton=0.7.0
numpy=1.26.4 # the backend's process aborts on the first text with numpy 2
here=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-$here/.venv/bin/python}
work=${MOORAGE_BUILD_CACHE:-$HOME/.cache/moorage/images}/triton
context=$work/context

main() {
  local inputs
  docker version >/dev/null || fail "the Docker daemon does not answer"
  inputs=$(cat "$0" "$here"/tests/triton/model.py | sha256sum | cut -c1-16)
  if [[ $(label_of "$tag") == "$inputs" ]]; then
    echo "$tag is up to date"
    return
  fi
  "$here/scripts/build_helper_image.sh"
  rm -rf "$context"
  mkdir -p "$work/wheels" "$context/site" "$context/lib"
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work/wheels" \
    "nvidia-pytriton==$pytriton" "numpy==$numpy"
  unpack nvidia_pytriton "$context/opt"
  unpack numpy "$context/site"
  python_library
  arrange "$context/opt/pytriton/tritonserver"
  cat >"$context/Dockerfile" <<'DOCKERFILE'
FROM moorage/helper:1
COPY opt /opt/pytriton
COPY site /usr/lib/python3/dist-packages
COPY lib /usr/lib/x86_64-linux-gnu
RUN ln -s /opt/pytriton/pytriton/tritonserver /opt/tritonserver
ENV PATH=/opt/tritonserver/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin LANG=C.UTF-8
CMD ["tritonserver"]
DOCKERFILE
  docker build --quiet --label "moorage.build=$inputs" --tag "$tag" "$context" >/dev/null
  rm -rf "$context"
  echo "$tag built in $SECONDS s"
}

unpack() { # NAME FOLDER: a wheel
  "$python" -m zipfile -e "$(ls "$work"/wheels/"$1"-*.whl)" "$2"
}

python_library() { # the backend's process links to it, and Debian's small Python has none
  (cd "$work" && apt-get download -qq libpython3.11 >/dev/null && dpkg-deb -x libpython3.11_*.deb deb)
  cp -P "$work"/deb/usr/lib/x86_64-linux-gnu/libpython3.11.so.1* "$context/lib/"
  cp -P "$work"/deb/usr/lib/x86_64-linux-gnu/libexpat.so.1* "$context/lib/" 2>/dev/null || true
}

arrange() { # FOLDER: as NVIDIA's image has it, for one version of Python
  cp "$1/python_backend_stubs/3.11/triton_python_backend_stub" "$1/backends/python/"
  chmod 755 "$1/bin/tritonserver" "$1/backends/python/triton_python_backend_stub"
  rm -rf "$1/python_backend_stubs"
  mkdir "$1/backends/vllm"
  cp "$here/tests/triton/model.py" "$1/backends/vllm/"
  "$python" - "$here/moorage/engines/vllm/schemas.json" >"$1/backends/vllm/fields.json" <<'PY'
import json
import sys

history = json.load(open(sys.argv[1]))
place = {version: at for at, version in enumerate(history["versions"])}
wanted, last = place["0.24.0"], history["versions"][-1]
names = {
    span["argument"]["options"][0]
    for span in history["spans"]
    if place.get(span.get("since"), 0) <= wanted <= place[span.get("until", last)]
}
print(json.dumps(sorted({one[2:].replace("-", "_") for one in names} | {"model"})))
PY
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
