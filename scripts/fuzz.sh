#!/usr/bin/env bash
# Looks for inputs that crash a parser of foreign bytes: each target of tests/fuzz for some minutes, under
# AddressSanitizer and UndefinedBehaviorSanitizer, by Clang's libFuzzer. New inputs are kept in build/fuzz/corpus; one that
# crashes is named, and belongs into tests/fuzz/corpus once the fault is mended.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/fuzz.sh [MINUTES [TARGET...]]
  MINUTES  for each target, 1 by default
  TARGET   config, checkpoint, ...: those of tests/fuzz; all by default
needs clang++ with its runtime libraries and libomp (Debian: clang libclang-rt-14-dev libomp-dev)
TEXT
}

[[ "${1:-}" != -* ]] || { usage && exit 2; }
minutes=${1:-1}
targets=("${@:2}")
[ "${#targets[@]}" -gt 0 ] || mapfile -t targets < <(cd tests/fuzz && ls ./*_fuzz.cpp | sed 's|^\./||; s|_fuzz\.cpp$||')
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
