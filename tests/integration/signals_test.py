"""The rows of docs/signals.md: each signal that a scheduler, a container or a person sends, and its effect.

signals_test.py PROGRAM MPIRUN
"""

import os
import resource
import signal
import subprocess

from program import SMALL, Folder, check, command, environment, finish, pids_of, start, wait_for

# No checkpoint is due at any time: what is saved has been saved for the signal.
SETTINGS = dict(SMALL, **{"run.threads": 1, "train.epochs": 100000, "evaluate.knn.every_epochs": 0, "checkpoint.every_epochs": 0})


def in_training(ranks, place, words=None):
    if words is None:
        process = start(ranks, SETTINGS, place)
    else:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(),
                                   start_new_session=True)
    check(wait_for(lambda: (place / "metrics.jsonl").exists() and '"loss"' in (place / "metrics.jsonl").read_text()),
          f"{place.name}: the first step is done")
    return process


def is_stopped(result, name, code=75):
    status = result.status
    check(result.code == code and status["state"] == "stopped" and status["step"] > 0 and
          status["checkpoint"] == f"checkpoints/step_{status['step']:08d}.safetensors",
          f"{name}: exit code {result.code} after {result.seconds:.1f} s, stopped after step {status['step']} with its checkpoint", result)


def stops(name, ranks, send):
    """send(process, pids): the signals; the run then exits with 75."""
    place = folder / name.replace(" ", "_").replace("/", "_")
    process = in_training(ranks, place)
    send(process, pids_of(place))
    is_stopped(finish(process, place), name)


def to_all(*numbers):
    def send(process, pids):
        for number in numbers:
            for pid in pids:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
    return send


def to_launcher(number):
    return lambda process, pids: process.send_signal(number)


with Folder() as folder:
    # One process, or ranks that srun started: the signal comes to each of them.
    stops("Slurm --signal=B:USR1", 0, to_launcher(signal.SIGUSR1))
    stops("Slurm scancel", 2, to_all(signal.SIGTERM))
    stops("LSF bkill", 0, to_all(signal.SIGINT, signal.SIGTERM))
    stops("LSF -wa USR2", 0, to_launcher(signal.SIGUSR2))
    stops("PBS qdel", 2, to_all(signal.SIGTERM))
    stops("SGE -notify", 0, to_all(signal.SIGUSR2))
    stops("Kubernetes and docker stop -s TERM", 0, to_launcher(signal.SIGTERM))
    stops("a closed terminal", 0, to_launcher(signal.SIGHUP))
    stops("Ctrl-C", 0, to_launcher(signal.SIGINT))
    # Under mpirun, which forwards these.
    stops("SIGUSR1 to mpirun (Slurm, docker stop)", 2, to_launcher(signal.SIGUSR1))
    stops("SIGUSR2 to mpirun (LSF, SGE)", 2, to_launcher(signal.SIGUSR2))

    name = "a soft limit on processor time"
    place = folder / "cpu_limit"
    process = in_training(2, place)
    pid = pids_of(place)[1]
    ticks = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    used_s = (int(ticks[11]) + int(ticks[12])) // os.sysconf("SC_CLK_TCK")
    resource.prlimit(pid, resource.RLIMIT_CPU, (used_s + 2, resource.RLIM_INFINITY))
    stopped = finish(process, place)
    is_stopped(stopped, name)
    check(f"signal {signal.SIGXCPU.value} to rank 1" in stopped.status["reason"], f"{name}: SIGXCPU is the reason", stopped)

    # mpirun takes these as the order to end its ranks: one second of grace.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        name = f"{number.name} to mpirun"
        place = folder / name.replace(" ", "_")
        process = in_training(2, place)
        process.send_signal(number)
        result = finish(process, place)
        check(result.code not in (0, 75), f"{name}: exit code {result.code}, whatever the ranks say", result)
        check(result.status["state"] in ("stopped", "running") and not pids_of(place),
              f"{name}: state {result.status['state']}, no process is left", result)

    name = "nohup and a closed terminal"
    place = folder / "nohup"
    process = in_training(0, place, words=["nohup"] + command(0, SETTINGS, place))
    process.send_signal(signal.SIGHUP)
    steps = (place / "metrics.jsonl").read_text().count('"loss"')
    check(wait_for(lambda: (place / "metrics.jsonl").read_text().count('"loss"') > steps + 20) and process.poll() is None,
          f"{name}: it continues")
    process.send_signal(signal.SIGUSR1)
    is_stopped(finish(process, place), f"{name}, then SIGUSR1")

    for ranks, number, code in ((0, signal.SIGQUIT, -signal.SIGQUIT), (0, signal.SIGKILL, -signal.SIGKILL), (2, signal.SIGKILL, 137)):
        name = f"{number.name} to {'one process' if ranks == 0 else 'a rank below mpirun'}"
        place = folder / name.replace(" ", "_")
        process = in_training(ranks, place)
        os.kill(pids_of(place)[-1], number)
        result = finish(process, place)
        check(result.code == code and result.status["state"] == "running" and not result.checkpoints,
              f"{name}: ends at once with {result.code}, nothing is saved", result)
