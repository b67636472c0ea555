# shellcheck shell=bash
# Sourced by test_cluster.sh: a Slurm of one machine with virtual nodes, all of it in one folder. Needs root (munge, host
# names of their own for the nodes), slurmctld, slurmd, munged; no systemd, no cgroups, no data base.

# N consecutive free ports.
free_ports() {
  python3 - "$1" <<'PY'
import random, socket, sys
count = int(sys.argv[1])
for _ in range(100):
    first = random.randrange(20000, 60000 - count)
    sockets = []
    try:
        for port in range(first, first + count):
            s = socket.socket()
            sockets.append(s)
            s.bind(("", port))
        print(first)
        break
    except OSError:
        continue
    finally:
        for s in sockets:
            s.close()
PY
}

# write_slurm_conf FOLDER NODES. What differs from a cluster of machines:
#   each node has a TmpFS of its own, or the PMIx plug-ins of two nodes meet in one /tmp;
#   config_overrides: nodes may claim more cores than there are; proctrack/linuxproc: no cgroups;
#   two GPUs a node that are names only; waits are short (KillWait, GraceTime, the scheduler's intervals).
write_slurm_conf() {
  local folder=$1 nodes=$2 ports host
  ports=$(free_ports $((nodes + 1)))
  host=$(hostname -s)
  cat >"$folder/slurm.conf" <<CONF
ClusterName=virtual
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$ports
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$folder/munge/socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
TmpFS=$folder/tmp/%n
SlurmctldPidFile=$folder/pids/slurmctld
SlurmdPidFile=$folder/pids/%n
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/%n
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/log/finished_jobs
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
MpiDefault=none
GresTypes=gpu
ReturnToService=2
KillWait=10
MinJobAge=600
NodeName=n[1-$nodes] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((ports + 1))-$((ports + nodes))] CPUs=2 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=1000 Gres=gpu:2
PartitionName=low Nodes=n[1-$nodes] Default=YES MaxTime=30 PriorityTier=1 PreemptMode=REQUEUE GraceTime=30
PartitionName=abrupt Nodes=n[1-$nodes] MaxTime=30 PriorityTier=1 PreemptMode=REQUEUE GraceTime=0
PartitionName=high Nodes=n[1-$nodes] MaxTime=30 PriorityTier=10 PreemptMode=OFF
CONF
  printf '%s\n' AutoDetect=off "NodeName=n[1-$nodes] Name=gpu File=/dev/null" "NodeName=n[1-$nodes] Name=gpu File=/dev/zero" >"$folder/gres.conf"
}

# start_cluster FOLDER NODES: returns when all nodes are idle; sets SLURM_CONF. False, with the reason, when they are not.
start_cluster() {
  local folder=$1 nodes=$2 n
  mkdir -p "$folder"/{state,log,munge,pids}
  chmod 755 "$folder" "$folder/munge"
  for n in $(seq "$nodes"); do
    mkdir -p "$folder/spool/n$n"
    install -d -m 1777 "$folder/tmp/n$n"
  done
  (umask 077 && head -c 1024 /dev/urandom >"$folder/munge/key")
  write_slurm_conf "$folder" "$nodes"
  export SLURM_CONF=$folder/slurm.conf
  timeout 20 munged --force --socket="$folder/munge/socket" --key-file="$folder/munge/key" \
    --pid-file="$folder/pids/munged" --log-file="$folder/log/munged" --seed-file="$folder/munge/seed" &&
    timeout 20 slurmctld || return 1
  # A node calls itself n1, n2, ...: mpirun would otherwise take them for other machines.
  for n in $(seq "$nodes"); do
    # shellcheck disable=SC2016  # the inner shell's
    timeout 20 unshare --uts sh -c 'hostname "$1" && exec slurmd -N "$1"' sh "n$n" || return 1
  done
  for _ in $(seq 150); do
    [ "$(timeout 10 sinfo --noheader --partition=low --states=idle --format=%D 2>/dev/null)" != "$nodes" ] || return 0
    sleep 0.2
  done
  timeout 10 sinfo --Node --long >&2
  return 1
}

# Processes that were started with this cluster's SLURM_CONF: daemons and what jobs may have left behind; and
# slurmstepd, which writes its title over its environment, by its log.
cluster_processes() {
  local folder=$1 pid
  for pid in $(ps -e -o pid=); do
    if [ "$pid" = "$$" ] || [ "$pid" = "$BASHPID" ]; then continue; fi
    if grep -qzxF "SLURM_CONF=$folder/slurm.conf" "/proc/$pid/environ" 2>/dev/null; then
      echo "$pid"
    elif [[ "$(cat "/proc/$pid/comm" 2>/dev/null)" == slurmstepd* ]]; then
      ! find "/proc/$pid/fd" -lname "$folder/*" 2>/dev/null | grep -q . || echo "$pid"
    fi
  done
}

# stop_cluster FOLDER: jobs, daemons in order, then whatever is left, by force. Prints what force was needed for.
stop_cluster() {
  local folder=$1 file pid left
  timeout 10 scancel --user="$(id -un)" >/dev/null 2>&1
  for _ in $(seq 50); do
    [ -n "$(timeout 10 squeue --noheader --format=%i 2>/dev/null)" ] || break
    sleep 0.2
  done
  for file in "$folder"/pids/n* "$folder/pids/slurmctld" "$folder/pids/munged"; do
    [ -f "$file" ] || continue
    pid=$(cat "$file")
    kill "$pid" 2>/dev/null || continue
    for _ in $(seq 50); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.2
    done
  done
  left=$(cluster_processes "$folder")
  for pid in $left; do
    echo "left: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)" >&2
    kill -KILL "$pid" 2>/dev/null
  done
  [ -z "$left" ]
}
