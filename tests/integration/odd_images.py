"""Trains on each image of a MANIFEST.tsv (file, verdict, ...), unusual and damaged files, on one rank and on two.

Usage: odd_images.py PROGRAM MPIRUN FOLDER      FOLDER has MANIFEST.tsv and the files that it names; minutes, so no test of ctest
Each file stands among seven good images: one training step that needs them all has to end with 0 (verdict decode), or with 3
and one line that names the file (refuse); whatever it does, both numbers of ranks do the same. Then all of them in one folder
with data.on_error: skip. Prints what was counted, the largest peaks of memory and the longest runs.
"""

import collections
import os
import pathlib
import re
import subprocess
import time

from program import SMALL, Folder, Run, arguments, check, command, environment, fail, run, write_png

ODD = pathlib.Path(arguments(3, "SIMCLR_TRAIN MPIRUN FOLDER")[2]).resolve()
BATCH = 8
SETTINGS = {k: v for k, v in SMALL.items() if not k.startswith("data.synthetic")} | {
    "data.format": "image_folder", "train.global_batch": BATCH, "train.shards": 2, "train.epochs": 1, "checkpoint.every_epochs": 0,
    "evaluate.knn.every_epochs": 0, "log.report": "false", "log.tensorboard": "false", "log.every_steps": 1}


def rows():
    lines = (ODD / "MANIFEST.tsv").read_text().splitlines()[1:]
    return [(cells[0], cells[1].rstrip("*")) for cells in (line.split("\t") for line in lines)]


def with_peak(settings, folder):
    """A run without a launcher, and the peak of its memory in MB."""
    began = time.monotonic()
    process = subprocess.Popen(command(0, settings, folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment())
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(process.returncode, output, folder, time.monotonic() - began), usage.ru_maxrss * 1024e-6


def error_of(result):
    """The error line, without the rank that read the file."""
    lines = [line for line in result.output.splitlines() if line.startswith("error: ")]
    if len(lines) > 1:
        fail(f"more than one line of error:\n{result.output}")
    return re.sub(r"rank \d+ \([^)]*\): ", "", lines[0]) if lines else ""


def outcome(result):
    return result.code, error_of(result), list(result.losses.values()) if result.code == 0 else []


def one_by_one(folder):
    counts, peaks, seconds = collections.Counter(), [], []
    for number, (name, verdict) in enumerate(rows()):
        images = folder / f"images{number}" / "train" / "a"
        images.mkdir(parents=True)
        for i in range(BATCH - 1):
            write_png(images / f"good{i}.png", 20 + i, i)
        (images / pathlib.Path(name).name).symlink_to(ODD / name)
        settings = SETTINGS | {"data.path": images.parent.parent}
        alone, peak = with_peak(settings, folder / f"one{number}")
        two = run(2, settings, folder / f"two{number}")
        code, error, _ = outcome(alone)
        check(outcome(alone) == outcome(two), f"{name}: the same on two ranks", None if outcome(alone) == outcome(two) else two)
        right = {"decode": code == 0, "refuse": code == 3, "either": code in (0, 3)}[verdict]
        check(right and (code == 0 or pathlib.Path(name).name in error), f"{verdict}: {code} {error}", None if right else alone)
        counts[verdict, code] += 1
        peaks.append((round(peak), name, verdict, code))
        seconds += [(round(alone.seconds, 2), name, 1), (round(two.seconds, 2), name, 2)]
    return counts, peaks, seconds


def all_together(folder, refused):
    images = folder / "all" / "train" / "a"
    images.mkdir(parents=True)
    names = [name for name, _ in rows()]
    for number, name in enumerate(names):
        (images / f"{number:03}_{pathlib.Path(name).name}").symlink_to(ODD / name)
    settings = SETTINGS | {"data.path": images.parent.parent, "data.on_error": "skip"}
    results = {ranks: run(ranks, settings, folder / f"all{ranks}") for ranks in (1, 2)}
    steps = len(names) // BATCH
    for ranks, result in results.items():
        check(result.code == 0 and len(result.losses) == steps, f"skip on {ranks} rank(s): {steps} steps of {len(names)} images", result)
    check(results[1].losses == results[2].losses, "with the same losses")
    skipped = [re.findall(r"files skipped so far: (\d+)", r.output) for r in results.values()]
    check(skipped[0] == skipped[1] and 0 < int(skipped[0][-1]) <= refused, f"{skipped[0][-1]} skipped of the {refused} that were refused alone; the others were after the last full batch")


with Folder() as root:
    counts, peaks, seconds = one_by_one(root)
    all_together(root, sum(n for (_, code), n in counts.items() if code == 3))
    for (verdict, code), number in sorted(counts.items()):
        print(f"{verdict:7} exit code {code}: {number} files, on 1 and 2 ranks")
    peaks.sort()
    print(f"peak memory in MB: median {peaks[len(peaks) // 2][0]}, largest", *peaks[-5:])
    print("of those refused, largest", *[p for p in peaks if p[3] == 3][-5:])
    print("longest runs, seconds", *sorted(seconds)[-5:])
