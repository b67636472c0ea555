#!/usr/bin/env bash
# Which lines of the CUDA backend run under the emulator: builds an emulated tree with gcov's counters, runs the tests
# with label `cuda` and prints covered and total lines of each file, then every line that nothing reached.
#   scripts/cuda_coverage.sh [--build DIR] [--jobs N] [--report-only] [CTEST ARGUMENTS...]
# A process that ends by _exit (the watchdog's) or a signal writes no counters: lines that only it ran count as not reached.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/stages.sh
source scripts/stages.sh

build=build/cuda-coverage
jobs=$(core_count)
report_only=no
while [ $# -gt 0 ]; do
  case $1 in
    --build | --jobs) [ $# -ge 2 ] || die "$1 requires a value" ;;&
    --build) build=$2 && shift 2 ;;
    --jobs) jobs=$2 && shift 2 ;;
    --report-only) report_only=yes && shift ;;
    *) break ;;
  esac
done

# Counters of an earlier run would be added to this one's.
clear_counters() { find "$build" -name '*.gcda' -delete; }
tests() {
  # The table is printed even when a test fails.
  OMP_WAIT_POLICY=passive ctest --test-dir "$build" -L '^cuda$' --output-on-failure --parallel "$jobs" "$@" </dev/null || echo "not all tests passed"
}

if [ "$report_only" = no ]; then
  stage "configure" cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS="--coverage -O1 -g0" \
    -DSIMCLR_CUDA=EMULATED -DSIMCLR_BUILD_BENCH=OFF
  stage "build" cmake --build "$build" --parallel "$jobs" --target simclr_cuda_checks
  stage "counters" clear_counters
  stage "tests" tests "$@"
fi
python3 scripts/cuda_coverage/report.py "$build"
