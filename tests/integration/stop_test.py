"""SIGUSR1 to mpirun, SIGTERM to one rank: a checkpoint at the same step on all ranks, exit code 75, and the run goes on.

stop_test.py PROGRAM MPIRUN SLOW_INIT: a library that makes MPI_Init of a rank slow (slow_init.cpp)
"""

import os
import signal
import sys
import time

from program import SMALL, Folder, check, finish, pids_of, run, start, wait_for

SLOW_INIT = sys.argv[3]

with Folder() as folder:
    settings = dict(SMALL, **{"run.threads": 1, "train.epochs": 30})
    straight = run(1, settings, folder / "straight")
    for name, send in [
        ("SIGUSR1 to mpirun", lambda process, pids: process.send_signal(signal.SIGUSR1)),
        ("SIGTERM to one rank", lambda process, pids: os.kill(pids[1], signal.SIGTERM)),
        ("three signals to one rank", lambda process, pids: [os.kill(pids[0], s) for s in (signal.SIGINT, signal.SIGUSR1, signal.SIGTERM)]),
    ]:
        place = folder / name.replace(" ", "_")
        process = start(2, settings, place)
        check(wait_for(lambda: (place / "metrics.jsonl").exists() and '"loss"' in (place / "metrics.jsonl").read_text()),
              "the first step is done")
        send(process, pids_of(place))
        stopped = finish(process, place)
        check(stopped.code == 75, f"{name}: exit code 75", stopped)
        step = stopped.status["step"]
        check(stopped.status["state"] == "stopped" and 0 < step < 150 and
              stopped.status["checkpoint"] == f"checkpoints/step_{step:08d}.safetensors", "status.json tells it", stopped)
        rest = run(4, settings, place)
        check(rest.code == 0 and rest.losses == straight.losses and rest.weights_hash() == straight.weights_hash(),
              f"{name}: resumed to the same bits", rest)

    # A machine that is taken away while the run reads its data: nothing is trained yet, and it is no failure.
    slow = dict(settings, **{"data.synthetic.train_images": 200000})

    def stopped_early(place, number, rank):
        """Asked while it draws its images, which takes tens of seconds."""
        def holder():
            return (place / "lock").read_text() if (place / "lock").exists() else ""
        before = holder()
        process = start(2, slow, place)
        check(wait_for(lambda: holder() != before), "the start is under way")
        time.sleep(2)
        asked = time.monotonic()
        os.kill(pids_of(place)[rank], number)
        stopped = finish(process, place)
        seconds = time.monotonic() - asked
        check(stopped.code == 75 and stopped.status["state"] == "stopped" and seconds < 8,
              f"signal {number} to rank {rank} while it starts: exit code 75 after {seconds:.1f} s", stopped)
        lines = [line for line in stopped.output.splitlines() if "stopped before the first step" in line]
        check(len(lines) == 1 and f"signal {number} to rank {rank}" in lines[0] and "error: " not in stopped.output,
              f"it says so once: {lines}", stopped)
        return stopped

    # In MPI_Init, where nobody can be asked yet.
    for number, whom in [(signal.SIGUSR1, "mpirun"), (signal.SIGTERM, "rank 1")]:
        place = folder / f"init_{number}"
        waits = folder / f"init_{number}.waits"
        os.environ.update(LD_PRELOAD=SLOW_INIT, SLOW_INIT_RANK="1", SLOW_INIT_S="30", SLOW_INIT_FILE=str(waits))
        process = start(2, settings, place)
        for name in ("LD_PRELOAD", "SLOW_INIT_RANK", "SLOW_INIT_S", "SLOW_INIT_FILE"):
            del os.environ[name]
        check(wait_for(waits.exists), "a rank is in MPI_Init")
        time.sleep(0.5)
        asked = time.monotonic()
        os.kill(process.pid if whom == "mpirun" else pids_of(place)[1], number)
        stopped = finish(process, place)
        seconds = time.monotonic() - asked
        lines = [line for line in stopped.output.splitlines() if "stopped before the first step" in line]
        check(stopped.code == 75 and seconds < 8 and len(lines) == 1 and f"signal {int(number)} to rank" in lines[0],
              f"signal {int(number)} to {whom} in MPI_Init: exit code 75 after {seconds:.1f} s: {lines}", stopped)

    place = folder / "early"
    stopped = stopped_early(place, signal.SIGUSR1, 0)
    check(stopped.status["step"] == 0 and stopped.status["checkpoint"] == "", "no step, no checkpoint", stopped)
    rest = run(2, dict(settings, **{"train.max_steps": 3}), place)
    check(rest.code == 0, "the same folder serves afterwards", rest)
    stopped = stopped_early(place, signal.SIGTERM, 1)
    check(stopped.status["step"] == 3 and stopped.status["checkpoint"] == "checkpoints/step_00000003.safetensors",
          "a run with a checkpoint: status.json says where it stands", stopped)
