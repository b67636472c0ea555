"""Seconds from a signal to the end of a run with the default network, whose steps take seconds on a CPU. For a person to read.

stop_seconds.py PROGRAM MPIRUN [TRIES [RANKS [SETTING ...]]]     20 tries on one rank, about 20 minutes on two cores
"""

import os
import random
import signal
import sys
import time

from program import Folder, finish, pids_of, start, wait_for

TRIES = int(sys.argv[3]) if len(sys.argv) > 3 else 20
RANKS = int(sys.argv[4]) if len(sys.argv) > 4 else 0
# A thousand images: the defaults of the step itself are untouched.
SETTINGS = {"data.synthetic.train_images": 2048, "data.synthetic.test_images": 16, "train.epochs": 1000, "evaluate.knn.every_epochs": 0}
SETTINGS.update(word.split("=", 1) for word in sys.argv[5:])
SIGNALS = [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU]
rng = random.Random(1)


def steps_of(place):
    metrics = place / "metrics.jsonl"
    return metrics.read_text().count('"loss"') if metrics.exists() else 0


with Folder() as folder:
    place = folder / "run"
    taken, steps_s = [], []
    print("| signal | in step | after its begin (s) | last step took (s) | signal to exit (s) | exit code | saved step |\n|---|---|---|---|---|---|---|")
    for number in range(TRIES):
        before = steps_of(place)
        process = start(RANKS, SETTINGS, place)
        wait_for(lambda: steps_of(place) > before, 300)
        began = time.monotonic()
        wait_for(lambda: steps_of(place) > before + 1, 300)
        step_s = time.monotonic() - began
        delay_s = rng.uniform(0, step_s)
        time.sleep(delay_s)
        which = SIGNALS[number % len(SIGNALS)]
        done = steps_of(place)
        asked = time.monotonic()
        os.kill(rng.choice(pids_of(place)), which)
        result = finish(process, place, 300)
        seconds = time.monotonic() - asked
        taken.append(seconds)
        steps_s.append(step_s)
        print(f"| {which.name} | {done + 1} | {delay_s:.1f} | {step_s:.1f} | {seconds:.1f} | {result.code} | {result.status['step']} |", flush=True)
    print(f"\n{TRIES} stops: {min(taken):.1f} to {max(taken):.1f} s, on average {sum(taken) / TRIES:.1f} s; "
          f"steps of {min(steps_s):.1f} to {max(steps_s):.1f} s")
    print([line for line in result.output.splitlines() if "grace period" in line])
