#!/usr/bin/env bash
# Plants the usual mistakes of distributed contrastive losses into this program's own loss, four ranks as threads, and
# prints what each does to the gradient of an encoder's weights, as the table of docs/checking_a_loss.md.
# Usage: wrong_schemes.sh [BUILD_FOLDER]; default: build/cpu-release, where wrong_schemes_test is built if need be.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/cpu-release}

[ -f "$build/CMakeCache.txt" ] || cmake --preset cpu-release -B "$build" >&2
cmake --build "$build" --target wrong_schemes_test >&2

# "own slice only   1 - cosine  3.80e-02 WRONG   length 0.858000 WRONG   loss off by +1.0e-08"; a name may come twice.
echo "| scheme | 1 - cosine | length | loss off by |"
echo "|---|---|---|---|"
OMP_WAIT_POLICY=passive "$build/wrong_schemes_test" --gtest_filter='WrongSchemes.*' |
  sed -nE 's/^(.*[^ ]) +1 - cosine +([^ ]+) [a-zA-Z]+ +length ([^ ]+) [a-zA-Z]+ +loss off by ([^ ]+)$/| \1 | \2 | \3 | \4 |/p' |
  awk '!seen[$0]++'
