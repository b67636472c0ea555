# shellcheck shell=bash
# Sourced by the scripts of this folder and by .ci/run: names each stage, runs it, prints its seconds.
# Not a program of its own. Callers have `set -euo pipefail`.

# Whole seconds since some moment, or with the milliseconds that stage times are printed from.
now_ms() { echo $(($(date +%s%N) / 1000000)); }
seconds_since() { awk -v ms="$(($(now_ms) - $1))" 'BEGIN {printf "%.1f", ms / 1000}'; }

die() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# stage NAME COMMAND...: output goes where the caller's goes; the script ends with the command's code when it fails.
stage() {
  local name=$1 start code=0
  shift
  echo "== $name"
  start=$(now_ms)
  "$@" || code=$?
  if [ "$code" -ne 0 ]; then
    echo "== $name: FAILED with code $code after $(seconds_since "$start") s ($*)" >&2
    exit "$code"
  fi
  echo "== $name: $(seconds_since "$start") s"
}

# logged FILE COMMAND...: output goes to FILE; its end is shown when the command fails.
logged() {
  local log=$1 code=0
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 </dev/null || code=$?
  if [ "$code" -ne 0 ]; then
    tail -n 25 "$log" >&2
    echo "$(basename "$0"): failed with code $code: $*; the whole output is in $log" >&2
  fi
  return "$code"
}

core_count() { nproc 2>/dev/null || echo 1; }
