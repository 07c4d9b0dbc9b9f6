#!/usr/bin/env bash
# Build moorage/llama-cpp:1 without pulling any image: moorage/helper:1, the xllamacpp wheel, and moorage's launcher
# for it where llama.cpp's official images have llama-server.
#
#   scripts/build_llama_cpp_image.sh [PYTHON]
#
# PYTHON, a 3.11, has the wheel; by default the one of .venv. Reads MOORAGE_BUILD_CACHE and DOCKER_HOST.
set -euo pipefail

tag=moorage/llama-cpp:1
here=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-$here/.venv/bin/python}
context=${MOORAGE_BUILD_CACHE:-$HOME/.cache/moorage/images}/llama-cpp

main() {
  local version inputs
  docker version >/dev/null || fail "the Docker daemon does not answer"
  version=$("$python" -c 'import importlib.metadata as m; print(m.version("xllamacpp"))') ||
    fail "xllamacpp is missing: pip install -e '.[llama-cpp]'"
  inputs=$(cat "$0" "$here"/moorage/engines/{llama_cpp/*.{py,json},schema/*.py} \
    "$here"/moorage/adapters/engines/{llama_server,llama_cpp_parser,schema_store}.py \
    <(echo "$version") | sha256sum | cut -c1-16)
  if [[ $(label_of "$tag") == "$inputs" ]]; then
    echo "$tag is up to date"
    return
  fi
  "$here/scripts/build_helper_image.sh"
  rm -rf "$context"
  mkdir -p "$context/site" "$context/app"
  packages | while read -r path; do cp -r "$path" "$context/site/"; done
  # C++ and OpenMP of the base system may be older; `ldd` shows the libraries with their paths.
  ldd "$context"/site/xllamacpp/*.so | grep -o '/[^ ]*' | grep -E 'stdc|gomp|gcc_s' | sort -u | while read -r library; do
    install -D "$(readlink -f "$library")" "$context/lib/$(basename "$library")"
  done
  printf '#!/usr/bin/python3\nfrom moorage.adapters.engines.llama_server import main\n\nmain()\n' >"$context/app/llama-server"
  chmod 755 "$context/app/llama-server"
  cat >"$context/Dockerfile" <<'DOCKERFILE'
FROM moorage/helper:1
COPY app /app
COPY site /opt/site
COPY lib /opt/lib
ENV PYTHONPATH=/opt/site LD_LIBRARY_PATH=/opt/lib
RUN python3 -m compileall -q /opt/site || true
ENTRYPOINT ["/app/llama-server"]
DOCKERFILE
  docker build --quiet --label "moorage.build=$inputs" --tag "$tag" "$context" >/dev/null
  rm -rf "$context"
  echo "$tag built in $SECONDS s"
}

packages() { # the files and folders of all that the launcher imports, moorage's own too
  (cd "$here" && "$python" - <<'PY'
import sys
import sysconfig
from pathlib import Path

import xllamacpp

import moorage.adapters.engines.llama_server

standard = Path(sysconfig.get_path("stdlib"))
for root in sorted({name.partition(".")[0] for name in sys.modules}):
    path = getattr(sys.modules.get(root), "__file__", None)
    if not path or root in sys.stdlib_module_names or root.startswith("__"):
        continue
    path = Path(path)
    print(path.parent if path.name == "__init__.py" else path)
PY
  )
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
