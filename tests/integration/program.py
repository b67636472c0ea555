"""Runs simclr_train under mpirun in a temporary folder and reads the files it leaves. Standard library only.

Each test script gets the program and mpirun as its first two arguments and calls check(); the first false one ends it.
"""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import survivors

# A shell starts background jobs with SIGINT ignored, nohup with SIGHUP, and a program inherits what is ignored. The tests
# send both signals.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def arguments(count, names="SIMCLR_TRAIN MPIRUN"):
    """The first `count` words of the command line; ends with one line of usage when there are fewer."""
    if len(sys.argv) <= count:
        sys.exit(f"usage: {pathlib.Path(sys.argv[0]).name} {names}; ctest -V -N -R program_ prints whole command lines")
    return sys.argv[1:count + 1]


PROGRAM, MPIRUN = pathlib.Path(arguments(2)[0]).resolve(), arguments(2)[1]

# Small enough that eight ranks on two cores take seconds, large enough to have every kind of layer.
SMALL = {
    "run.seed": 3,
    "data.synthetic.train_images": 160,
    "data.synthetic.test_images": 48,
    "data.image_size": 16,
    "model.encoder.depth": 10,
    "model.encoder.width": 8,
    "model.projector.hidden": 24,
    "model.projector.output": 16,
    "loss.temperature": 0.2,
    "train.global_batch": 32,
    "train.shards": 8,
    "train.epochs": 2,
    "train.timeout_s": 60,
    "optimizer.base_lr": 0.05,
    "optimizer.lr_scaling": "none",
    "evaluate.knn.every_epochs": 1,
    "evaluate.knn.k": 5,
}

# The same on files in the layout of CIFAR-10; data.path is for the test to set.
CIFAR = {k: v for k, v in SMALL.items() if not k.startswith("data.synthetic")} | {"data.format": "cifar10"}
CIFAR_RECORD = 3073


def write_cifar(folder, records=20):
    """Five training files and a test file of `records` records each, no two images alike."""
    folder.mkdir()
    for file, name in enumerate(["test_batch"] + [f"data_batch_{i}" for i in range(1, 6)]):
        (folder / f"{name}.bin").write_bytes(b"".join(
            bytes([r % 10]) + bytes((file * 50 + r * 7 + k * (r % 5 + 1)) % 256 for k in range(CIFAR_RECORD - 1))
            for r in range(records)))
    return folder


def write_png(path, side, seed):
    """Gray, 8 bits; each seed gives another image."""
    rows = b"".join(b"\0" + bytes((seed * 31 + x * (seed % 7 + 1) + y * 5) % 256 for x in range(side)) for y in range(side))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks))


def write_image_folder(folder, per_class=16):
    """image_folder with two classes in train and test; sides from 20 to 35 pixels."""
    for number, place in enumerate(folder / split / name for split in ("train", "test") for name in ("a", "b")):
        place.mkdir(parents=True)
        for i in range(per_class):
            write_png(place / f"{i}.png", 20 + i % 16, number * per_class + i)
    return folder


def environment(threads_passive=True):
    env = dict(os.environ)
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
    if threads_passive:
        env["OMP_WAIT_POLICY"] = "passive"
    return env


class Run:
    """One finished run: exit code, output, and the files of its folder."""

    def __init__(self, code, output, folder, seconds):
        self.code, self.output, self.folder, self.seconds = code, output, folder, seconds

    @property
    def metrics(self):
        lines = (self.folder / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    @property
    def losses(self):
        """The text of each step's loss: equal text means equal bits."""
        lines = (self.folder / "metrics.jsonl").read_text().splitlines()
        return {json.loads(line)["step"]: line.split('"loss":')[1].split(",")[0] for line in lines if '"loss":' in line}

    @property
    def knn(self):
        return {m["step"]: m["knn_top1"] for m in self.metrics if "knn_top1" in m}

    @property
    def status(self):
        return json.loads((self.folder / "status.json").read_text())

    @property
    def checkpoints(self):
        return sorted((self.folder / "checkpoints").glob("step_*.safetensors"))

    def state_hash(self, checkpoint=None):
        """Of all tensors of a checkpoint: weights, statistics and optimizer state, without the metadata."""
        data = (checkpoint or self.checkpoints[-1]).read_bytes()
        return hashlib.sha256(data[8 + int.from_bytes(data[:8], "little"):]).hexdigest()

    def weights_hash(self, checkpoint=None):
        checkpoint = checkpoint or self.checkpoints[-1]
        text = subprocess.run([PROGRAM, "info", checkpoint], check=True, capture_output=True, text=True).stdout
        return [line for line in text.splitlines() if line.startswith("weights sha256: ")][0]


def command(ranks, settings, folder, extra=()):
    config = folder.parent / (folder.name + ".yaml")
    if not config.exists():
        config.write_text("{}\n")
    words = [str(PROGRAM), "--config", str(config), "--output", str(folder)]
    for key, value in settings.items():
        words += ["--set", f"{key}={value}"]
    words += list(extra)
    if ranks == 0:  # without a launcher
        return words
    return [MPIRUN, "--oversubscribe", "--bind-to", "none", "-np", str(ranks)] + words


def start(ranks, settings, folder, extra=()):
    return subprocess.Popen(command(ranks, settings, folder, extra), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, env=environment(), start_new_session=True)


def finish(process, folder, limit_s=100):
    began = time.monotonic()
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        seen = survivors.describe(survivors.group_of(process.pid) + pids_of(folder), folder)
        kill_all(process, folder)
        output, _ = process.communicate()
        fail(f"still running after {limit_s} s:\n{output}\n{seen}")
    return Run(process.returncode, output, folder, time.monotonic() - began)


def kill_all(process, folder):
    """The launcher, what is in its process group, and the ranks, which mpirun gives groups of their own."""
    for pid in survivors.group_of(process.pid) + pids_of(folder):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def run(ranks, settings, folder, extra=(), limit_s=100):
    return finish(start(ranks, settings, folder, extra), folder, limit_s)


def lacks_bf16(folder):
    """Why this CPU cannot compute in bf16; empty when it can."""
    result = run(0, dict(SMALL, **{"run.precision": "bf16", "run.device": "cpu"}), folder / "bf16_dry", ["--dry-run"])
    if result.code == 0:
        return ""
    check(result.code == 2 and "AVX512_BF16" in result.output, "bf16 is refused with what the CPU lacks", result)
    return result.output.strip().splitlines()[-1]


def wait_for(condition, limit_s=60):
    """True as soon as condition() is; a test that waits for a file or a step calls it."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def pids_of(folder):
    """Processes of the program that work in this folder (its path is on their command line), by rank."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                rank = [w for w in (entry / "environ").read_bytes().split(b"\0") if w.startswith(b"OMPI_COMM_WORLD_RANK=")]
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state != "Z" and words[0] == str(PROGRAM).encode() and str(folder).encode() in words:
                found.append((int(rank[0].split(b"=")[1]) if rank else 0, int(entry.name)))
    return [pid for _, pid in sorted(found)]


def fail(text):
    print("FAILED:", text)
    sys.exit(1)


def check(condition, text, result=None):
    if not condition:
        fail(text + (f"\nexit code {result.code}, output:\n{result.output}" if result else ""))
    print("ok:", text, flush=True)


class Folder:
    """A temporary folder that is removed at the end, whatever happens."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="simclr_test_"))
        return self.path

    def __exit__(self, *unused):
        shutil.rmtree(self.path, ignore_errors=True)
