"""SIGUSR1 to mpirun, SIGTERM to one rank: a checkpoint at the same step on all ranks, exit code 75, and the run can be resumed.

stop_test.py PROGRAM MPIRUN SLOW_INIT: a library that makes MPI_Init of a rank slow (slow_init.cpp)
"""

import os
import signal
import time

from program import SMALL, Folder, arguments, check, finish, pids_of, run, start, wait_for

SLOW_INIT = arguments(3, "SIMCLR_TRAIN MPIRUN SLOW_INIT")[2]

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
              stopped.status["checkpoint"] == f"checkpoints/step_{step:08d}.safetensors", "status.json names it", stopped)
        rest = run(4, settings, place)
        check(rest.code == 0 and rest.losses == straight.losses and rest.weights_hash() == straight.weights_hash(),
              f"{name}: resumed to the same bits", rest)

    # Steps of seconds: the one under way is abandoned, the state of the last whole one is saved.
    long_steps = dict(settings, **{"model.encoder.width": 32, "data.image_size": 32, "train.global_batch": 128, "train.epochs": 4,
                                   "data.synthetic.train_images": 256, "train.timeout_s": 100})

    def steps_of(place):
        return (place / "metrics.jsonl").read_text().count('"loss"') if (place / "metrics.jsonl").exists() else 0

    place = folder / "long_straight"
    process = start(2, long_steps, place)
    check(wait_for(lambda: steps_of(place) >= 1, 200), "a long step is done")
    began = time.monotonic()
    check(wait_for(lambda: steps_of(place) >= 2, 200), "and another one")
    step_s = time.monotonic() - began
    straight = finish(process, place, 400)
    for name, ranks, number in [("one process", 0, signal.SIGTERM), ("two ranks", 2, signal.SIGINT)]:
        place = folder / name.replace(" ", "_")
        process = start(ranks, long_steps, place)
        check(wait_for(lambda: steps_of(place) >= 2, 200), "two long steps are done")
        time.sleep(0.2 * step_s)
        done = steps_of(place)
        asked = time.monotonic()
        os.kill(pids_of(place)[-1], number)
        stopped = finish(process, place)
        seconds = time.monotonic() - asked
        check(stopped.code == 75 and stopped.status["step"] in (done, done + 1) and steps_of(place) == stopped.status["step"],
              f"{name}: stopped after step {stopped.status['step']}, {done} steps were done when it was asked", stopped)
        if step_s > 3:  # on a machine where they are shorter the rest proves nothing
            check(seconds < 0.8 * step_s + 1, f"{name}: {seconds:.1f} s with steps of {step_s:.1f} s", stopped)
        rest = run(2, long_steps, place, limit_s=400)
        check(rest.code == 0 and rest.losses == straight.losses and rest.weights_hash() == straight.weights_hash() and
              rest.knn == straight.knn, f"{name}: resumed to the same bits", rest)

    # In an evaluation: the run that resumes makes it first.
    evaluating = dict(long_steps, **{"data.synthetic.test_images": 1024, "evaluate.knn.every_epochs": 2})
    straight = run(2, evaluating, folder / "evaluating_straight", limit_s=400)
    place = folder / "in_evaluation"
    process = start(2, evaluating, place)
    check(wait_for(lambda: steps_of(place) >= 4, 200), "the epoch is done")
    time.sleep(0.3)
    os.kill(pids_of(place)[1], signal.SIGUSR1)
    stopped = finish(process, place)
    check(stopped.code == 75 and (stopped.status["step"] == 4 or step_s < 3), "asked in an evaluation: saved after its step", stopped)
    check(4 not in stopped.knn or step_s < 3, "it was abandoned", stopped)
    rest = run(1, evaluating, place, limit_s=400)
    check(rest.code == 0 and rest.knn == straight.knn and rest.losses == straight.losses and
          rest.weights_hash() == straight.weights_hash(), "the evaluation is made by the run that resumes", rest)

    # Stopped while the run still reads its data: nothing is trained yet, and it is not a failure.
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

    # In MPI_Init, when ranks cannot communicate yet.
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
