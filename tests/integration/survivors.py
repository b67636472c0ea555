"""State of the processes of a job that does not end: command, state, what the kernel waits for, the stacks of
their threads (gdb or eu-stack, where one is installed), the end of their log. For the moment before a test kills them.
"""

import os
import pathlib
import shutil
import subprocess

STACKS = [("gdb", ["gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "thread apply all bt 30", "-p"]),
          ("eu-stack", ["eu-stack", "-n", "30", "-p"])]
MOST_SHOWN = 12
LOG_LINES = 20


def read(path):
    try:
        return pathlib.Path(path).read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError as error:
        return f"({error.strerror})"


def group_of(leader):
    """The processes of a process group: a launcher, and what it started in its own group."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getpgid(int(entry.name)) == leader:
                    found.append(int(entry.name))
            except ProcessLookupError:
                continue
    return found


def stacks(pid):
    """gdb's words about itself and about each library are left out."""
    for program, command in STACKS:
        if shutil.which(program):
            try:
                done = subprocess.run(command + [str(pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      stdin=subprocess.DEVNULL, timeout=30)
            except subprocess.TimeoutExpired:
                return f"({program} has not come back within 30 s)"
            lines = [line for line in done.stdout.splitlines() if line.startswith(("Thread", "TID", "#"))]
            return "\n".join(lines) or done.stdout.strip()[-500:]
    return "(no stacks: neither gdb nor eu-stack is installed)"


def describe_process(pid):
    status = dict(line.split(":", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":" in line)
    threads = [f"{task}: {read(f'/proc/{pid}/task/{task}/wchan')}" for task in sorted(os.listdir(f"/proc/{pid}/task"))] \
        if os.path.isdir(f"/proc/{pid}/task") else []
    return "\n".join([
        f"process {pid}: {read(f'/proc/{pid}/cmdline')[:300]}",
        f"state {status.get('State', '?').strip()}, parent {status.get('PPid', '?').strip()}, "
        f"signals blocked {status.get('SigBlk', '?').strip()}, caught {status.get('SigCgt', '?').strip()}",
        f"waits in the kernel, by thread: {', '.join(threads) or '?'}",
        stacks(pid)])


def describe(pids, folder):
    """One text about these processes and the logs of the run in this folder."""
    pids = sorted(set(pids))
    parts = [f"---- {len(pids)} processes are still there"] + [describe_process(pid) for pid in pids[:MOST_SHOWN]]
    for log in [folder / "train.log", folder / "status.json"]:
        if log.exists():
            lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
            parts.append("\n".join([f"---- the end of {log.name}"] + lines))
    return "\n".join(parts)
