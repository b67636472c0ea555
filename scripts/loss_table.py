#!/usr/bin/env python3
"""InfoNCE of this program (einsum, streaming) and of PyTorch side by side: time, peak memory, error of the gradient.

Usage: loss_table.py [--build FOLDER] [--threads N] [--rows 1024 4096 16384] [--columns 128] [--temperature 0.5]
                     [--rounds 5] [--repeats 3]

PyTorch and NumPy come from you, e.g. `python3 -m venv v && v/bin/pip install torch numpy && v/bin/python
scripts/loss_table.py`. FOLDER (default: build/cpu-release) is built if need be. Every measurement is a process of its own;
the three take turns, round by round, so that a busy machine slows all of them alike. What is timed is forward and
backward from projector outputs z [2B, C] to dL/dz, after one run that is not counted. Memory is the peak of the process
beyond what it held, inputs included, before the first run. The error of a gradient is |g - t| / |t|, t from
`simclr_train loss --precision fp64` on the same inputs; at the smallest size t is held to PyTorch in float64 as well.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from speed import run

ROOT = run.ROOT


def memory_bytes(name):
    """VmHWM: the most memory of this process so far; VmRSS: now."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {name} in /proc/self/status")


def torch_loss(z, temperature):
    """The obvious one: normalize, multiply, mask the diagonal, cross entropy."""
    import torch
    import torch.nn.functional as F
    rows = z.shape[0]
    e = F.normalize(z, dim=1)
    logits = e @ e.T / temperature
    logits = logits.masked_fill(torch.eye(rows, dtype=torch.bool), float("-inf"))
    return F.cross_entropy(logits, (torch.arange(rows) + rows // 2) % rows)


def run_torch(view1, view2, temperature, threads, repeats, grad1=None, grad2=None):
    """What bench/loss_run.cpp does, in this process."""
    import numpy as np
    import torch
    torch.set_num_threads(threads)
    z = torch.from_numpy(np.concatenate([np.load(view1), np.load(view2)])).requires_grad_()
    before = memory_bytes("VmRSS")
    seconds = []
    for repeat in range(-1, repeats):
        z.grad = None
        start = time.perf_counter()
        loss = torch_loss(z, temperature)
        loss.backward()
        if repeat >= 0:
            seconds.append(time.perf_counter() - start)
    peak = memory_bytes("VmHWM")
    if grad1:
        for path, grad in zip((grad1, grad2), z.grad.numpy().reshape(2, -1, z.shape[1])):
            np.save(path, grad)
    print(json.dumps({"loss": loss.item(), "seconds": seconds, "bytes": peak - before}))


def call(words, threads):
    # Waiting threads spin, which is the default: woken ones may share a core for longer than a small loss takes.
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="active")
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, text=True, env=env)
    if done.returncode:
        sys.exit(f"{words[0]} ended with {done.returncode}")
    return json.loads(done.stdout)


def head(options, torch_version):
    print(f"{run.machine()}, {options.threads} threads; commit {run.commit()}, PyTorch {torch_version}; "
          f"C = {options.columns}, temperature {options.temperature}; medians of {options.rounds} rounds of {options.repeats}")
    print()
    print("| 2B | | ms | times as fast as PyTorch | MB | error of the gradient |")
    print("|---|---|---|---|---|---|")


def measure(options, rows, folder):
    import numpy as np
    import torch
    generator = torch.Generator().manual_seed(rows)
    z1 = torch.randn(rows // 2, options.columns, generator=generator)
    z2 = z1 + 0.5 * torch.randn(rows // 2, options.columns, generator=generator)  # positives at cosine 0.89
    inputs = [folder / "z1.npy", folder / "z2.npy"]
    for path, z in zip(inputs, (z1, z2)):
        np.save(path, z.numpy())
    grads = [folder / "g1.npy", folder / "g2.npy"]
    read = lambda: np.concatenate([np.load(path) for path in grads]).astype(np.float64)

    # The files' type would round the gradient to float32: float64 files, of the same numbers.
    exact_inputs = [folder / "z1_64.npy", folder / "z2_64.npy"]
    for path, z in zip(exact_inputs, (z1, z2)):
        np.save(path, z.numpy().astype(np.float64))
    call([options.build / "simclr_train", "loss", *exact_inputs, "--temperature", options.temperature, "--precision", "fp64",
          "--json", "--grad1", grads[0], "--grad2", grads[1], "--threads", options.threads], options.threads)
    truth = read()
    error = lambda g: float(np.linalg.norm(g - truth) / np.linalg.norm(truth))
    if rows == min(options.rows):
        z = torch.cat([z1, z2]).double().requires_grad_()
        torch_loss(z, options.temperature).backward()
        if error(z.grad.numpy()) > 1e-11:
            sys.exit(f"fp64 and PyTorch in float64 differ by {error(z.grad.numpy())}")

    fixed = [*inputs, options.temperature, options.threads, options.repeats, *grads]
    commands = {"PyTorch": [sys.executable, __file__, "--worker", *fixed],
                "einsum": [options.build / "loss_run", "einsum", *fixed],
                "streaming": [options.build / "loss_run", "streaming", *fixed]}
    results = {name: [] for name in commands}
    errors = {}
    for _ in range(options.rounds):
        for name, words in commands.items():
            results[name].append(call(words, options.threads))
            errors[name] = error(read())
    seconds = {name: statistics.median(s for run in runs for s in run["seconds"]) for name, runs in results.items()}
    for name, runs in results.items():
        megabytes = statistics.median(run["bytes"] for run in runs) / 1e6
        print(f"| {rows} | {name} | {1000 * seconds[name]:.4g} | {seconds['PyTorch'] / seconds[name]:.1f} | "
              f"{megabytes:.4g} | {errors[name]:.1e} |", flush=True)


def main():
    if sys.argv[1:2] == ["--worker"]:
        view1, view2, temperature, threads, repeats, *grads = sys.argv[2:]
        run_torch(view1, view2, float(temperature), int(threads), int(repeats), *grads)
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "cpu-release")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rows", type=int, nargs="+", default=[1024, 4096, 16384])
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--temperature", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    try:
        import numpy  # noqa: F401
        import torch
    except ImportError as missing:
        sys.exit(f"{missing}; install torch and numpy into a virtual environment and start this with its python")
    run.build(options.build, ["loss_run", "simclr_train"])
    head(options, torch.__version__)
    with tempfile.TemporaryDirectory() as folder:
        for rows in options.rows:
            measure(options, rows, pathlib.Path(folder))


if __name__ == "__main__":
    main()
