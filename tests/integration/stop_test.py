"""SIGUSR1 to mpirun, SIGTERM to one rank: a checkpoint at the same step on all ranks, exit code 75, and the run goes on."""

import os
import signal

from program import SMALL, Folder, check, finish, pids_of, run, start, wait_for

with Folder() as folder:
    settings = dict(SMALL, **{"run.threads": 1, "train.epochs": 60})
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
        check(stopped.status["state"] == "stopped" and 0 < step < 300 and
              stopped.status["checkpoint"] == f"checkpoints/step_{step:08d}.safetensors", "status.json tells it", stopped)
        rest = run(4, settings, place)
        check(rest.code == 0 and rest.losses == straight.losses and rest.weights_hash() == straight.weights_hash(),
              f"{name}: resumed to the same bits", rest)
