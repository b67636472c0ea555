#!/usr/bin/env python3
"""Speed of the parts of training, compared with PyTorch in the same run: steps, loss, views, sums over ranks, peak memory.

Usage: step_table.py [--quick] [--only steps loss views sums] [--torch PYTHON...] [--build FOLDER] [--threads N]
                     [--views 64 256 512] [--precisions fp32 bf16] [--torch-modes eager compile] [--ranks 1 2 4] [--rounds 3] [--repeats 3]

PYTHON (default: the one that runs this) has PyTorch and torchvision, which come from you:

    python3 -m venv v && v/bin/pip install torch torchvision numpy
    python3 scripts/step_table.py --torch v/bin/python              # several: each is measured, the best is what we are held to

FOLDER (default: build/cpu-release) is built if need be. Every measurement is a process of its own; the candidates take
turns, round by round, so that a busy machine slows all of them alike; medians over all rounds are printed. Both sides run at
their best: PyTorch in channels_last, compiled and not, with a malloc that keeps its memory (speed/run.py), as many threads on both.
A step is two views of B images through encoder and projector, loss, backward, sums of gradients, SGD with momentum;
`views` is 2B, the rows that the network sees. Memory is the peak beyond what the process held before it made the network.
--quick: minutes instead of an hour; for a look, not for a figure that one publishes.
"""
import argparse
import os
import pathlib
import subprocess
import sys

from speed import run, steps, sums, views

LOSS_TABLE = pathlib.Path(__file__).resolve().parent / "loss_table.py"
INSTALL = "install torch, torchvision and numpy into a virtual environment and name its python with --torch (the head of this file says how)"


def versions_of(pythons):
    """{python: version of its PyTorch}, so that a missing one is reported before an hour of measuring."""
    found = {}
    for python in pythons:
        try:
            done = subprocess.run([python, "-c", "import numpy, torch, torchvision; print(torch.__version__)"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        except OSError as error:
            sys.exit(f"{error}; {INSTALL}")
        if done.returncode:
            sys.exit(f"{python}: {(done.stderr.splitlines() or ['it failed'])[-1]}; {INSTALL}")
        found[python] = done.stdout.strip()
    return found


def loss(options):
    rows = ["1024"] if options.quick else ["1024", "4096", "16384"]
    for python in options.torches:
        subprocess.run([python, LOSS_TABLE, "--build", options.build, "--threads", str(options.threads), "--rows", *rows, "--rounds",
                        str(options.rounds), "--repeats", str(options.repeats)], check=True)


PARTS = {"steps": steps.measure, "loss": loss, "views": views.measure, "sums": sums.measure}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--torch", nargs="+", default=[sys.executable], metavar="PYTHON")
    parser.add_argument("--build", type=pathlib.Path, default=run.ROOT / "build" / "cpu-release")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--views", type=int, nargs="+", default=[64, 256, 512])
    parser.add_argument("--precisions", nargs="+", choices=["fp32", "bf16"], default=["fp32", "bf16"])
    parser.add_argument("--torch-modes", nargs="+", choices=["eager", "compile"], default=["eager", "compile"])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.quick:
        options.views, options.torch_modes, options.rounds, options.repeats = [64], ["eager"], 1, 3
    options.torches = versions_of(options.torch) if set(options.only) - {"sums"} else {}
    run.build(options.build, ["simclr_train", "step_run", "sum_run", "loss_run", "augment_bench"])
    print(f"{run.machine()}; {options.threads} threads; commit {run.commit()}; PyTorch {', '.join(options.torches.values()) or 'not asked'}; "
          f"medians of {options.rounds} rounds of {options.repeats}; {run.load()}")
    for part in options.only:
        print(f"\n## {part}\n", flush=True)
        PARTS[part](options)
    print(f"\n{run.load()} at the end")


if __name__ == "__main__":
    main()
