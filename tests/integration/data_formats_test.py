"""Data sets in their official layouts, and packed: each trains, and a packed copy trains to the same bits."""

import gzip
import struct
import subprocess

from program import PROGRAM, SMALL, Folder, Run, check, environment, run

ONE_STEP = {"train.max_steps": 2, "checkpoint.every_epochs": 0, "evaluate.knn.every_epochs": 1, "train.global_batch": 8,
            "train.shards": 2}
FILES = {k: v for k, v in SMALL.items() if not k.startswith("data.synthetic")} | ONE_STEP


def pixels(seed, count):
    return bytes((seed * 31 + k * (seed % 7 + 1)) % 256 for k in range(count))


def write_cifar100(folder, train=16, test=8):
    folder.mkdir()
    for name, count in (("train", train), ("test", test)):
        (folder / f"{name}.bin").write_bytes(b"".join(bytes([r % 20, r % 100]) + pixels(r, 3072) for r in range(count)))


def write_mnist(folder, train=16, test=8):
    folder.mkdir()
    for name, count in (("train", train), ("t10k", test)):
        images = struct.pack(">4I", 0x803, count, 28, 28) + b"".join(pixels(r, 784) for r in range(count))
        labels = struct.pack(">2I", 0x801, count) + bytes(r % 10 for r in range(count))
        (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (folder / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))


def write_stl10(folder, train=8, test=8, unlabeled=12):
    folder.mkdir()
    for name, count in (("train", train), ("test", test), ("unlabeled", unlabeled)):
        (folder / f"{name}_X.bin").write_bytes(b"".join(pixels(r, 27648) for r in range(count)))
        if name != "unlabeled":
            (folder / f"{name}_y.bin").write_bytes(bytes(r % 10 + 1 for r in range(count)))


def pack(words):
    done = subprocess.run([PROGRAM, "pack"] + [str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60, env=environment())
    return Run(done.returncode, done.stdout, None, 0)


def formats_train(folder):
    for name, write, training in (("cifar100", write_cifar100, 16), ("mnist", write_mnist, 16), ("stl10", write_stl10, 20)):
        write(folder / name)
        settings = FILES | {"data.format": name, "data.path": folder / name}
        ended = run(0, settings, folder / f"run_{name}")
        check(ended.code == 0 and f"data: {name}, {training} training and 8 test images" in ended.output, f"{name} trains", ended)
        check(len(ended.knn) >= 2, f"{name} is evaluated", ended)


def packed_is_the_same(folder):
    config = folder / "stl10.yaml"
    config.write_text(f"data: {{format: stl10, path: {folder / 'stl10'}, image_size: 16}}\n")
    file = folder / "stl10.packed"
    done = pack(["--config", config, "--output", file])
    check(done.code == 0 and "20 training and 8 test images" in done.output, "a set is packed", done)
    check(pack(["--check", file]).code == 0, "its checksums fit")
    packed = run(0, FILES | {"data.format": "packed", "data.path": file}, folder / "run_packed")
    check(packed.code == 0, "the packed file trains", packed)
    from_files = run(0, FILES | {"data.format": "stl10", "data.path": folder / "stl10"}, folder / "run_files")
    check(packed.losses == from_files.losses and packed.knn == from_files.knn, "to the same bits as the files", packed)
    small = folder / "small.packed"
    check(pack(["--config", config, "--output", small, "--size", 48, "--threads", 1]).code == 0, "a smaller copy")
    again = folder / "again.packed"
    check(pack(["--config", config, "--output", again, "--size", 48, "--threads", 3]).code == 0, "and another")
    check(small.read_bytes() == again.read_bytes(), "is the same for other numbers of threads")
    check(small.stat().st_size < file.stat().st_size / 3.5, "is a quarter as large")


def packed_is_refused(folder):
    file = folder / "stl10.packed"
    good = file.read_bytes()
    damaged = folder / "damaged.packed"
    damaged.write_bytes(good[:1000] + bytes([good[1000] ^ 1]) + good[1001:])
    ended = pack(["--check", damaged])
    check(ended.code == 3 and "its train images do not match their checksum" in ended.output, "a damaged pixel", ended)
    damaged.write_bytes(good[:-100])
    ended = run(2, FILES | {"data.format": "packed", "data.path": damaged}, folder / "run_damaged")
    check(ended.code == 3 and ended.output.count("cut off") == 1, "a file that is cut off, on two ranks", ended)
    ended = pack(["--config", folder / "stl10.yaml", "--output", "/dev/full"])
    check(ended.code == 6, "an output that is not a file", ended)
    ended = pack(["--output", folder / "x"])
    check(ended.code == 2 and "pack requires --config and --output" in ended.output, "no configuration", ended)


with Folder() as root:
    formats_train(root)
    packed_is_the_same(root)
    packed_is_refused(root)
