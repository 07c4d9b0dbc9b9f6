# Prepares a container and becomes the engine:
#   sh -c THIS moorage-prepare [--secrets FILE] [--packages 'NAME ...'] [--without-cuda-compat] \
#     -- COMMAND...
# Plain POSIX sh, for images differ. Ends with 90 without an installer, 91 when it fails, 127
# without the engine. moorage/readiness/diagnosis.py knows its lines.
set -u

SECONDS_OF_SILENCE=500 # large wheels through slow mirrors; the load deadline ends what hangs

say() { printf 'moorage-prepare: %s\n' "$1" >&2; }

fail() { # STATUS TEXT
  say "error: $2"
  exit "$1"
}

# The interpreter that runs the engine: the engine itself, or what its first line names.
interpreter_of() {
  case ${1##*/} in python*) command -v "$1" && return ;; esac
  line=$(head -n 1 "$(command -v "$1")" | tr -d '\000' | cut -c 1-200)
  case $line in
    '#!'*python*)
      set -f
      set -- ${line#'#!'}
      set +f
      case $1 in */env) shift ;; esac
      command -v "$1"
      ;;
    *) command -v python3 || command -v python ;;
  esac
}

use() { # NAME VALUE: export it, where it is not set already and there is a value
  eval "[ -n \"\${$1:-}\" ]" || [ -z "$2" ] || export "$1=$2"
}

# Each installer has names of its own for where packages come from; what is set for one counts for
# the other. pip separates links by blanks, uv by commas.
as_uv_knows() {
  use UV_DEFAULT_INDEX "${UV_INDEX_URL:-${PIP_INDEX_URL:-}}"
  use UV_EXTRA_INDEX_URL "${PIP_EXTRA_INDEX_URL:-}"
  use UV_FIND_LINKS "$(printf %s "${PIP_FIND_LINKS:-}" | tr -s ' ' ',')"
  use UV_INSECURE_HOST "${PIP_TRUSTED_HOST:-}"
  use UV_HTTP_TIMEOUT "$SECONDS_OF_SILENCE"
}

as_pip_knows() {
  use PIP_INDEX_URL "${UV_DEFAULT_INDEX:-${UV_INDEX_URL:-}}"
  use PIP_EXTRA_INDEX_URL "${UV_EXTRA_INDEX_URL:-}"
  use PIP_FIND_LINKS "$(printf %s "${UV_FIND_LINKS:-}" | tr ',' ' ')"
  use PIP_TRUSTED_HOST "${UV_INSECURE_HOST:-}"
  [ -n "${PIP_DEFAULT_TIMEOUT:-}" ] || use PIP_TIMEOUT "$SECONDS_OF_SILENCE"
  export PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1
  export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore
}

install() ( # PYTHON PACKAGE...; in a subshell, so that the engine inherits nothing of it
  python=$1
  shift
  if command -v uv >/dev/null; then
    as_uv_knows
    say "uv installs $*"
    uv pip install --no-cache --break-system-packages --python "$python" -- "$@" &&
      { uv pip list --python "$python" || :; } && return
  elif "$python" -m pip --version >/dev/null 2>&1; then
    as_pip_knows
    say "pip installs $*"
    "$python" -m pip install -- "$@" && { "$python" -m pip list || :; } && return
  else
    fail 90 "the image has neither uv nor pip, so nothing can be installed: $*"
  fi
  fail 91 "these packages could not be installed: $*"
)

# An image for a newer CUDA brings libraries of a newer driver. Where only the minor version
# differs the host's own driver does, and consumer cards fail with the others.
remove_cuda_compat() {
  for folder in /usr/local/cuda*/compat; do
    [ -d "$folder" ] || continue
    if rm -rf "$folder" 2>/dev/null; then
      say "removed $folder"
    else
      say "warning: $folder could not be removed"
    fi
  done
  ldconfig 2>/dev/null || say "warning: the cache of shared libraries could not be renewed"
}

packages='' compat=''
while [ "$1" != -- ]; do
  case $1 in
    --secrets) . "$2" && shift ;;
    --packages) packages=$2 && shift ;;
    --without-cuda-compat) compat=1 ;;
    *) fail 2 "unknown word: $1" ;;
  esac
  shift
done
shift

command -v "$1" >/dev/null || fail 127 "$1 is not in the image"
[ -z "$compat" ] || remove_cuda_compat
if [ -n "$packages" ]; then
  python=$(interpreter_of "$1")
  [ -n "$python" ] || fail 90 "the image has no Python, so nothing can be installed: $packages"
  set -f # a star in a version is no file name
  install "$python" $packages || exit $?
  set +f
fi
exec "$@"
