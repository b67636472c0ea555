"""Kills a run repeatedly with SIGKILL and restarts it on another number of ranks: nothing is lost beyond
the last checkpoint, nothing is left behind, and the weights end as those of an unbroken run.

kill_test.py PROGRAM MPIRUN [KILLS [SEED]]: ten kills by default; a long drill takes 200 (about ten minutes).
"""

import os
import random
import re
import signal
import sys
import time

import survivors
from program import SMALL, Folder, check, finish, kill_all, pids_of, run, start, wait_for

kills = int(sys.argv[3]) if len(sys.argv) > 3 else 10
seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
rng = random.Random(seed)
STEPS_PER_KILL = 30
SETTINGS = dict(SMALL, **{"run.threads": 1, "train.max_steps": STEPS_PER_KILL * kills, "checkpoint.every_steps": 1,
                          "checkpoint.every_epochs": 0, "evaluate.knn.every_epochs": 20, "checkpoint.keep_best": "true"})


def newest_step(place):
    names = [path.name for path in (place / "checkpoints").glob("step_*.safetensors")]
    return max((int(re.fullmatch(r"step_(\d+)\.safetensors", name).group(1)) for name in names), default=0)


def ranks_of(mpirun, place):
    """Not those that an mpirun which was killed before it left to themselves, and that come up only now."""
    def parent(pid):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                return int(stat.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            return 0
    return [pid for pid in pids_of(place) if parent(pid) == mpirun]


def temporaries(place):
    return sorted(path.name for path in place.rglob("*.tmp-*")) if place.exists() else []


def resumed_step(output):
    match = re.search(r"resumed from \S+ after step (\d+)", output)
    return int(match.group(1)) if match else 0


with Folder() as folder:
    straight = run(1, SETTINGS, folder / "straight", limit_s=600)
    check(straight.code == 0, "the unbroken run ends with 0", straight)

    done, rounds, restarts, at_save, before_start = 0, 0, 0, 0, 0
    while done < kills:
        rounds += 1
        place = folder / f"broken_{rounds}"
        step = 0  # of the newest checkpoint when the last process had gone
        while True:
            ranks = rng.choice([1, 2, 4, 8])
            process = start(ranks, SETTINGS, place)
            restarts += 1
            killed = False
            if done < kills:
                aim = rng.choice(["any moment", "any moment", "a save"])
                if aim == "a save":
                    wait_for(lambda: temporaries(place) or process.poll() is not None, limit_s=30)
                else:
                    time.sleep(rng.uniform(0.1, 3.0))
                victim = rng.choice(ranks_of(process.pid, place) + [process.pid])
                if process.poll() is None:
                    os.kill(victim, signal.SIGKILL)
                    killed = True
                    done += 1
                    at_save += bool(temporaries(place))
            result = finish(process, place, limit_s=200 if killed else 600)  # what is not killed runs to the end
            if not wait_for(lambda: not pids_of(place), limit_s=30):
                seen = survivors.describe(pids_of(place), place)
                kill_all(process, place)
                check(False, f"processes are left after kill {done}:\n{seen}", result)
            # Survivors of a kill name the rank that is gone; any other message is a failed start.
            errors = [line for line in result.output.splitlines() if line.startswith("error: ") and "rank" not in line]
            if errors or (result.code != 0 and not killed):
                check(False, f"start {restarts} on {ranks} ranks failed", result)
            before_start += killed and "step: 8 shards" not in result.output
            if "resumed from" in result.output and resumed_step(result.output) != step:
                check(False, f"resumed after step {resumed_step(result.output)}, the newest checkpoint was of {step}", result)
            if newest_step(place) < step:
                check(False, f"the checkpoint of step {step} is gone", result)
            step = newest_step(place)
            if result.code == 0:
                break
        check(result.status["state"] == "finished" and not temporaries(place),
              f"round {rounds}: finished, no temporary file is left ({done} kills so far)", result)
        check(result.losses == straight.losses and result.state_hash() == straight.state_hash(),
              "same losses, weights and optimizer state as unbroken", result)
        best = place / "best.safetensors"
        check(result.state_hash(best) == straight.state_hash(folder / "straight" / "best.safetensors"), "same best state")
    print(f"{done} kills (seed {seed}), {at_save} of them while a file was being written, {before_start} before the first "
          f"step was set up; {restarts} starts, {rounds} runs")
