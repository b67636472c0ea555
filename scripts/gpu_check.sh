#!/usr/bin/env bash
# Checks this program on a machine with a GPU, in at most eight minutes and without network, compiler or
# mpirun: tests against the real libraries, trainings in every precision, speed, compute-sanitizer. One process, one
# GPU. docs/testing.md says how to use it; the exit code is 0 only when every row of the table passed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/stages.sh
source "$root/scripts/stages.sh"
# shellcheck source=scripts/gpu_check/rows.sh
source "$root/scripts/gpu_check/rows.sh"
# shellcheck source=scripts/gpu_check/libraries.sh
source "$root/scripts/gpu_check/libraries.sh"
# shellcheck source=scripts/gpu_check/pack.sh
source "$root/scripts/gpu_check/pack.sh"
# shellcheck source=scripts/gpu_check/trainings.sh
source "$root/scripts/gpu_check/trainings.sh"

usage() {
  cat <<'TEXT'
usage: scripts/gpu_check.sh [--build DIR] [--output DIR] [--cifar DIR] [--short]
       scripts/gpu_check.sh [--build DIR] --pack DIR
  --build DIR   the build, or a folder that --pack made (default: build/cuda-release, or the packed folder itself)
  --output DIR  a new folder for logs, table, runs and the GPU's properties (default: runs/gpu_check, numbered)
  --cifar DIR   CIFAR-10's binary files (data_batch_1.bin ...); otherwise ResNet-18 trains on synthetic images
  --short       tiny trainings and two test binaries: tries this script, says little about the GPU
  --pack DIR    copy what the check needs from the build into DIR, at most 64 MiB, to be carried to another machine
TEXT
}

build=$root/build/cuda-release output="" cifar="" short=0 pack_folder=""
[ ! -x "$root/$program" ] || build=$root
while [ $# -gt 0 ]; do
  case $1 in
    --build | --output | --cifar | --pack)
      [ $# -ge 2 ] || die "$1 requires a folder; see --help"
      case $1 in
        --build) build=$(realpath -m -- "$2") ;;
        --output) output=$(realpath -m -- "$2") ;;
        --cifar) cifar=$(realpath -m -- "$2") ;;
        --pack) pack_folder=$(realpath -m -- "$2") ;;
      esac
      shift
      ;;
    --short) short=1 ;;
    --help | -h) usage && exit 0 ;;
    *) die "unknown argument $1; see --help" ;;
  esac
  shift
done

new_output_folder() {
  local folder=$root/runs/gpu_check number=1
  while [ -e "$folder" ]; do
    number=$((number + 1))
    folder=$root/runs/gpu_check-$number
  done
  echo "$folder"
}

if [ -n "$pack_folder" ]; then
  pack "$pack_folder"
  exit 0
fi

begin=$(now_ms)
[ -n "$output" ] || output=$(new_output_folder)
[ ! -e "$output" ] || [ -z "$(ls -A "$output")" ] || die "$output is not empty; name a new folder with --output"
is_new=$([ -e "$output" ] && echo 0 || echo 1)
mkdir -p "$output/logs" "$output/runs"
unpack_libraries
[ ! -d "$build/golden" ] || export SIMCLR_GOLDEN=$build/golden # float64 reference values, without the sources
library_path=""
say_missing >"$output/missing.txt"
if [ -s "$output/missing.txt" ]; then
  sed "s|^|gpu_check.sh: |" "$output/missing.txt" >&2
  rm -rf "$output/missing.txt" "$output/dry_run" "$output/logs" "$output/runs"
  [ "$is_new" = 0 ] || rmdir "$output"
  exit 1
fi
rm -rf "$output/missing.txt" "$output/dry_run"
emulated=0
! is_emulated || emulated=1
if [ "$emulated" = 1 ]; then
  echo "THIS IS THE EMULATOR, NOT A GPU: it tests this script only"
fi

# has_file WHAT FILE: false, with a row, when the build has no such file.
has_file() {
  [ -x "$build/$2" ] && return
  add_row absent 0.0 "$1" "no $2 in $build"
  return 1
}

gpu_facts() {
  set_deadline 30
  if command -v nvidia-smi >/dev/null && timeout 20 nvidia-smi -q >"$output/nvidia-smi.txt" 2>&1; then
    add_row passed 0.0 "GPU" "$(timeout 20 nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | sed -n 1p)"
  else
    add_row absent 0.0 "nvidia-smi" "not on this machine, or it fails; the program finds a GPU"
  fi
  if [ "$emulated" = 1 ]; then
    add_row absent 0.0 "properties of the GPU from cuDNN" "the emulator has none"
  elif has_file "properties of the GPU from cuDNN" "$device_tool"; then
    limited 30 "$output/logs/device_json.log" "$build/$device_tool" "$output/device.json"
    if [ -z "$run_reason" ] && [ -s "$output/device.json" ]; then
      add_row passed "$run_s" "properties of the GPU from cuDNN" "$output/device.json"
    else
      add_row FAILED "$run_s" "properties of the GPU from cuDNN" "${run_reason:-nothing was written}"
    fi
  fi
}

tests() {
  local test left_out=""
  set_deadline 180
  for test in "${gpu_tests[@]}"; do
    if [ "$short" = 1 ] && [[ ! $test =~ ^(elementwise|squared_norm)_ ]]; then
      left_out+=" $test"
    else
      test_row 60 "$test" "$build/$test"
    fi
  done
  for test in "${library_tests[@]}"; do
    if [ "$emulated" = 1 ] || [ "$short" = 1 ]; then
      left_out+=" $test"
    elif has_file "$test" "$test"; then
      test_row 60 "$test" "$build/$test"
    fi
  done
  [ -z "$left_out" ] || add_row absent 0.0 "other tests" "left out by --short or on the emulator:$left_out"
}

loss_times() {
  local log=$output/logs/loss.log times
  set_deadline 45
  [ "$short" = 0 ] || { add_row absent 0.0 "times of the loss" "left out by --short" && return; }
  has_file "times of the loss" "$loss_bench" || return 0
  limited 45 "$log" "$build/$loss_bench" --benchmark_min_time=0.2
  # "streaming B:512 S:8 81.2us", one for each algorithm and size
  times=$(sed -n 's|^\([a-z0-9_]*\)_on_gpu/\([^/]*\)/\([^/ ]*\).*call_s=\([^ ]*\).*|\1 \2 \3 \4|p' "$log" | paste -s -d ,)
  if [ -n "$run_reason" ] || [ -z "$times" ]; then
    add_row FAILED "$run_s" "times of the loss" "${run_reason:-no times in $log}"
  else
    add_row passed "$run_s" "times of the loss" "$times"
  fi
}

# Small tests, since it slows kernels down a hundredfold.
sanitizer() {
  local test program_path
  set_deadline 90
  program_path=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
  if [ "$emulated" = 1 ] || [ -z "$program_path" ]; then
    add_row absent 0.0 "compute-sanitizer" "not on this machine$([ "$emulated" = 0 ] || echo ", and not for the emulator")"
    return
  fi
  for test in squared_norm_cuda_test pool_cuda_test; do
    test_row 30 "$test, memcheck" "$program_path" --tool memcheck --error-exitcode 9 "$build/$test"
  done
  for test in squared_norm_cuda_test l2_normalize_cuda_test; do # kernels with shared memory
    test_row 30 "$test, racecheck" "$program_path" --tool racecheck --error-exitcode 9 "$build/$test"
  done
}

# Also when this script is interrupted: the results so far are kept, and it does not count as a pass.
finish() {
  local code=$?
  trap - EXIT
  [ "$is_complete" = 1 ] || add_row FAILED 0.0 "the check itself" "it broke off with code $code"
  print_table
  [ "$failures" -eq 0 ] || exit 1
}

is_complete=0
trap finish EXIT
trap 'exit 130' INT TERM
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
gpu_facts
tests
set_deadline "$([ "$short" = 1 ] && echo 300 || echo 120)"
trainings
loss_times
sanitizer
is_complete=1
