# shellcheck shell=bash
# Sourced by the *.sbatch files of this folder: starts the training of a job, hands signals on to it, and asks Slurm to
# run the job again when, and only when, the training has stopped on request. Not a program of its own.
#   SIMCLR_PROGRAM   the program                    (default: the newest build that the .sbatch file names)
#   SIMCLR_LAUNCHER  srun | mpirun | auto           (auto: srun where it has PMIx, else mpirun)
#   SIMCLR_IDLE_RESTARTS  consecutive restarts without a new step after which the job is not requeued (default 2)
# docs/slurm.md says how it is used, and scripts/slurm/test_cluster.sh holds it against a real Slurm.

say() { echo "$(date -u +%FT%TZ) job ${SLURM_JOB_ID:-?}: $*"; }
die() {
  say "$*" >&2
  exit 2
}

# srun's option for PMIx, or nothing: the plug-in is called pmix or, in some installations, by its version alone.
pmix_option() {
  local names
  names=$(srun --mpi=list 2>&1 | grep -oE '\bpmix(_v[0-9]+)?\b' | sort) || return 0
  [ -z "$names" ] || echo "--mpi=$(head -n 1 <<<"$names")"
}

# Sets `launch`, the words before the program.
choose_launcher() {
  local wanted=${SIMCLR_LAUNCHER:-auto} option=""
  case $wanted in
    auto | srun) option=$(pmix_option) ;;
    mpirun) ;;
    *) die "SIMCLR_LAUNCHER=$wanted is unknown; use srun, mpirun or auto" ;;
  esac
  if [ -n "$option" ]; then
    # From the job's cores an srun takes one per task unless the option is repeated; a rank that dies takes its step along.
    launch=(srun "$option" --kill-on-bad-exit=1 ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"})
  elif [ "$wanted" = srun ]; then
    die "this srun has no PMIx (srun --mpi=list); SIMCLR_LAUNCHER=mpirun starts the ranks with mpirun instead"
  elif command -v mpirun >/dev/null; then
    # mpirun reads hosts and ranks from the job. A rank may use all cores of its share: no binding to one of them.
    launch=(mpirun --bind-to none)
    # When Slurm ends a job, all its processes get SIGTERM; the ranks save, but mpirun kills them one second later. So
    # SIGTERM is blocked for mpirun. Where that is impossible (its helpers on other nodes, an old env), it waits longer
    # before it kills, which also delays each stop by twice that time: it does not notice that the ranks have ended.
    if [ "${SLURM_JOB_NUM_NODES:-1}" = 1 ] && env --block-signal=TERM true 2>/dev/null; then
      launch=(env --block-signal=TERM "${launch[@]}")
    else
      export OMPI_MCA_odls_base_sigkill_timeout=${OMPI_MCA_odls_base_sigkill_timeout:-20}
    fi
  else
    die "found neither an srun with PMIx (srun --mpi=list) nor mpirun; load the MPI module the program was built with"
  fi
}

# folder_of ARGUMENTS...: the run folder that simclr_train uses with these arguments.
folder_of() {
  local word previous="" folder=""
  for word in "$@"; do
    case $previous in --output) folder=$word ;; esac
    case $word in --output=*) folder=${word#--output=} ;; esac
    previous=$word
  done
  if [ -z "$folder" ]; then
    local config
    # The program itself knows: section `run` of what it prints begins with the two.
    config=$("$program" "$@" --print-config) || return 1
    folder=$(sed -n '/^run:/,/^data:/s/^  output_dir: "\(.*\)"$/\1/p' <<<"$config")/$(sed -n '/^run:/,/^data:/s/^  name: "\(.*\)"$/\1/p' <<<"$config")
  fi
  echo "$folder"
}

# status KEY: a value of the run's status.json; nothing when there is none.
status() { [ ! -f "$run/status.json" ] || sed -n "s/^ *\"$1\": *\"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$run/status.json" | head -n 1; }

# Slurm's name of this job. An array's number alone would mean all its tasks.
job_name() {
  if [ -n "${SLURM_ARRAY_JOB_ID:-}" ]; then
    echo "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
  else
    echo "$SLURM_JOB_ID"
  fi
}

# The job's state in Slurm's eyes: a job that is being canceled or preempted is RUNNING no longer.
job_state() { scontrol show job --oneliner "$(job_name)" 2>/dev/null | grep -oE 'JobState=[A-Z_]+' | head -n 1 | cut -d= -f2; }

# run_again: asks for a restart unless too many consecutive starts made no new step. RUN/restarts counts those.
run_again() {
  local step idle=0 limit=${SIMCLR_IDLE_RESTARTS:-2} state
  step=$(status step)
  step=${step:-0}
  if [ "$step" -le "$step_before" ]; then
    [ ! -f "$run/restarts" ] || idle=$(cat "$run/restarts")
    idle=$((idle + 1))
  fi
  if [ "$idle" -gt "$limit" ]; then
    rm -f "$run/restarts"
    say "stopped at step $step and not requeued: $idle consecutive starts made no new step (limit: SIMCLR_IDLE_RESTARTS=$limit)"
    return 1
  fi
  mkdir -p "$run"
  echo "$idle" >"$run/restarts"
  state=$(job_state)
  if [ "$state" != RUNNING ]; then
    say "stopped at step $step; not requeued automatically, because Slurm ends the job (${state:-state unknown})"
    return 1
  fi
  say "stopped at step $step ($reason): requeued"
  if ! scontrol requeue "$(job_name)"; then
    say "scontrol did not requeue it; submit the job again to resume from the last checkpoint"
    return 1
  fi
}

# The warning of --signal: the launcher hands SIGUSR1 on to all ranks.
on_warning() {
  signals=$((signals + 1))
  say "SIGUSR1: asking the training for a checkpoint"
  [ -z "$child" ] || hand_on
}
# To the launcher, again and again until it ends: mpirun loses a signal that comes before it has started its ranks, and
# a second request changes nothing. A child that has just ended needs none.
hand_on() {
  kill -USR1 "$child" 2>/dev/null || true
  [ -z "$repeater" ] || return 0
  (while sleep 3 && kill -USR1 "$child" 2>/dev/null; do :; done) &
  repeater=$!
}
# scancel, a preemption, the time limit: the ranks have got SIGTERM too, and save. What becomes of the job is Slurm's
# decision: a canceled one must not come back.
on_end() {
  ended=1
  say "SIGTERM: Slurm ends this job"
  on_warning
}

# Sets `code`. A signal cuts a wait short, and then bash may know the child's code at the next wait alone.
wait_for_child() {
  local seen now
  while :; do
    seen=$signals now=0
    wait "$child" || now=$?
    [ "$now" -eq 127 ] || code=$now
    [ "$signals" -ne "$seen" ] || break
  done
}

# train ARGUMENTS...: runs simclr_train with them, and exits with its code.
train() {
  local code=0 before="" state reason
  child="" repeater="" signals=0 ended=0
  trap on_warning USR1
  trap on_end TERM
  [ -x "$program" ] || die "$program does not exist; build it, or set SIMCLR_PROGRAM"
  run=$(folder_of "$@") || die "the run folder is not known: $program refuses these arguments: $*"
  choose_launcher
  step_before=$(status step) && step_before=${step_before:-0}
  [ ! -f "$run/status.json" ] || before=$(cksum <"$run/status.json")
  say "start ${SLURM_RESTART_COUNT:-0} on ${SLURM_JOB_NODELIST:-?}${SLURM_GPUS_ON_NODE:+ with $SLURM_GPUS_ON_NODE GPUs per node}, run folder $run: ${launch[*]} $program $*"

  "${launch[@]}" "$program" "$@" &
  child=$!
  if [ "$signals" -gt 0 ]; then  # it came before there was anybody to hand it to: the launcher needs a moment
    sleep 1
    hand_on
  fi
  wait_for_child
  [ -z "$repeater" ] || kill "$repeater" 2>/dev/null || true

  state=$(status state) reason=$(status reason)
  if [ -n "$before" ] && [ "$(cksum <"$run/status.json")" = "$before" ]; then
    state="not begun"  # the program refused to start and left the record of the run before
  fi
  # 75 is the program's word that it was asked to stop, whatever the file says: before the run folder is open there is
  # none of this start. 138 after a warning: the launcher itself was ended by the SIGUSR1 it had no handler for yet.
  if [ "$code" = 75 ] && [ "$state" != stopped ]; then
    state=stopped reason="before the first step"
  elif [ "$code" = 138 ] && [ "$signals" -gt 0 ] && [ "${state:-not begun}" = "not begun" ]; then
    state=stopped reason="before the program had begun"
  fi
  case $state in
    stopped)
      if [ "$ended" = 0 ]; then
        run_again || true  # it has said why; the exit code stays the training's
      else
        say "stopped at step $(status step) ($reason); Slurm decides what happens to the job"
      fi
      exit 75
      ;;
    finished) say "finished after step $(status step)" ;;
    *)
      say "failed with code $code (status.json: ${state:-none}; see above and $run/train.log): not requeued"
      [ "$code" -ne 0 ] || code=1
      ;;
  esac
  exit "$code"
}

# What the .sbatch files name when SIMCLR_PROGRAM does not: the first of these that exists.
choose_program() {
  local candidate
  program=${SIMCLR_PROGRAM:-}
  for candidate in "$@"; do
    [ -n "$program" ] || [ ! -x "${root:?}/$candidate" ] || program=$root/$candidate
  done
  program=${program:-$root/$1}
}
