#!/usr/bin/env python3
"""Step time by the number of ranks: measured on this machine, and on paper for many.

Usage: scaling_model.py [--build FOLDER] [--network resnet10|resnet18] [--batch 256] [--shards 8] [--set KEY=VALUE...]
                        [--network-gbit 1 10 100] [--network-us 30 15 3] [--ranks 1 2 4 8 16 32 64] [--threads 1] [--rounds 5] [--repeats 3]

It times steps of one rank on one thread with all shards and with half of them (the difference is what shards cost), counts
the collectives of a step of two ranks, times sums over two ranks, and puts the figures into the formula at the head of
speed/scaling.py, which also lists the assumptions. The first table holds the formula to real runs on this machine; the next ones
use it where there is no machine: --threads cores for each rank and a network of the given bandwidth and latency.
Strong scaling: the batch and its shards stay, ranks share them. Weak: each rank brings --shards shards of its own.
--batch is in images, two views each. FOLDER (default: build/cpu-release) is built if need be.
"""
import argparse
import dataclasses
import os
import pathlib
import sys

from speed import run
from speed.scaling import Link, Work, communication_seconds, step_seconds

NETWORKS = {"resnet10": ["model.encoder.depth=10", "model.encoder.width=32", "model.projector.hidden=256"],
            "resnet18": ["model.encoder.depth=18", "model.encoder.width=64", "model.projector.hidden=512"]}


def step_words(options, batch, shards, threads):
    return [options.build / "step_run", options.repeats, *NETWORKS[options.network], f"train.global_batch={batch}", f"train.shards={shards}",
            f"run.threads={threads}", *options.set]


def measure_work(options):
    """Work of one step. Shards cost what all of them take beyond half of them, of the same shape; the rest is the rank's."""
    whole, half = step_words(options, options.batch, options.shards, 1), step_words(options, options.batch // 2, options.shards // 2, 1)
    results = run.alternate({"whole": whole, "half": half}, options.rounds, lambda words: run.call(words, 1))
    if len(results) < 2:
        sys.exit(1)
    # One thread computes all the time: seconds of the processor are those of the clock without other work on the machine.
    loss = {name: run.least(runs, "loss_seconds") for name, runs in results.items()}
    network = {name: run.median(runs, "cpu_seconds") - loss[name] for name, runs in results.items()}
    shard = (network["whole"] - network["half"]) / (options.shards / 2)
    counted = run.call(run.mpirun(2, step_words(options, options.batch, options.shards, 1)), 1)["collectives"]
    sizes = lambda *names: [(row["calls"], row["bytes"]) for row in counted if row["operation"] in names]
    gradients = sizes("gradient_sum")
    return Work(shards=options.shards, shard_seconds=shard, rank_seconds=max(0.0, network["whole"] - options.shards * shard),
                loss_seconds=loss["whole"], gradient_bytes=sum(calls * size for calls, size in gradients),
                sums=sizes("ordered_sum", "reduce_scatter"), gathers=sizes("all_gather"))


def measure_link(options, elements):
    """Shared memory between two ranks, when both are there: the least of many."""
    runs = [run.call(run.mpirun(2, [options.build / "sum_run", elements, 5]), 1) for _ in range(options.rounds)]
    return Link(bandwidth=elements * 4 / run.least(runs, "ordered_seconds"), latency=run.least(runs, "short_seconds"))


def check(options, work, link):
    cores = len(os.sched_getaffinity(0))
    print(f"\n## Measured on this machine, {cores} cores\n")
    print("| ranks | threads each | step, ms | by the formula | off by | gradient sums, % of the step | other collectives, % | waiting for each other, % |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    cases = {(ranks, threads): run.mpirun(ranks, step_words(options, options.batch, options.shards, threads))
             for ranks, threads in [(1, cores), (1, 1), *((w, max(1, cores // w)) for w in (2, 4, 8) if w <= options.shards)]}
    results = run.alternate(cases, options.rounds, lambda words: run.call(words, 1, OMP_WAIT_POLICY="passive"))
    for (ranks, threads), runs in results.items():
        step = run.median(runs, "seconds")
        model = step_seconds(work, ranks, threads, link, cores)
        # Medians over rounds of what the counted steps took.
        rows = [{"gradients": sum(row["seconds"] for row in r["collectives"] if row["operation"] == "gradient_sum"),
                 "others": sum(row["seconds"] for row in r["collectives"] if row["operation"] != "gradient_sum"),
                 "waiting": sum(row["waited_seconds"] for row in r["collectives"])} for r in runs]
        shares = [100 * run.median(rows, key) / step for key in ("gradients", "others", "waiting")]
        print(f"| {ranks} | {threads} | {1e3 * step:.4g} | {1e3 * model:.4g} | {100 * (model / step - 1):+.0f} % | " +
              " | ".join(f"{share:.1f}" for share in shares) + " |", flush=True)


def weak(work, ranks):
    """Each rank brings the shards of `work`: the loss sees W times as many keys for each of W times as many rows."""
    scaled = lambda sizes: [(calls, size * ranks) for calls, size in sizes]
    return dataclasses.replace(work, shards=work.shards * ranks, loss_seconds=work.loss_seconds * ranks * ranks, gathers=scaled(work.gathers))


def paper(options, work):
    for gbit, micro in zip(options.network_gbit, options.network_us):
        link = Link(bandwidth=gbit * 1e9 / 8, latency=micro * 1e-6)
        print(f"\n## On paper: {gbit:g} Gbit/s, {micro:g} us, {options.threads} cores a rank\n")
        print("| ranks | strong: images/s | of ideal | exchange | weak: batch | images/s | of ideal | exchange |")
        print("|---|---|---|---|---|---|---|---|")
        alone = step_seconds(work, 1, options.threads, link)
        for ranks in options.ranks:
            cells = []
            for kind, what in (("strong", work), ("weak", weak(work, ranks))):
                if what.shards % ranks:
                    cells += ["", "", ""] if kind == "strong" else ["", "", "", ""]
                    continue
                batch = options.batch * (ranks if kind == "weak" else 1)
                step = step_seconds(what, ranks, options.threads, link)
                share = communication_seconds(what, ranks, link) / step
                rate = batch / step
                cells += [*([str(batch)] if kind == "weak" else []), f"{rate:.4g}", f"{100 * rate * alone / options.batch / ranks:.0f} %",
                          f"{100 * share:.0f} %"]
            print(f"| {ranks} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=run.ROOT / "build" / "cpu-release")
    parser.add_argument("--network", choices=NETWORKS, default="resnet10")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE")
    parser.add_argument("--network-gbit", type=float, nargs="+", default=[1, 10, 100])
    parser.add_argument("--network-us", type=float, nargs="+", default=[30, 15, 3])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    run.build(options.build, ["step_run", "sum_run"])
    print(f"{run.machine()}; commit {run.commit()}; {options.network}, batch {options.batch} in {options.shards} shards {' '.join(options.set)}; "
          f"medians of {options.rounds} rounds of {options.repeats}; {run.load()}", flush=True)
    work = measure_work(options)
    link = measure_link(options, work.gradient_bytes // 4)
    print(f"\na shard {1e3 * work.shard_seconds:.4g} ms, a rank's own part {1e3 * work.rank_seconds:.3g} ms, the loss {1e3 * work.loss_seconds:.3g} ms, on one "
          f"thread; {work.gradient_bytes / 1e6:.4g} MB of gradients; between two ranks here {link.bandwidth / 1e9:.3g} GB/s each way, {1e6 * link.latency:.3g} us")
    check(options, work, link)
    paper(options, work)


if __name__ == "__main__":
    main()
