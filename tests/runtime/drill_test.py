"""Failure drills under mpirun: one rank stops, sleeps, dies, throws ... and the job must end in time, with the right
exit code, one line that names the culprit, a status.json, and no process or shared memory left behind.

usage: drill_test.py MPIEXEC DRILL_BINARY [NAME ...]     (standard library only)
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

TIMEOUT_S = 3.0
# name: mishap, ranks (0: without mpirun), board, exit code, seconds at most, text of the one error line, state in status.json
DRILLS = {
    "none": ("none", 4, None, 0, 20, None, "finished"),
    "stop": ("stop", 4, None, 4, 12, "rank 3 ({host}) has given no sign of life", "failed"),
    "stop_files": ("stop", 2, "files", 4, 12, "rank 1 ({host}) has given no sign of life", "failed"),
    "sleep": ("sleep", 4, None, 4, 12, "rank 3 ({host}) has made no progress", "failed"),
    "sleep_files": ("sleep", 2, "files", 4, 12, "rank 1 ({host}) has made no progress", "failed"),
    "lost_message": ("lost_message", 2, None, 4, 12, "all ranks have waited for each other", "failed"),
    "start_sleep": ("start_sleep", 2, None, 4, 12, "rank 1 ({host}) is not done starting after 3 s: it is at work itself", "-"),
    "start_stop": ("start_stop", 2, None, 4, 15, "rank 0 ({host}) is not done starting after 3 s: it waits for the other ranks", "-"),
    "kill": ("kill", 2, None, 137, 12, None, "-"),
    "exit": ("exit", 2, None, 9, 12, None, "-"),
    "throw": ("throw", 2, None, 3, 12, "rank 1 ({host}): image 7 is broken", "failed"),
    "other_config": ("other_config", 2, None, 2, 12, "configuration differs between ranks: rank 0 ({host}): 5ab1; rank 1 ({host}): cafe", "-"),
    "long_work": ("long_work", 2, None, 0, 25, None, "finished"),
    "finalize": ("finalize", 2, None, 4, 15, "MPI_Finalize has not returned", "finished"),
    "alone": ("none", 0, None, 0, 10, None, "finished"),
    "alone_sleep": ("sleep", 0, None, 4, 10, "rank 0 ({host}) has made no progress", "failed"),
    "alone_throw": ("throw", 0, None, 3, 10, "image 7 is broken", "failed"),
    "usr1": ("usr1", 4, None, 75, 12, None, "stopped"),
    # Asked to stop while the last rank is far from its first step and the others wait for it in a collective.
    "before_usr1": ("before_usr1", 4, None, 75, 8, None, "stopped"),
    "before_usr1_files": ("before_usr1", 2, "files", 75, 20, None, "stopped"),
    "before_term_first": ("before_term_first", 4, None, 75, 8, None, "stopped"),
    "before_term_last": ("before_term_last", 4, None, 75, 8, None, "stopped"),
    "before_stopped": ("before_stopped", 2, None, 4, 25, "asked to stop by signal 15 to rank 0 before the first step, but rank 1 ({host}) has given no sign of life", "failed"),
    "alone_before_usr1": ("before_usr1", 0, None, 75, 6, None, "stopped"),
    "start_usr1": ("start_usr1", 2, None, 75, 10, None, "-"),
    # The others wait for the last rank in MPI_Init.
    "init_sleep": ("init_sleep", 3, None, 4, 12, "rank 2 ({host}) is not done starting after 3 s: it is at work itself", "-"),
    "init_stop": ("init_stop", 3, None, 4, 18, "rank 0 ({host}) is not done starting after 3 s: it waits for the other ranks", "-"),
    "init_usr1": ("init_usr1", 2, None, 75, 10, None, "-"),
    "init_term_last": ("init_term_last", 2, None, 75, 10, None, "-"),
}
# The time limit of the job: longer where nothing but a signal may end it.
LONG_TIMEOUT_S = 100.0
# What is sent to whom: mpirun (or the process, without one), the first or the last rank.
ASKS = {"usr1": (signal.SIGUSR1, "mpirun"), "before_usr1": (signal.SIGUSR1, "mpirun"), "start_usr1": (signal.SIGUSR1, "mpirun"),
        "init_usr1": (signal.SIGUSR1, "mpirun"), "init_term_last": (signal.SIGTERM, "last"),
        "before_term_first": (signal.SIGTERM, "first"), "before_term_last": (signal.SIGTERM, "last"), "before_stopped": (signal.SIGTERM, "first")}


def processes_of(run):
    """Process ids whose command line names this run folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if str(run).encode() in command and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def shared_memory():
    return {n for n in os.listdir("/dev/shm") if n.startswith("simclr-")} if os.path.isdir("/dev/shm") else set()


def ranks_of(run):
    """Process ids of the drill itself, by rank."""
    found = []
    for process in processes_of(run):
        words = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        rank = [word for word in words if word.startswith(b"OMPI_COMM_WORLD_RANK=")]
        if rank:
            found.append((int(rank[0].split(b"=")[1]), process))
    return [process for _, process in sorted(found)]


def ask(job, run, number, whom):
    """Once the job has reached the point of the drill: the run folder is open, or MPI is up where it never opens one."""
    begin = time.monotonic()
    while not (run / "train.log").exists() and time.monotonic() - begin < (2 if run.name.startswith(("start_", "init_")) else 20):
        time.sleep(0.05)
    time.sleep(0.5)
    for _ in range(2):  # asking twice changes nothing
        if whom == "mpirun":
            job.send_signal(number)
        else:
            os.kill(ranks_of(run)[0 if whom == "first" else -1], number)


def drill(mpiexec, binary, name, folder):
    mishap, ranks, board, code, limit_s, text, state = DRILLS[name]
    run = folder / name
    command = [mpiexec, "--oversubscribe", "--bind-to", "none", "-np", str(ranks)] if ranks else []
    command += [binary, mishap, str(run), str(TIMEOUT_S if mishap not in ASKS or mishap == "usr1" else LONG_TIMEOUT_S)] + ([board] if board else [])
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
    faults = []
    before = shared_memory()  # of other jobs, and what a job left that was killed while it started
    start = time.monotonic()
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    if mishap in ASKS:
        ask(job, run, *ASKS[mishap])
    try:
        out, errors = job.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        job.kill()
        out, errors = job.communicate()
        faults.append(f"still running after {limit_s} s")
    seconds = time.monotonic() - start
    if job.returncode != code:
        faults.append(f"exit code {job.returncode}, expected {code}")

    lines = [line for line in errors.splitlines() if line.startswith("error: ")]
    if text is None and lines:
        faults.append(f"unexpected error lines: {lines}")
    if text is not None:
        expected = text.format(host=os.uname().nodename)
        if len(lines) != 1 or expected not in lines[0]:
            faults.append(f"expected one error line with '{expected}', got {lines}")
        log = run / "train.log"
        if state != "-" and (not log.exists() or log.read_text().count(expected) != 1):
            faults.append("train.log does not hold the line once")
    status = json.loads((run / "status.json").read_text()) if (run / "status.json").exists() else {"state": "-"}
    if status["state"] != state:
        faults.append(f"status.json says {status}, expected state {state}")
    if state == "failed" and (status["exit_code"] != code or not lines or not lines[0].endswith(status["reason"])):
        faults.append(f"status.json says {status}")

    deadline = time.monotonic() + 5
    while processes_of(run) and time.monotonic() < deadline:
        time.sleep(0.1)
    left = processes_of(run)
    if left:
        faults.append(f"processes left: {left}")
        for process in left:
            os.kill(process, signal.SIGKILL)
    names = shared_memory() - before
    if names:
        time.sleep(1)  # another job may be just starting
        names &= shared_memory()
    if names:
        faults.append(f"shared memory left: {names}")
    print(f"{name}: {'FAILED' if faults else 'passed'} in {seconds:.1f} s, exit code {job.returncode}; {lines[0] if lines else 'no error line'}")
    for fault in faults:
        print(f"  {fault}")
    if faults:
        print(f"  --- stdout\n{out}\n  --- stderr\n{errors}")
    return not faults


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: drill_test.py MPIRUN DRILL_PROGRAM [NAME...]")
    mpiexec, binary, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="simclr_drill_") as folder:
        results = [drill(mpiexec, binary, name, pathlib.Path(folder)) for name in names or DRILLS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
