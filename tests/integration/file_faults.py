"""Faults of files: disks, quotas, the run folder, checkpoints, data that change or are missing on one rank."""

import os
import resource
import shutil
import signal
import subprocess
import time

from faults import LONG, SHORT, Job, apart, check_status, fault, job, odd, row, rows
from program import CIFAR, PROGRAM, command, run, write_cifar, write_image_folder


def filling(text, bytes_left, file, settings=LONG, lines=1):
    @fault(text)
    def do(place, name):
        small = place.parent / f"{place.name}_disk"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(small)], capture_output=True).returncode != 0:
            print(f"    {text}: not done, mounting a small disk needs root")
            return
        try:
            inside = small / "run"
            it = job(2, settings, inside)
            it.trains()
            since = time.monotonic()
            free = os.statvfs(small)
            with open(small / "filler", "wb") as filler:
                filler.write(b"\1" * max(0, free.f_bavail * free.f_frsize - bytes_left))
            row(name, it, (6,), ("No space left", file), lines, since=since)
        finally:
            subprocess.run(["umount", "-l", str(small)])


filling("disk full: no room for a checkpoint", 8192, "checkpoints/step_", dict(LONG, **{"checkpoint.every_steps": 20}))
filling("disk full: no room for metrics.jsonl and train.log", 0, "metrics.jsonl", lines=2)  # status.json, too


@fault("quota: rank 0 may not let a file grow beyond 20 kB")
def quota(place, name):
    it = job(2, dict(LONG, **{"checkpoint.every_steps": 20, "log.every_steps": 1000}), place)
    it.trains()
    resource.prlimit(it.pids[0], resource.RLIMIT_FSIZE, (20000, 20000))
    row(name, it, (6,), ("File too large",))


@fault("stdout and stderr on /dev/full: status.json has the reason")
def full_terminal(place, name):
    with open("/dev/full", "w") as full:
        it = Job(command(0, SHORT, place), place, stdout=full)
    row(name, it, (6,), (), None)
    check_status(place, "failed", "cannot write to the standard output: No space left on device")


@fault("train.log is a symbolic link")
def linked_log(place, name):
    place.mkdir()
    (place.parent / "precious").write_text("x")
    (place / "train.log").symlink_to(place.parent / "precious")
    row(name, job(2, SHORT, place), (6,), ("train.log: it is a symbolic link",))
    if (place.parent / "precious").read_text() != "x":
        odd.append((name, "its target was written"))


@fault("a run folder on a disk that is mounted read-only")
def read_only(place, name):
    disk = place.parent / f"{place.name}_disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", str(disk)], capture_output=True).returncode != 0:
        print(f"    {name}: not done, mounting needs root")
        return
    try:
        words = [str(disk / "run") if word == str(place) else word for word in command(2, SHORT, place)]
        row(name, Job(words, disk / "run"), (6,), (str(disk),))
    finally:
        subprocess.run(["umount", "-l", str(disk)])


@fault("the run folder is removed while the job trains")
def removed(place, name):
    it = job(2, dict(LONG, **{"checkpoint.every_steps": 20}), place)
    it.trains()
    since = time.monotonic()
    shutil.rmtree(place)
    row(name, it, (6,), (str(place),), 2, since=since)  # status.json, too


@fault("a second job in the folder of the first")
def second(place, name):
    first = job(2, LONG, place)
    first.trains()
    it = job(2, LONG, place)
    try:
        output, _ = it.process.communicate(timeout=40)
        errors = [line for line in output.splitlines() if line.startswith("error: ")]
        wrong = [] if it.process.returncode == 6 and len(errors) == 1 and "in use" in errors[0] else ["not refused"]
    except subprocess.TimeoutExpired:
        wrong, errors = ["HANGS"], []
    seconds = time.monotonic() - it.began
    os.kill(first.pids[0], signal.SIGUSR1)
    first.process.communicate(timeout=40)
    rows.append((name, it.process.returncode, seconds, " / ".join(errors), len(it.pids), wrong))
    print(f"{len(rows):2}. {name}\n    exit code {it.process.returncode} after {seconds:.1f} s, {len(it.pids)} processes left"
          f"{'   <-- ' + '; '.join(wrong) if wrong else ''}\n    {' / '.join(errors)[:400]}", flush=True)
    odd.extend((name, output) for _ in wrong)


@fault("a lock file of a job that is gone")
def stale(place, name):
    place.mkdir()
    (place / "lock").write_text("process 1 on elsewhere since 2020-01-01T00:00:00Z\n")
    row(name, job(2, SHORT, place), (0,), (), 0)


def bad_checkpoint(text, change, words, settings=SHORT, codes=(6,)):
    @fault(f"resume from a checkpoint that is {text}")
    def do(place, name):
        checkpoint = place.parent / f"{place.name}.safetensors"
        data = bytearray(good_checkpoint(place.parent).read_bytes())
        checkpoint.write_bytes(change(data))
        row(name, job(2, settings, place, ["--resume", str(checkpoint)]), codes, (str(checkpoint),) + words)


def good_checkpoint(folder):
    if not (folder / "good").exists():
        assert run(2, SHORT, folder / "good").code == 0
    return sorted((folder / "good" / "checkpoints").glob("step_*"))[-1]


def with_header(text):
    return len(text).to_bytes(8, "little") + text


def flipped(data):
    data[-5] ^= 1
    return data


bad_checkpoint("empty", lambda data: b"", ())
bad_checkpoint("cut in half", lambda data: data[:len(data) // 2], ())
bad_checkpoint("flipped in one bit", flipped, ())
bad_checkpoint("another program's", lambda data: b"PK\3\4" + data, ())
bad_checkpoint("a header that claims 2^60 numbers",
               lambda data: with_header(b'{"conv1.weight":{"dtype":"F32","shape":[1152921504606846976],"data_offsets":[0,4611686018427387904]}}'), ())
bad_checkpoint("a header of 2^60 bytes", lambda data: (1 << 60).to_bytes(8, "little") + data[8:], ())
bad_checkpoint("of a wider network", lambda data: data, ("model.encoder.width: 8 -> 16",),
               dict(SHORT, **{"model.encoder.width": 16}), codes=(2,))


@fault("--resume auto, the newest checkpoint broken")
def fall_back(place, name):
    good_checkpoint(place.parent)
    shutil.copytree(place.parent / "good", place)
    newest = sorted((place / "checkpoints").glob("step_*"))[-1]
    newest.write_bytes(flipped(bytearray(newest.read_bytes())))
    row(name, job(2, SHORT, place, ["--resume", "auto"]), (0,), (newest.name, "step_00000008"), 0)


@fault("resume with another train.shards")
def other_shards(place, name):
    row(name, job(2, dict(SHORT, **{"train.shards": 4}), place, ["--resume", str(good_checkpoint(place.parent))]), (2, 6),
        ("train.shards", "8", "4"))


@fault("data files that only rank 1 of 2 does not find")
def blind(place, name):
    def for_rank_0(folder):
        if folder.parent.name.endswith("_0"):
            write_cifar(folder)
    it, _ = apart(CIFAR, place, for_rank_0)
    row(name, it, (3,), ("rank 1", "data"))


IMAGES = {k: v for k, v in LONG.items() if not k.startswith("data.synthetic")} | {"data.format": "image_folder", "data.workers": 1}


@fault("an image that is damaged on rank 1 of 2 alone while the job trains")
def damaged(place, name):
    it, folder = apart(IMAGES, place, write_image_folder)
    it.trains()
    since = time.monotonic()
    for image in (folder / "data" / "train").rglob("*.png"):
        image.write_bytes(image.read_bytes()[:60])
    row(name, it, (3,), ("rank 1 (", ".png"), since=since)


@fault("the images vanish on rank 1 of 2 alone while the job trains")
def lost(place, name):
    it, folder = apart(IMAGES, place, write_image_folder)
    it.trains()
    since = time.monotonic()
    shutil.rmtree(folder / "data")
    row(name, it, (3,), ("rank 1 (", "No such file"), since=since)


@fault("a packed data set that is cut off while the job trains")
def cut_pack(place, name):
    write_cifar(place.parent / f"{place.name}_data", records=60)
    packed = place.parent / f"{place.name}.packed"
    config = place.parent / f"{place.name}.pack.yaml"
    config.write_text(f"data: {{format: cifar10, path: {place.parent}/{place.name}_data}}\n")
    subprocess.run([PROGRAM, "pack", "--config", config, "--output", packed], check=True, capture_output=True)
    settings = {k: v for k, v in LONG.items() if not k.startswith("data.synthetic")}
    it = job(2, dict(settings, **{"data.format": "packed", "data.path": packed}), place)
    it.trains()
    since = time.monotonic()
    os.truncate(packed, 8192)
    row(name, it, (3,), ("cannot read", "it was cut off while the run used it"), since=since)


@fault("6 open files allowed for the process")
def few_files(place, name):
    words = command(0, SHORT, place)
    row(name, Job(["bash", "-c", 'ulimit -n 6; exec "$@"', "bash"] + words, place), (6,), ("Too many open files",))
