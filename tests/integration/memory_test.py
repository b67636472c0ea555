"""Memory of a rank as --dry-run predicts it, compared with the peak of a real run (ru_maxrss, which is VmHWM); and runs
that exceed the memory of the host or of a control group, which are refused before they begin."""

import math
import os
import pathlib
import re
import subprocess

from program import CIFAR, Folder, check, command, environment, pids_of, run, write_cifar

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
        found = re.search(r"peak memory per rank: (\d+) MB: feature maps (\d+),.*; (\d+) MB available, enough for "
                          r"a global batch of .*?(\d+)", dry)
        check(found, f"{name}: --dry-run reports the memory", None if found else dry)
        predicted, maps, available, largest = map(int, found.groups())
        _, peak = finish(BASE | case, tmp / name.replace(" ", "_"))
        # oneDNN reserves for a convolution by matrix products four gradients of the weights that one thread never touches.
        untouched = int(re.search(r"scratch (\d+)", dry).group(1)) if "matrix product" in dry else 0
        check(-0.1 * peak < predicted - peak < 0.1 * peak + untouched, f"{name}: {predicted} MB are predicted, {peak:.0f} MB are the peak")
        check(held < predicted - 0.8 * maps, f"and the dry run itself takes {held:.0f} MB, without the feature maps")
        check(predicted < available and largest >= case["train.global_batch"] and largest % 4 == 0, f"up to {largest} images fit")

    # More than any host has: feature maps grow with the square of the images' sides.
    megabytes = sum(int(n) for n in re.findall(r"(?:MemTotal|SwapTotal): +(\d+) kB", pathlib.Path("/proc/meminfo").read_text())) // 1000
    side = 32 * math.ceil(math.sqrt(3 * megabytes / 2700))
    huge = dict(CIFAR, **{"data.path": write_cifar(tmp / "cifar", records=60), "data.image_size": side, "model.encoder.depth": 18,
                          "model.encoder.width": 64, "train.global_batch": 256, "evaluate.knn.every_epochs": 0, "run.device": "cpu"})

    def refused(name, settings, ranks, result, words):
        lines = [line for line in result.output.splitlines() if line.startswith("error: ")]
        check(result.code == 4 and len(lines) == 1 and all(word in lines[0] for word in words) and not pids_of(result.folder) and
              result.seconds < 30, f"{name}: {ranks} ranks are refused after {result.seconds:.1f} s: {lines}", result)
        return int((re.search(r"use at most (\d+)", lines[0]) or [0, 0])[1])

    for ranks in (0, 1, 2):
        place = tmp / f"huge_{ranks}"
        refused("three times the host's memory", huge, ranks, run(ranks, huge, place),
                ["train.global_batch 256 does not fit into memory", "the host has ", "the 2 ranks here" if ranks == 2 else "this rank"])
        check(not (place / "metrics.jsonl").exists(), "nothing was trained")

    # A control group of 600 MB: the batch that the error suggests fits.
    class Group:
        """A memory control group that processes of this test can be started in; None where it cannot be made."""

        def __enter__(self):
            for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
                self.path = pathlib.Path(root) / f"simclr_test_{os.getpid()}"
                try:
                    self.path.mkdir()
                    (self.path / limit).write_text("600000000")
                    return self.path
                except OSError:
                    self.__exit__()
            return None

        def __exit__(self, *unused):
            if self.path.exists():
                self.path.rmdir()

    case = BASE | CASES["ResNet-10"] | {"train.global_batch": 256, "run.threads": 1}
    with Group() as group:
        if group is None:
            print("no control group can be made here: what it allows is not tried")
        else:
            def inside(settings, place):
                home = [line.split(":")[2] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
                        if (":memory:" in line if group.parent.name == "memory" else line.startswith("0::"))][0]
                (group / "cgroup.procs").write_text(str(os.getpid()))
                try:
                    return run(2, settings, place)
                finally:
                    (group.parent / home.lstrip("/") / "cgroup.procs").write_text(str(os.getpid()))

            largest = refused("a control group of 600 MB", case, 2, inside(case, tmp / "group"),
                              ["train.global_batch 256", "the 2 ranks here", f"the control group /{group.name} allows 600 MB"])
            check(128 <= largest < 256, f"{largest} are said to fit")
            result = inside(case | {"train.global_batch": largest}, tmp / "group")
            check(result.code == 0, f"and they do: the peak of the group was {(group / 'memory.max_usage_in_bytes').read_text().strip()} bytes"
                  if (group / "memory.max_usage_in_bytes").exists() else "and they do", result)
