#!/usr/bin/env bash
# Installs the packages, builds everything (preset cpu-release) and runs all tests. Arguments go to ctest,
# e.g. -R infonce, -L unit, --rerun-failed. docs/testing.md says what the tests are.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/stages.sh
source scripts/stages.sh

# Where CI runs, a warning of the compiler is an error; another compiler version may warn of more, so not elsewhere.
configure() {
  local strict=OFF
  [ "${CI:-}" != true ] || strict=ON
  cmake --preset cpu-release -DSIMCLR_BUILD_TESTS=ON -DSIMCLR_BUILD_BENCH=ON -DCMAKE_COMPILE_WARNING_AS_ERROR=$strict
}

# Real images that are not part of the repository; where the folder is next to the clone, its tests run too.
if [ -z "${SIMCLR_SHARED:-}" ] && [ -d ../shared ]; then
  SIMCLR_SHARED=$(cd ../shared && pwd)
  export SIMCLR_SHARED
fi
echo "SIMCLR_SHARED: ${SIMCLR_SHARED:-not set, the tests on real images are skipped}"

stage "packages" scripts/install_deps.sh
stage "configure" configure
stage "build" cmake --build --preset cpu-release
trap 'python3 scripts/skipped_tests.py build/cpu-release' EXIT  # also when a test fails
stage "test" ctest --preset cpu-release --parallel "$(core_count)" "$@"
