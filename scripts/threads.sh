#!/usr/bin/env bash
# Looks for data races between the threads of one process - trainer, loader, watchdog, the writer of checkpoints, the log -
# with ThreadSanitizer: the tests of these parts, then a training of a tiny network in one process, stopped, and resumed on
# two ranks. OpenMP is left at one thread: GCC's libgomp is not built for ThreadSanitizer, which would report each of its
# barriers; between OpenMP's threads nothing is shared but what a loop hands out.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -eq 0 ] || { echo "usage: scripts/threads.sh    builds in build/cpu-tsan; about a minute once that is done" >&2 && exit 2; }
build=build/cpu-tsan
run=$build/run
tests=(base_test comm_test view_loader_test checkpoint_test thread_collectives_test train_test)

cmake --preset cpu-tsan >/dev/null
cmake --build --preset cpu-tsan --target simclr_train "${tests[@]}"

export OMP_THREAD_LIMIT=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/scripts/threads.suppressions"
# Where the kernel scatters addresses more widely than this ThreadSanitizer knows, it cannot start without setarch.
setarch=(setarch "$(uname -m)" -R)
"${setarch[@]}" true 2>/dev/null || setarch=()

for name in "${tests[@]}"; do
  "${setarch[@]}" "$build/$name" --gtest_brief=1
done

words=(--config configs/reference.yaml --output "$run")
for pair in run.threads=1 data.synthetic.train_images=160 data.synthetic.test_images=48 data.image_size=16 data.workers=2 model.encoder.depth=10 \
  model.encoder.width=8 train.global_batch=32 train.epochs=4 evaluate.knn.every_epochs=1 checkpoint.every_steps=1 checkpoint.keep_best=true; do
  words+=(--set "$pair")
done
rm -rf "$run"

# train STEP LAUNCHER...: from the last checkpoint to that step.
train() {
  local step=$1 code=0
  shift
  "${setarch[@]}" timeout 300 "$@" $build/simclr_train "${words[@]}" --set "train.stop_at_step=$step" || code=$?
  [ "$code" -eq 75 ] || { echo "threads.sh: the training up to step $step ended with $code, not 75" >&2 && exit 1; }
}
train 6
train 12 mpirun --oversubscribe --bind-to none -np 2
echo "threads.sh: no race found"
