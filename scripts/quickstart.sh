#!/usr/bin/env bash
# From a fresh clone to a trained encoder: installs the packages, builds the program, trains configs/quickstart.yaml on
# two ranks and prints the k-NN accuracy before and after. Arguments go to simclr_train, e.g. --set run.seed=2.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/stages.sh
source scripts/stages.sh

# A build folder of its own, so that the folders of the presets keep what their users configured.
build=build/quickstart
begin=$(now_ms)

# Open MPI refuses to run as root unless both are set; containers have no other user.
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

configure() {
  logged "$build/configure.log" cmake --preset cpu-release -B "$build" -DSIMCLR_BUILD_TESTS=OFF -DSIMCLR_BUILD_BENCH=OFF
}

build_program() {
  echo "compiling on $(core_count) cores, log: $build/build.log"
  logged "$build/build.log" cmake --build "$build" --target simclr_train
}

# A new numbered folder each time: an older run is neither continued nor overwritten.
new_run_folder() {
  local run=runs/quickstart number=1
  while [ -e "$run" ]; do
    number=$((number + 1))
    run=runs/quickstart-$number
  done
  echo "$run"
}

# --oversubscribe: mpirun counts cores in its own way (no hyper-threads); --bind-to none: a rank may use all its threads.
train() {
  mpirun -np "$ranks" --bind-to none --oversubscribe \
    "$build/simclr_train" --config configs/quickstart.yaml --output "$run" --resume none "$@" </dev/null
}

# "BEFORE AFTER": the k-NN top-1 of the first and the last evaluation in metrics.jsonl, shares in [0, 1].
knn_before_and_after() {
  sed -n 's/.*"knn_top1": *\([-+.0-9eE]*\).*/\1/p' "$run/metrics.jsonl" |
    awk 'NR == 1 {first = $1} {last = $1} END {if (NR > 1) printf "%.4f %.4f\n", first, last}'
}

stage "packages" scripts/install_deps.sh
stage "configure" configure
stage "build" build_program

cores=$(core_count)
ranks=$((cores < 2 ? 1 : 2))
run=$(new_run_folder)
stage "train, $ranks ranks, into $run" train "$@"

[ -s "$run/metrics.jsonl" ] || die "the training wrote no $run/metrics.jsonl; see $run/train.log"
read -r before after <<<"$(knn_before_and_after)"
[ -n "$after" ] || die "fewer than two k-NN accuracies (knn_top1) in $run/metrics.jsonl; is evaluate.knn.every_epochs 0?"

cat <<TEXT

k-NN accuracy on test images, from the encoder's outputs alone
  before training  $before
  after            $after
in all $(seconds_since "$begin") s

Results: $run
  report.html    the run on one page, for a browser
  metrics.jsonl  one line a step        checkpoints/  the encoder, safetensors
What next:
  the same bits on one rank   $build/simclr_train --config configs/quickstart.yaml --output runs/one-rank
                              and compare: $build/simclr_train info $run
  your own settings           configs/reference.yaml lists every key, --set section.key=value changes one
  the tests                   scripts/test.sh
TEXT
