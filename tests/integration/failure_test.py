"""Ranks that die, stall or disagree, and numbers that blow up: the job ends in time, reports the reason once, leaves no process."""

import os
import resource
import signal
import subprocess
import time

from program import MPIRUN, PROGRAM, SMALL, Folder, check, command, environment, finish, pids_of, run, start, wait_for

with Folder() as folder:
    long = dict(SMALL, **{"run.threads": 1, "train.epochs": 100000, "evaluate.knn.every_epochs": 0, "checkpoint.every_epochs": 1000,
                          "train.timeout_s": 4})

    def training(place, ranks=4):
        process = start(ranks, long, place)
        check(wait_for(lambda: (place / "metrics.jsonl").exists() and '"loss"' in (place / "metrics.jsonl").read_text()),
              "the job trains")
        return process, pids_of(place)

    def gone(place):
        return wait_for(lambda: not pids_of(place), 15)

    place = folder / "killed"
    process, pids = training(place)
    os.kill(pids[2], signal.SIGKILL)
    result = finish(process, place, 30)
    check(result.code != 0 and result.seconds < 30, f"one rank killed: ends non-zero after {result.seconds:.1f} s", result)
    check(gone(place), "no process is left", result)

    place = folder / "stopped"
    process, pids = training(place)
    os.kill(pids[1], signal.SIGSTOP)
    result = finish(process, place, 40)
    check(result.code != 0 and result.seconds < 25, f"one rank stopped: ends non-zero after {result.seconds:.1f} s", result)
    named = [line for line in result.output.splitlines() if "sign of life" in line or "made no progress" in line]
    check(len(named) == 1 and "rank 1 " in named[0], f"the rank is named once: {named}", result)
    check(result.status["state"] == "failed" and result.status["exit_code"] == 4, "status.json says failed, 4", result)
    check(gone(place), "no process is left", result)

    # One rank with another configuration.
    place = folder / "other"
    base = command(1, SMALL, place)
    words = base[base.index(str(PROGRAM)):]
    odd = ["loss.temperature=0.3" if w.startswith("loss.temperature=") else w for w in words]
    job = [MPIRUN, "--oversubscribe", "--bind-to", "none", "-np", "3"] + words + [":", "-np", "1"] + odd
    began = time.monotonic()
    result = subprocess.run(job, capture_output=True, text=True, env=environment(), timeout=60)
    output = result.stdout + result.stderr
    check(result.returncode == 2 and "rank 3" in output and "loss.temperature is 0.3 here and 0.2 on rank 0" in output,
          f"another configuration on rank 3: exit code 2 after {time.monotonic() - began:.1f} s: {output}")

    # One rank whose oneDNN may use fewer instruction sets: its bits would differ. AVX and SSE4.1 share a layout.
    place = folder / "other_instructions"
    for limit, odd_limit in [("AVX2", "AVX"), ("AVX", "SSE41")]:
        base = command(1, SMALL, place)
        words = base[base.index(str(PROGRAM)):]
        job = [MPIRUN, "--oversubscribe", "--bind-to", "none", "-np", "1", "env", f"DNNL_MAX_CPU_ISA={limit}"] + words
        job += [":", "-np", "1", "env", f"DNNL_MAX_CPU_ISA={odd_limit}"] + words
        result = subprocess.run(job, capture_output=True, text=True, env=environment(), timeout=60)
        output = result.stdout + result.stderr
        check(result.returncode == 4 and "libraries" in output and "use one image on all hosts" in output,
              f"{limit} on rank 0, {odd_limit} on rank 1: refused: {output}")
    check(run(1, SMALL | {"train.stop_at_step": 3}, place).code == 75, "stopped with all instruction sets")
    os.environ["DNNL_MAX_CPU_ISA"] = "AVX"
    other = run(1, SMALL | {"train.stop_at_step": 4}, place)
    del os.environ["DNNL_MAX_CPU_ISA"]
    check(other.code == 75 and "was written with other libraries" in other.output and "AVX," in other.output,
          "a resume with fewer instruction sets warns", other)

    # Rank 0 can no longer let a file grow: all ranks end in order with its reason, the checkpoints stay.
    for name, every, allowed, file in [("metrics", 40, lambda size: size + 1, "metrics.jsonl"),
                                       ("checkpoint", 10, lambda size: size + 30000, "checkpoints/step_")]:
        place = folder / f"full_{name}"
        process = start(2, dict(long, **{"checkpoint.every_steps": every, "log.every_steps": 1000}), place)
        check(wait_for(lambda: list((place / "checkpoints").glob("step_*.safetensors"))), "a checkpoint is written")
        limit = allowed((place / "metrics.jsonl").stat().st_size)
        resource.prlimit(pids_of(place)[0], resource.RLIMIT_FSIZE, (limit, limit))
        result = finish(process, place, 30)
        errors = [line for line in result.output.splitlines() if "error: " in line]
        check(result.code == 6 and len(errors) == 1 and f"{place}/{file}" in errors[0] and "File too large" in errors[0],
              f"no room for {name}: exit code 6 and {errors}", result)
        check("MPI_ABORT" not in result.output and result.status["state"] == "failed" and
              result.status["exit_code"] == 6, "in order, and status.json says so", result)
        check(os.listdir(place / "checkpoints") and all(result.weights_hash(c) for c in result.checkpoints) and
              len(os.listdir(place / "checkpoints")) == len(result.checkpoints), "whole checkpoints and nothing else", result)
        check(gone(place), "no process is left", result)

    # Long work before the first step is not a stall: drawing and hashing the images takes some seconds.
    patient = dict(SMALL, **{"data.synthetic.train_images": 60000, "train.max_steps": 2, "evaluate.knn.every_epochs": 0,
                             "train.timeout_s": 2})
    result = run(0, patient, folder / "patient")
    check(result.code == 0, f"more work than train.timeout_s at the start ({result.seconds:.1f} s) ends with 0", result)

    # A loss that is not finite: the step named, weights and checkpoint untouched, 5 on all ranks.
    place = folder / "diverged"
    wild = dict(SMALL, **{"run.threads": 1, "optimizer.base_lr": 1e30, "optimizer.momentum": 0, "checkpoint.every_steps": 1})
    result = run(2, wild, place)
    check(result.code == 5 and "not finite" in result.output, "a diverging run ends with 5", result)
    check(result.status["state"] == "failed" and result.status["exit_code"] == 5, "status.json says failed, 5", result)
    bad = [m["step"] for m in result.metrics if "loss_text" in m or ("loss" in m and m["loss"] is None)]
    saved = max(int(c.name[5:13]) for c in result.checkpoints)
    check(f"step {saved + 1}:" in result.output, f"checkpoint {saved} is the last good one (bad losses at {bad})", result)
