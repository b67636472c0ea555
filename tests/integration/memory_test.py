"""What --dry-run says of the memory of a rank, held against the peak of a real run (ru_maxrss, which is VmHWM)."""

import os
import re
import subprocess

from program import Folder, check, command, environment

BASE = {
    "run.device": "cpu",
    "run.threads": 2,
    "data.synthetic.train_images": 512,
    "data.synthetic.test_images": 64,
    "train.shards": 4,
    "train.max_steps": 2,
    "train.timeout_s": 120,
    "log.report": "false",
    "log.tensorboard": "false",
}
CASES = {
    "ResNet-10": {"model.encoder.depth": 10, "model.encoder.width": 32, "train.global_batch": 128},
    "ResNet-18": {"model.encoder.depth": 18, "model.encoder.width": 64, "train.global_batch": 32},
    "ResNet-18, imagenet stem": {"model.encoder.depth": 18, "model.encoder.width": 64, "model.encoder.stem": "imagenet",
                                 "data.image_size": 64, "train.global_batch": 64},
}


def finish(settings, folder, extra=()):
    """Output and peak memory in MB of one process without a launcher."""
    process = subprocess.Popen(command(0, settings, folder, extra), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=environment())
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    check(process.returncode == 0, f"ends well: {folder.name} {' '.join(extra)}" + ("" if process.returncode == 0 else "\n" + output))
    return output, usage.ru_maxrss * 1024e-6


with Folder() as tmp:
    for name, case in CASES.items():
        dry, held = finish(BASE | case, tmp / name.split(",")[0], ["--dry-run"])
        found = re.search(r"memory of a rank at its peak: (\d+) MB: feature maps (\d+),.*; (\d+) MB are there for it, enough for "
                          r"a global batch of .*?(\d+)", dry)
        check(found, f"{name}: --dry-run tells the memory", None if found else dry)
        predicted, maps, available, largest = map(int, found.groups())
        _, peak = finish(BASE | case, tmp / name.replace(" ", "_"))
        check(abs(predicted - peak) < 0.1 * peak, f"{name}: {predicted} MB are said, {peak:.0f} MB are the peak")
        check(held < predicted - 0.8 * maps, f"and the dry run itself takes {held:.0f} MB, without the feature maps")
        check(predicted < available and largest >= case["train.global_batch"] and largest % 4 == 0, f"up to {largest} images fit")
