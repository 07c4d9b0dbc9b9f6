#!/usr/bin/env bash
# The main job on one machine: make a tiny model, deploy it, chat with it, show the record, retire it.
set -euo pipefail
cd "$(dirname "$0")/.."

# Everything stays in this checkout; no Prefect server or profile of the user is touched.
export MOORAGE_HOME="$PWD/.moorage"
export PREFECT_HOME="$PWD/.moorage/prefect"
mkdir -p "$PREFECT_HOME"
unset PREFECT_API_URL PREFECT_PROFILE

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "$*"; "$@"; }

retire() {
  status=$?
  if [ -n "${KEEP:-}" ] && [ "$status" -eq 0 ]; then
    printf '\nLeft running. In this shell: export MOORAGE_HOME=%q PREFECT_HOME=%q PATH=%q:$PATH\n' \
      "$MOORAGE_HOME" "$PREFECT_HOME" "$PWD/.venv/bin"
    printf 'and end it with: moorage retire tiny-llama\n'
  else
    run moorage retire tiny-llama || true
  fi
  exit "$status"
}

run python scripts/make_tiny_model.py models/tiny-llama
trap retire EXIT
run moorage deploy deployments/tiny-llama.yaml
run moorage chat tiny-llama "Hello!" --max-tokens 16
run moorage show tiny-llama
