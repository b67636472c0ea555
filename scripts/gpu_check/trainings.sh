# shellcheck shell=bash
# Sourced by scripts/gpu_check.sh: short trainings in every precision, in eight shards and in one, what they say about
# speed, and whether a second run of the same seed has the same bits.
# shellcheck disable=SC2154  # variables are shared with the script that sources this

declare -A run_speed run_hash run_first_loss

# The values of one field of metrics.jsonl, one a line.
metric() { sed -n "s/.*\"$1\":\([-+.0-9eE]*\).*/\1/p" "$2"; }

median_of_last_half() {
  awk '{v[NR] = $1} END {for (i = int(NR / 2) + 1; i <= NR; ++i) print v[i]}' | sort -g |
    awk '{v[NR] = $1} END {print NR ? v[int((NR + 1) / 2)] : 0}'
}

# train_row NAME WHAT CONFIG SETTINGS...: one training; fills run_speed, run_hash and run_first_loss of NAME. Of two
# settings of one key the later one counts. With learns=1, k-NN has to rise by 0.2.
train_row() {
  local name=$1 what=$2 config=$3 folder log setting key words=() first last before after note batch
  local -A settings=()
  shift 3
  folder=$output/runs/$name log=$output/logs/$name.log
  for setting in "$@"; do settings[${setting%%=*}]=${setting#*=}; done
  for key in "${!settings[@]}"; do words+=(--set "$key=${settings[$key]}"); done
  limited 40 "$log" "$build/$program" --config "$root/configs/$config" --output "$folder" --resume none "${words[@]}"
  rm -rf "$folder/checkpoints" # their hash is in the log, and they are large
  if [ -n "$run_reason" ]; then
    [ ! -s "$folder/metrics.jsonl" ] || run_reason+=" ($(metric loss "$folder/metrics.jsonl" | wc -l) steps done)"
    add_row FAILED "$run_s" "$what" "$run_reason: $(sed -n '$p' "$log")"
    return
  fi
  if [ ! -s "$folder/metrics.jsonl" ] || [ ! -s "$folder/config.yaml" ]; then
    add_row FAILED "$run_s" "$what" "no metrics.jsonl or config.yaml in $folder"
    return
  fi
  first=$(metric loss "$folder/metrics.jsonl" | sed -n 1p) last=$(metric loss "$folder/metrics.jsonl" | sed -n '$p')
  before=$(metric knn_top1 "$folder/metrics.jsonl" | sed -n 1p) after=$(metric knn_top1 "$folder/metrics.jsonl" | sed -n '$p')
  batch=$(sed -n 's/^ *global_batch: \([0-9]*\).*/\1/p' "$folder/config.yaml")
  run_speed[$name]=$(metric images_per_s "$folder/metrics.jsonl" | median_of_last_half)
  run_hash[$name]=$(sed -n 's/^weights sha256: //p' "$log" | sed -n '$p')
  run_first_loss[$name]=$first
  note=$(awk -v s="${run_speed[$name]}" -v b="$batch" -v f="$first" -v l="$last" 'BEGIN {
    printf "%.0f images/s, %.2f ms a step, loss %.4f to %.4f", s, (s > 0 ? 1000 * b / s : 0), f, l}')
  [ -z "$after" ] || note+=", k-NN $before to $after"
  if [ -z "${run_hash[$name]}" ] || [ -z "$first" ]; then
    add_row FAILED "$run_s" "$what" "no weights hash or no loss, see $log"
  elif [ "${learns:-0}" = 1 ] && ! awk -v a="$after" -v b="$before" 'BEGIN {exit !(a > b + 0.2)}'; then
    add_row FAILED "$run_s" "$what" "it does not learn: $note"
  else
    add_row passed "$run_s" "$what" "$note"
  fi
}

# same_bits_row NAME WHAT CONFIG SETTINGS...: NAME is trained again.
same_bits_row() {
  local name=$1 what=$2
  shift 2
  if [ -z "${run_hash[$name]:-}" ]; then
    add_row FAILED 0.0 "$what: the same bits again" "the first run has no weights hash"
    return
  fi
  train_row "${name}_again" "$what, again" "$@"
  if [ "${run_hash[$name]}" = "${run_hash[${name}_again]:-}" ]; then
    add_row passed 0.0 "$what: the same bits again" "weights sha256 ${run_hash[$name]:0:16}"
  else
    add_row FAILED 0.0 "$what: the same bits again" "weights ${run_hash[$name]:0:16} and ${run_hash[${name}_again]:0:16}"
  fi
}

# near_cpu_row PRECISION LIMIT: the loss before the first update, of the same seed, against that of the CPU.
near_cpu_row() {
  local gpu=${run_first_loss[quickstart_$1_8]:-} cpu=${run_first_loss[quickstart_cpu]:-} what="quickstart $1: first loss against the CPU"
  if [ -z "$gpu" ] || [ -z "$cpu" ]; then
    add_row FAILED 0.0 "$what" "one of the two runs has no loss"
  elif awk -v g="$gpu" -v c="$cpu" -v l="$2" 'BEGIN {d = (g - c) / c; exit !(d < l && d > -l)}'; then
    add_row passed 0.0 "$what" "$gpu and $cpu, within $2"
  else
    add_row FAILED 0.0 "$what" "$gpu and $cpu, not within $2"
  fi
}

write_speed() {
  local config precision many one
  {
    printf '%-24s %14s %14s %18s\n' "images/s" "S = 8" "S = 1" "cost of S = 8"
    for config in quickstart cifar10; do
      for precision in fp32 tf32 bf16; do
        many=${run_speed[${config}_${precision}_8]:-0} one=${run_speed[${config}_${precision}_1]:-0}
        awk -v name="$config $precision" -v m="$many" -v o="$one" 'BEGIN {
          printf "%-24s %14s %14s %18s\n", name, (m > 0 ? sprintf("%.0f", m) : "-"), (o > 0 ? sprintf("%.0f", o) : "-"), (m > 0 && o > 0 ? sprintf("%.1f %% of time", 100 * (o / m - 1)) : "-")}'
      done
    done
  } >"$output/speed.txt"
}

trainings() {
  local quick=(run.device=cuda run.seed=1) cifar_settings=(run.device=cuda checkpoint.every_epochs=0 schedule.warmup_epochs=0)
  local long=() tiny=() precision steps=40 images
  if [ -n "$cifar" ]; then
    cifar_settings+=("data.path=$cifar") images="CIFAR-10"
  else
    cifar_settings+=(data.format=synthetic) images="synthetic images"
  fi
  if [ "$short" = 1 ]; then
    tiny=(data.image_size=16 model.encoder.width=8 train.global_batch=16 evaluate.knn.k=5) steps=3
    quick+=("${tiny[@]}" data.synthetic.train_images=64 data.synthetic.test_images=32 train.epochs=1)
    cifar_settings+=("${tiny[@]}")
    [ -n "$cifar" ] || cifar_settings+=(data.synthetic.train_images=64 data.synthetic.test_images=32)
    long=(evaluate.knn.every_epochs=1)
  else
    quick+=(train.epochs=4)
    long=(train.epochs=14)
  fi
  cifar_settings+=("train.max_steps=$steps")

  # What says most comes first, since time is short. The whole quickstart once (k-NN rises), four epochs otherwise.
  learns=$((1 - short)) train_row quickstart_fp32_8 "quickstart fp32 S=8, whole" quickstart.yaml "${quick[@]}" "${long[@]}"
  same_bits_row quickstart_fp32_8 "quickstart fp32 S=8" quickstart.yaml "${quick[@]}" "${long[@]}"
  for precision in tf32 bf16; do
    train_row "quickstart_${precision}_8" "quickstart $precision S=8" quickstart.yaml "${quick[@]}" run.precision=$precision
    same_bits_row "quickstart_${precision}_8" "quickstart $precision S=8" quickstart.yaml "${quick[@]}" run.precision=$precision
  done
  train_row quickstart_cpu "quickstart on the CPU, one step" quickstart.yaml "${quick[@]}" run.device=cpu train.max_steps=1 evaluate.knn.every_epochs=0
  near_cpu_row fp32 1e-5
  near_cpu_row tf32 1e-3
  near_cpu_row bf16 2e-2
  for precision in bf16 tf32 fp32; do
    train_row "cifar10_${precision}_8" "ResNet-18, $images, $precision S=8" cifar10.yaml "${cifar_settings[@]}" run.precision=$precision \
      evaluate.knn.every_epochs=1000
    train_row "cifar10_${precision}_1" "ResNet-18, $images, $precision S=1" cifar10.yaml "${cifar_settings[@]}" run.precision=$precision \
      evaluate.knn.every_epochs=0 train.shards=1
  done
  same_bits_row cifar10_bf16_8 "ResNet-18 bf16 S=8" cifar10.yaml "${cifar_settings[@]}" run.precision=bf16 evaluate.knn.every_epochs=1000
  for precision in fp32 tf32 bf16; do
    train_row "quickstart_${precision}_1" "quickstart $precision S=1" quickstart.yaml "${quick[@]}" run.precision=$precision train.shards=1
  done
  write_speed
}
