#!/usr/bin/env bash
# What a program built with CUDA does where there is no GPU or no driver: `auto` says so in one sentence and trains on
# the CPU, `cuda` says so and ends with 4. Where there is a GPU this check has nothing to look at, and says that.
# Usage: without_gpu.sh PROGRAM
set -uo pipefail
program=$1
if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; then
  echo "here is a GPU: nothing to check"
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "{}" >"$folder/run.yaml"
tiny=(--config "$folder/run.yaml" --set data.synthetic.train_images=64 --set data.synthetic.test_images=16 --set data.image_size=16
  --set model.encoder.depth=10 --set model.encoder.width=8 --set train.global_batch=32 --set train.max_steps=2 --set evaluate.knn.every_epochs=0)

auto=$("$program" "${tiny[@]}" --set run.device=auto --output "$folder/auto" 2>&1)
code=$?
echo "device auto: exit code $code: $(grep -m 1 'no GPU' <<<"$auto")"
[ "$code" -eq 0 ] && grep -q 'no GPU: .*; computing on the CPU' <<<"$auto" || { echo "$auto" && exit 1; }

cuda=$("$program" "${tiny[@]}" --set run.device=cuda --output "$folder/cuda" 2>&1)
code=$?
echo "device cuda: exit code $code: $cuda"
[ "$code" -eq 4 ] && grep -q 'run.device: cuda, but there is no GPU' <<<"$cuda" || exit 1
