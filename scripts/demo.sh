#!/usr/bin/env bash
# The main job on one machine: make two tiny models, deploy them behind one address, let one fall asleep,
# wake it by a request, show the record, retire both. With ENGINE=llama.cpp: one, as a GGUF file.
set -euo pipefail
cd "$(dirname "$0")/.."

# Everything stays in this checkout; no Prefect server or profile of the user is touched.
export MOORAGE_HOME="$PWD/.moorage"
export PREFECT_HOME="$PWD/.moorage/prefect"
mkdir -p "$PREFECT_HOME"
unset PREFECT_API_URL PREFECT_PROFILE

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "$*"; "$@"; }

# The Prefect server that the commands keep ends with the demo.
trap 'moorage server stop' EXIT

retire() {
  status=$?
  if [ -n "${KEEP:-}" ] && [ "$status" -eq 0 ]; then
    printf '\nLeft running. In this shell: export MOORAGE_HOME=%q PREFECT_HOME=%q PATH=%q:$PATH\n' \
      "$MOORAGE_HOME" "$PREFECT_HOME" "$PWD/.venv/bin"
    printf 'and end it with: moorage retire tiny-llama; moorage retire tiny-poet; moorage gateway down;'
    printf ' moorage server stop\n'
  else
    run moorage retire tiny-llama || true
    run moorage retire tiny-poet || true
    run moorage gateway down || true
    run moorage server stop || true
  fi
  exit "$status"
}

if [ "${ENGINE:-}" = llama.cpp ]; then
  run python scripts/make_demo_gguf.py models/tiny.gguf
  trap 'run moorage retire tiny-gguf; run moorage server stop' EXIT
  run moorage deploy deployments/tiny-gguf.yaml
  run moorage chat tiny-gguf "Hello!" --max-tokens 16
  run moorage status
  run moorage show tiny-gguf
  exit
fi
run python scripts/make_tiny_model.py models/tiny-llama
run python scripts/make_tiny_model.py models/tiny-poet
trap retire EXIT
run moorage gateway up --port "${PORT:-4000}"
run moorage deploy deployments/tiny-llama.yaml
run moorage deploy deployments/tiny-poet.yaml
run moorage chat tiny-llama "Hello!" --max-tokens 16
say 'tiny-poet falls asleep after 5 s without a request (keep_alive)'
until moorage status tiny-poet --json | grep -q '"asleep"'; do sleep 1; done
run moorage status
run moorage chat tiny-poet "Wake up!" --max-tokens 16
run moorage show tiny-llama
