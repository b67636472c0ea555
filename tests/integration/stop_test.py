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

    # A machine that is taken away while the run reads its data: nothing is trained yet, and it is no failure.
    place = folder / "early"
    process = start(2, dict(settings, **{"data.synthetic.train_images": 20000}), place)
    check(wait_for(lambda: (place / "train.log").exists()), "the start is under way")
    check(not (place / "status.json").exists(), "and not done")
    os.kill(pids_of(place)[0], signal.SIGUSR1)
    stopped = finish(process, place)
    check(stopped.code == 75 and stopped.status["state"] == "stopped" and stopped.status["step"] <= 3,
          "SIGUSR1 while it starts: a checkpoint after the first steps, exit code 75", stopped)
