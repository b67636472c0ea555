"""Stops at random moments of the first two seconds: the exit code, status.json and what scripts/slurm/job.sh makes of the
two have to agree, whatever the run was doing.

early_stop_test.py PROGRAM MPIRUN [STOPS [SEED]]: 12 stops by default; a long drill takes 200 (about ten minutes).
"""

import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

from program import SMALL, Folder, check, finish, pids_of, start, wait_for

STOPS = int(sys.argv[3]) if len(sys.argv) > 3 else 12
rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
ROOT = pathlib.Path(__file__).resolve().parents[2]
SIGNALS = [signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
SETTINGS = dict(SMALL, **{"run.threads": 1, "train.epochs": 100000, "evaluate.knn.every_epochs": 0})

# For job.sh, a launcher and a program that end as the real ones did.
STUBS = {"srun": '#!/bin/bash\nif [ "$1" = --mpi=list ]; then echo pmix; exit; fi\nwhile [[ "$1" == --* ]]; do shift; done\nexec "$@"\n',
         "scontrol": '#!/bin/bash\ncase $1 in show) echo "JobState=RUNNING" ;; requeue) echo "$2" >>"$PLACE/requeued" ;; esac\n',
         "program": '#!/bin/bash\n[ ! -e "$PLACE/after" ] || cp "$PLACE/after" "$PLACE/run/status.json"\nexit "$CODE"\n'}


def read(path):
    return path.read_text() if path.exists() else None


def verdict_of_job(folder, before, after, code):
    """What job.sh says of a start that found one status.json and left another: its exit code, whether it asks for a restart."""
    place = folder / "verdict"
    shutil.rmtree(place, ignore_errors=True)
    (place / "run").mkdir(parents=True)
    for name, text in STUBS.items():
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    if before is not None:
        (place / "run" / "status.json").write_text(before)
    if after is not None:
        (place / "after").write_text(after)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SIMCLR_", "OMPI_"))}
    env.update(PATH=f"{place}:{env['PATH']}", PLACE=str(place), CODE=str(code % 256), SLURM_JOB_ID="7", SLURM_JOB_NAME="x",
               SLURM_SUBMIT_DIR=str(ROOT), SIMCLR_PROGRAM=str(place / "program"))
    job = subprocess.run(["bash", str(ROOT / "scripts/slurm/train.sbatch"), "--output", str(place / "run")], env=env, cwd=place,
                         capture_output=True, text=True, timeout=30)
    return job.returncode, (place / "requeued").exists(), job.stdout + job.stderr


def ask_launcher(process, number):
    """As job.sh does: mpirun loses a signal that comes before it has started its ranks."""
    while process.poll() is None:
        process.send_signal(number)
        time.sleep(3)


def stop_at(place, ranks, number, whom, delay_s, slow_start):
    settings = dict(SETTINGS, **{"data.synthetic.train_images": 20000}) if slow_start else SETTINGS
    process = start(ranks, settings, place)
    time.sleep(delay_s)
    if whom == "launcher":
        threading.Thread(target=ask_launcher, args=(process, number), daemon=True).start()
    else:
        wait_for(lambda: pids_of(place), 20)  # mpirun takes a moment to start them
        pids = pids_of(place)
        for pid in pids if whom == "all ranks" else [rng.choice(pids)]:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
    # Open MPI 4.1's mpirun may hang in its own PMIx_server_finalize when a rank has ended while it was connecting.
    if not ends_within(process, place, 60) and not pids_of(place):
        process.kill()
        process.communicate()
        return None
    return finish(process, place, limit_s=1)


def ends_within(process, place, limit_s):
    """Reads nothing: the pipe has room for what a run prints in that time."""
    end, gone_since = time.monotonic() + limit_s, None
    while process.poll() is None and time.monotonic() < end:
        gone_since = None if pids_of(place) else gone_since or time.monotonic()
        if gone_since and time.monotonic() - gone_since > 15:
            return False
        time.sleep(0.05)
    return process.poll() is not None


def describe_fault(result, before, after, job_code, requeued, number):
    """What does not agree; nothing when all does. A negative code is that of a process which a signal has ended."""
    own = json.loads(after) if after is not None and after != before else None
    if result.code == 75:
        if own is None and "before the run folder was open" not in result.output:
            return "status.json is not of this start, and the output does not say why"
        if own is not None and (own["state"] != "stopped" or own["exit_code"] != 75):
            return "status.json says something else"
        if job_code != 75 or not requeued:
            return "job.sh does not run it again"
        return ""
    # A second request may end mpirun itself while it leaves: the file and job.sh have the program's word.
    if result.code in (-number, 128 + number) and own is not None and own["state"] == "stopped":
        return "" if job_code == 75 and requeued else "job.sh does not run it again"
    # Before the program had a handler, or mpirun one: the signal itself ended it, and it wrote nothing.
    if result.code in (-number, 128 + number) and own is None:
        return "" if job_code != 75 and not requeued else "job.sh runs it again"
    return "an exit code that no stop has"


with Folder() as folder:
    seen = collections.Counter()
    for stop in range(STOPS):
        ranks = rng.choice([0, 2, 4])
        number = rng.choice(SIGNALS)
        # mpirun itself takes every other signal as the order to kill its ranks.
        whom = rng.choice(["one rank", "all ranks"] + (["launcher"] if number == signal.SIGUSR1 or ranks == 0 else []))
        delay_s, slow_start = rng.uniform(0, 2), rng.random() < 0.5
        place = folder / f"run_{rng.randrange(6)}"  # some of them are new, some resume
        before = read(place / "status.json")
        result = stop_at(place, ranks, number, whom, delay_s, slow_start)
        if result is None:
            seen["mpirun hangs without ranks"] += 1
            continue
        after = read(place / "status.json")
        job_code, requeued, job_output = verdict_of_job(folder, before, after, result.code)
        fault = describe_fault(result, before, after, job_code, requeued, number)
        when = "the signal itself" if result.code != 75 else "before the run folder" if after == before else \
            "before step 1" if "before the first step" in result.output else "in a step"
        seen[when] += 1
        if fault:
            check(False, f"stop {stop}: {signal.Signals(number).name} to {whom} of {max(ranks, 1)} ranks after {delay_s:.2f} s: {fault}\n"
                  f"status.json before: {before}\nafter: {after}\njob.sh ({job_code}): {job_output}", result)
    check(True, f"{STOPS} stops: exit code, status.json and job.sh agree in all ({dict(seen)})")
