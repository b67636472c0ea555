#!/usr/bin/env bash
# Fuzzes each parser of foreign bytes: runs the targets of tests/fuzz for some minutes each under libFuzzer (Clang) with
# AddressSanitizer and UndefinedBehaviorSanitizer. New inputs are kept in build/fuzz/corpus. An input that crashes is
# named; add it to tests/fuzz/corpus once the bug is fixed.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/fuzz.sh [MINUTES [TARGET...]]
  MINUTES  for each target, default 1
  TARGET   default: all
needs clang++ with its runtime libraries and libomp (Debian: clang libclang-rt-14-dev libomp-dev)
TEXT
  echo "targets: ${known[*]}"
}

known=(tests/fuzz/*_fuzz.cpp)
known=("${known[@]#tests/fuzz/}")
known=("${known[@]%_fuzz.cpp}")
[[ "${1:-}" != -* ]] || { usage && exit 2; }
minutes=${1:-1}
[[ "$minutes" =~ ^[1-9][0-9]*$ ]] || { echo "fuzz.sh: $minutes is not a number of minutes; see --help" >&2 && exit 2; }
targets=("${@:2}")
[ "${#targets[@]}" -gt 0 ] || targets=("${known[@]}")
for target in "${targets[@]}"; do
  [[ " ${known[*]} " == *" $target "* ]] || { echo "fuzz.sh: $target is not a target; the targets are: ${known[*]}" >&2 && exit 2; }
done
command -v clang++ >/dev/null || { usage && exit 1; }

build=build/fuzz
cmake -S . -B $build -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS="-O1 -fsanitize=fuzzer-no-link" \
  -DSIMCLR_SANITIZE=address,undefined -DSIMCLR_FUZZ=ON -DSIMCLR_CUDA=OFF -DSIMCLR_BUILD_BENCH=OFF >$build.log 2>&1 || { cat $build.log && exit 1; }
cmake --build $build --target "${targets[@]/%/_fuzz}" >$build.log 2>&1 || { tail -40 $build.log && exit 1; }

failed=0
for target in "${targets[@]}"; do
  mkdir -p "$build/corpus/$target" "$build/found"
  echo "== $target, $minutes minutes"
  # A third of a gibibyte: memory taken by a header's word is a fault.
  if "$build/${target}_fuzz" "$build/corpus/$target" "tests/fuzz/corpus/$target" -max_total_time=$((minutes * 60)) -rss_limit_mb=512 \
    -malloc_limit_mb=350 -timeout=10 -max_len=65536 -artifact_prefix="$build/found/$target-" -print_final_stats=1 >"$build/$target.log" 2>&1; then
    grep -E '^stat::(number_of_executed_units|average_exec_per_sec|peak_rss_mb)' "$build/$target.log"
  else
    failed=1
    tail -30 "$build/$target.log"
    echo "== $target: FAILED; the input is in $build/found"
  fi
done
exit $failed
