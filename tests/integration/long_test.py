"""A run of many epochs: no growth of memory or open files, and four ranks log no more than one.

long_test.py PROGRAM MPIRUN [EPOCHS]: 300 by default.
"""

import os
import pathlib
import re
import sys
import time

from program import SMALL, Folder, check, finish, pids_of, run, start, wait_for

epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 300
STEPS_AN_EPOCH = 2
SETTINGS = dict(SMALL, **{"run.threads": 1, "data.image_size": 8, "data.synthetic.train_images": 64, "train.epochs": epochs,
                          "checkpoint.every_epochs": 10, "evaluate.knn.every_epochs": 20, "data.workers": 1})
MOST_GROWTH_KB = 4000  # heaps breathe


def resident_kb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))


def open_files(pid):
    """The minimum over a moment, which excludes the files of a checkpoint that is being written."""
    fewest = len(os.listdir(f"/proc/{pid}/fd"))
    for _ in range(20):
        time.sleep(0.005)
        fewest = min(fewest, len(os.listdir(f"/proc/{pid}/fd")))
    return fewest


with Folder() as folder:
    place = folder / "long"
    process = start(2, SETTINGS, place)
    samples = []
    for share in (0.2, 0.8):
        step = int(share * epochs * STEPS_AN_EPOCH)
        check(wait_for(lambda: (place / "metrics.jsonl").exists() and f'"step":{step},' in (place / "metrics.jsonl").read_text(),
                       limit_s=600), f"step {step} is done")
        samples.append([(resident_kb(pid), open_files(pid)) for pid in pids_of(place)])
    long = finish(process, place, limit_s=300)
    check(long.code == 0, "the run ends with 0", long)
    for rank, ((early_kb, early_files), (late_kb, late_files)) in enumerate(zip(*samples)):
        check(late_kb - early_kb < MOST_GROWTH_KB and late_files <= early_files,
              f"rank {rank}: {early_kb} kB and {early_files} files early, {late_kb} kB and {late_files} files late")
    check(len(long.checkpoints) == 3, "three checkpoints are kept", long)

    def lines_of(ranks):
        result = run(ranks, dict(SETTINGS, **{"train.epochs": 10}), folder / f"ranks_{ranks}")
        check(result.code == 0, f"{ranks} ranks end with 0", result)
        return [line.split("images/s")[0].rsplit(" ", 2)[0] for line in result.output.splitlines()
                if line.startswith("step ") and "/s" in line]

    one = lines_of(1)
    check(len(one) == 2 and lines_of(4) == one, "the progress lines of four ranks are those of one")
