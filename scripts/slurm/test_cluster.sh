#!/usr/bin/env bash
# Holds scripts/slurm against a real Slurm: brings one up on this machine with two virtual nodes, submits trainings,
# preempts, cancels and breaks them, and compares the weights with those of an uninterrupted one. Two to three minutes.
# shellcheck disable=SC2317  # most functions are called by check and wait_until
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=scripts/stages.sh
source "$root/scripts/stages.sh"
# shellcheck source=scripts/slurm/cluster.sh
source "$root/scripts/slurm/cluster.sh"

usage() {
  cat <<'TEXT'
usage: scripts/slurm/test_cluster.sh [--install] [--keep] [PROGRAM]
  --install  install Debian's slurm-wlm and munge first; exit code 77 when that cannot be done
  --keep     leave the folder with all logs in place
  PROGRAM    simclr_train (default: build/cpu-release/simclr_train)
Root only: the daemons, and a host name of its own for each virtual node. Everything is in one folder below /tmp.
TEXT
}

install=0 keep=0 program=$root/build/cpu-release/simclr_train
while [ $# -gt 0 ]; do
  case $1 in
    --install) install=1 ;;
    --keep) keep=1 ;;
    --help | -h) usage && exit 0 ;;
    -*) usage >&2 && exit 2 ;;
    *) program=$(realpath -- "$1") ;;
  esac
  shift
done
[ "$(id -u)" -eq 0 ] || die "requires root; see --help"
[ -x "$program" ] || die "$program does not exist; build it first"
if [ "$install" = 1 ] && ! command -v slurmd >/dev/null; then
  apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
  { timeout 120 "${apt[@]}" update; timeout 240 "${apt[@]}" install -y --no-install-recommends slurm-wlm munge; } >/dev/null 2>&1 </dev/null ||
    { echo "test_cluster: apt-get could not install slurm-wlm and munge" >&2 && exit 77; }
fi
for tool in slurmctld slurmd munged mpirun unshare python3; do
  command -v "$tool" >/dev/null || die "$tool is not installed; --install installs slurm-wlm and munge"
done

folder=$(mktemp -d /tmp/simclr_slurm.XXXXXX)
chmod 755 "$folder"
passed=0 result=1
clean_up() {
  trap '' INT TERM
  stop_cluster "$folder" || result=1
  if [ "$keep" = 1 ]; then
    echo "logs and runs: $folder"
  else
    rm -rf "$folder"
  fi
  [ "$result" -ne 0 ] || echo "Slurm test: $passed checks passed in $(seconds_since "$begin") s"
  exit "$result"
}
begin=$(now_ms)
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

fail() {
  echo "FAILED: $*"
  tail -n 40 "$folder"/*.out 2>/dev/null || true
  tail -n 20 "$folder/log/slurmctld" 2>/dev/null || true
  exit 1
}
check() {
  local text=$1
  shift
  "$@" || fail "$text"
  passed=$((passed + 1))
  echo "ok: $text"
}
# wait_until SECONDS WHAT COMMAND...
wait_until() {
  local limit=$1 what=$2 start
  shift 2
  start=$(now_ms)
  until "$@"; do
    [ $(($(now_ms) - start)) -lt $((limit * 1000)) ] || fail "$what: not within $limit s"
    sleep 0.1
  done
}

fact() { timeout 10 scontrol show job --oneliner "$1" | grep -oE "(^| )$2=[^ ]*" | head -n 1 | cut -d= -f2-; }
in_state() { [[ " $2 " == *" $(fact "$1" JobState) "* ]]; }
restarts_are() { [ "$(fact "$1" Restarts)" = "$2" ]; }
submit() { timeout 20 sbatch --parsable --chdir="$folder" "$@"; }
has_steps() { grep -qs '"loss"' "$folder/$1/metrics.jsonl"; }
status_is() { grep -qs "\"state\": \"$2\"" "$folder/$1/status.json"; }
says() { grep -qsE -- "$2" "$folder/$1.out"; }
ranks_of() { pgrep -f -- "^$program .*--output $folder/$1( |\$)"; }
# The training is held in its first steps until whatever is to happen to it has begun: this machine may be fast.
hold() {
  wait_until 90 "the first step" has_steps "$1"
  ranks_of "$1" | xargs kill -STOP
}
let_go() { ranks_of "$1" | xargs -r kill -CONT 2>/dev/null || true; }  # one that was killed may just have gone
weights() { "$program" info "$(find "$folder/$1/checkpoints" -name 'step_*.safetensors' | sort | tail -n 1)" | grep '^weights sha256: '; }
same_weights() { [ "$(weights "$1")" = "$(weights straight)" ]; }
# A requeued job waits for two minutes in Slurm's queue, or until it is released. Its first start has to be over on all
# nodes by then: PMIx's socket has the step's number, which is the same again.
start_again() {
  [ -z "$(find "$folder/spool" -name 'stepd.slurm.pmix.*')" ] || return 1
  timeout 10 scontrol update jobid="$1" StartTime=now >/dev/null 2>&1 || true
  in_state "$1" "RUNNING COMPLETED FAILED"
}
# train NAME OPTIONS... -- ARGUMENTS...: a training named NAME into the folder NAME, by train_cpu.sbatch or $script; prints
# the job's number.
train() {
  local name=$1 options=()
  shift
  while [ "$1" != -- ]; do options+=("$1") && shift; done
  shift
  submit --job-name="$name" --output="$folder/$name.out" --cpus-per-task=1 --time=10 "${options[@]}" "$root/scripts/slurm/${script:-train_cpu.sbatch}" \
    --config "$folder/tiny.yaml" --output "$folder/$name" "$@"
}
high() { submit --job-name=high --partition=high --nodes=2 --ntasks-per-node=2 --output=/dev/null --wrap "sleep 1"; }

cat >"$folder/tiny.yaml" <<'YAML'
run: {seed: 3, threads: 1}
data:
  format: synthetic
  image_size: 16
  synthetic: {train_images: 160, test_images: 48}
model:
  encoder: {depth: 10, width: 8}
  projector: {hidden: 24, output: 16}
loss: {temperature: 0.2}
optimizer: {base_lr: 0.05, lr_scaling: none}
train: {global_batch: 32, shards: 8, epochs: 60, timeout_s: 60}
checkpoint: {every_epochs: 20}
evaluate:
  knn: {every_epochs: 0}
YAML

export SIMCLR_ROOT=$root SIMCLR_PROGRAM=$program
# Root starts mpirun here; the nodes are one machine, which Open MPI is to reach over its loopback; cores are shared.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1 OMP_WAIT_POLICY=passive

start_cluster "$folder" 2 || fail "the cluster did not come up"
echo "Slurm $(slurmctld -V | cut -d' ' -f2), two nodes, up after $(seconds_since "$begin") s"
plugins=$(timeout 10 srun --mpi=list 2>&1 | tr -s '[:space:]' ' ')
echo "srun --mpi=list: $plugins"

on_one=(--nodes=1 --ntasks-per-node=2) on_two=(--nodes=2 --ntasks-per-node=1)

launchers=(srun mpirun)
[[ "$plugins" == *pmix* ]] || launchers=(mpirun)

echo "-- an uninterrupted training, by the script for GPU nodes (those of this cluster are names only)"
job=$(script=train.sbatch train straight "${on_one[@]}" --gpus-per-node=2 --)
wait_until 150 "the training finishes" in_state "$job" "COMPLETED FAILED"
echo "used: $(grep -oE 'srun --mpi=[a-z0-9_]+|mpirun ' "$folder/straight.out" | head -n 1)"
check "it finishes with 0, without a restart" [ "$(fact "$job" JobState)/$(fact "$job" ExitCode)/$(fact "$job" Restarts)" = COMPLETED/0:0/0 ]
check "status.json says finished" status_is straight finished
check "Slurm has given it two GPUs of a node" says straight "start 0 on n[12] with 2 GPUs per node"
check "two ranks have trained" grep -q '"ranks": 2' "$folder/straight/status.json"

for launcher in "${launchers[@]}"; do
  where=("${on_two[@]}")
  [ "$launcher" = srun ] || where=("${on_one[@]}")
  echo "-- preempted with a warning, $launcher on ${where[0]#--nodes=} node(s)"
  name=preempted_$launcher
  job=$(SIMCLR_LAUNCHER=$launcher train "$name" "${where[@]}" --)
  hold "$name"
  other=$(high)
  wait_until 60 "the warning arrives" says "$name" "SIGUSR1: asking"
  let_go "$name"
  wait_until 60 "it is requeued" says "$name" "requeued$"
  check "$launcher: the ranks stop with a checkpoint, and the job asks for its restart" status_is "$name" stopped
  wait_until 60 "the job with the higher priority runs" in_state "$other" "COMPLETED"
  wait_until 60 "it starts again" start_again "$job"
  wait_until 150 "it finishes" in_state "$job" "COMPLETED FAILED"
  check "$launcher: started again once, it finishes with 0" [ "$(fact "$job" JobState)/$(fact "$job" ExitCode)/$(fact "$job" Restarts)" = COMPLETED/0:0/1 ]
  check "$launcher: the output holds both starts" [ "$(grep -cE 'job [0-9]+: start [01] on' "$folder/$name.out")" = 2 ]
  check "$launcher: the weights are those of the uninterrupted training" same_weights "$name"
done

for launcher in "${launchers[@]}"; do
  echo "-- preempted without a warning, $launcher"
  name=abrupt_$launcher
  job=$(SIMCLR_LAUNCHER=$launcher train "$name" --partition=abrupt "${on_one[@]}" --)
  hold "$name"
  other=$(high)  # Slurm wakes with SIGCONT whom it sends SIGTERM
  wait_until 60 "the job with the higher priority runs" in_state "$other" "COMPLETED"
  check "$launcher: SIGTERM has brought a checkpoint" status_is "$name" stopped
  check "$launcher: Slurm itself has requeued the job" in_state "$job" PENDING
  wait_until 60 "it starts again" start_again "$job"
  wait_until 150 "it finishes" in_state "$job" "COMPLETED FAILED"
  check "$launcher: started again once, it finishes with 0" [ "$(fact "$job" JobState)/$(fact "$job" ExitCode)/$(fact "$job" Restarts)" = COMPLETED/0:0/1 ]
  check "$launcher: the weights are those of the uninterrupted training" same_weights "$name"
done

for launcher in "${launchers[@]}"; do
  echo "-- canceled, $launcher"
  name=canceled_$launcher
  job=$(SIMCLR_LAUNCHER=$launcher train "$name" "${on_one[@]}" --)
  hold "$name"
  timeout 10 scancel "$job"
  wait_until 60 "it ends" in_state "$job" "CANCELLED COMPLETED FAILED"
  wait_until 60 "nothing of it runs" [ -z "$(timeout 10 squeue --noheader --job="$job" --format=%i)" ]
  wait_until 20 "its last word" says "$name" "Slurm decides what happens|Slurm ends the job"
  check "$launcher: it saves, and does not come back" [ "$(fact "$job" JobState)/$(fact "$job" Restarts)" = CANCELLED/0 ]
  check "$launcher: status.json says stopped" status_is "$name" stopped
done

echo "-- failures"
job=$(train refused "${on_one[@]}" -- --set train.global_batch=33)
wait_until 60 "it ends" in_state "$job" "COMPLETED FAILED"
check "a refused configuration: failed with its code 2, not requeued" [ "$(fact "$job" JobState)/$(fact "$job" ExitCode)/$(fact "$job" Restarts)" = FAILED/2:0/0 ]

job=$(train killed "${on_one[@]}" --)
hold killed
ranks_of killed | tail -n 1 | xargs kill -KILL
let_go killed
wait_until 60 "it ends" in_state "$job" "COMPLETED FAILED"
check "a killed rank: the job fails and is not requeued" [ "$(fact "$job" JobState)/$(fact "$job" Restarts)" = FAILED/0 ]
check "its output says so" says killed "failed with code [1-9].*not requeued"

echo "-- ranks that would train apart"
code=0
timeout 60 srun --mpi=none --nodes=1 --ntasks=2 --output="$folder/apart.out" "$program" --config "$folder/tiny.yaml" --output "$folder/apart" || code=$?
check "srun without PMIx: refused with code 4" [ "$code" = 4 ]
check "the command line that works is named" says apart "srun --mpi=pmix"
check "nothing is written" [ ! -e "$folder/apart" ]

echo "-- an array of seeds"
job=$(SIMCLR_RUNS=$folder SIMCLR_NAME=seeds submit --array=1-2 --gpus-per-node=0 --cpus-per-task=1 --time=10 --output="$folder/seed_%a.out" \
  "$root/scripts/slurm/seeds.sbatch" --config "$folder/tiny.yaml")
# The number of the last task is the array's own: its restart must not be everybody's.
hold seeds/seed-2
timeout 10 scancel --batch --signal=USR1 "${job}_2"
wait_until 60 "the warning arrives" says seed_2 "SIGUSR1: asking"
let_go seeds/seed-2
wait_until 60 "task 2 is requeued" says seed_2 "requeued$"
wait_until 60 "task 2 starts again" start_again "${job}_2"
for task in 1 2; do wait_until 150 "task $task finishes" in_state "${job}_$task" "COMPLETED FAILED"; done
check "task 2 alone was started again" [ "$(fact "${job}_1" Restarts)$(fact "${job}_2" Restarts)" = 01 ]
check "two seeds, two finished runs" [ "$(cat "$folder"/seeds/seed-[12]/status.json | grep -c '"state": "finished"')" = 2 ]
check "their weights differ" [ "$(weights seeds/seed-1)" != "$(weights seeds/seed-2)" ]

result=0
