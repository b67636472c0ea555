#!/usr/bin/env python3
"""Images decoded and made into two views per second of one core: this program and torchvision.

Usage: loader_table.py FOLDER [--build FOLDER] [--sizes 224 96] [--images 512] [--rounds 3]

FOLDER holds class folders of JPEG or PNG files (FOLDER/train/CLASS/… or FOLDER/CLASS/…). PyTorch and torchvision come
from you, e.g. `python3 -m venv v && v/bin/pip install torch torchvision && v/bin/python scripts/loader_table.py FOLDER`.
The build folder (default: build/cpu-release) is built if need be. Every measurement is a process of its own with one
thread; they take turns, round by round. What counts is the processor time of the process: a machine that others use
changes it little. Both sides decode an image once and make two views of it with the settings of
configs/imagenet100.yaml (SimCLR's for ImageNet, blur included); only the size differs. 32 images go before the count.
`packed` reads a copy made by `simclr_train pack`.
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
CONFIG = ROOT / "configs" / "imagenet100.yaml"
WARM_UP = 32  # images, as bench/loader_run.cpp


def run_torchvision(folder, size, images):
    """The usual pipeline of SimCLR on torchvision's ImageFolder, in this process: what bench/loader_run.cpp does."""
    import torch
    from torchvision import datasets, transforms
    torch.set_num_threads(1)
    torch.manual_seed(1)
    taps = 3 if size < 40 else 2 * (size // 20) + 1  # as blur_taps_for
    view = transforms.Compose([
        transforms.RandomResizedCrop(size, scale=(0.08, 1)),
        transforms.RandomHorizontalFlip(),
        transforms.RandomApply([transforms.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8),
        transforms.RandomGrayscale(p=0.2),
        transforms.RandomApply([transforms.GaussianBlur(taps, sigma=(0.1, 2))], p=0.5),
        transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ])
    data = datasets.ImageFolder(folder, transform=lambda image: (view(image), view(image)))
    order = torch.randperm(len(data)).tolist()
    for i in range(WARM_UP):
        data[order[i % len(order)]]
    wall, processor = time.perf_counter(), time.process_time()
    for i in range(images):
        data[order[(WARM_UP + i) % len(order)]]
    print(json.dumps({"images": images, "processor_s": time.process_time() - processor,
                      "wall_s": time.perf_counter() - wall}))


def call(words):
    env = dict(os.environ, OMP_NUM_THREADS="1")
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, text=True, env=env)
    if done.returncode:
        sys.exit(f"{words[0]} ended with {done.returncode}")
    return json.loads(done.stdout)


def head(options):
    import PIL
    import torch
    import torchvision
    print(f"{run.machine()}; commit {run.commit()}, PyTorch {torch.__version__}, torchvision {torchvision.__version__}, "
          f"Pillow {PIL.__version__}; {options.images} images, medians of {options.rounds} rounds (smallest to largest)")
    print()
    print("| view | | images per second of one core | times torchvision |")
    print("|---|---|---|---|")


def measure(options, size, packed):
    train = options.folder / "train"
    common = [options.images, f"data.image_size={size}"]
    ours = [options.build / "loader_run", CONFIG, *common]
    commands = {
        "torchvision": [sys.executable, __file__, "--worker", train if train.is_dir() else options.folder, size, options.images],
        "image_folder": [*ours, f"data.path={options.folder}"],
        "packed": [*ours, "data.format=packed", f"data.path={packed}"],
    }
    rates = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, words in commands.items():
            result = call(words)
            rates[name].append(result["images"] / result["processor_s"])
    base = statistics.median(rates["torchvision"])
    for name, values in rates.items():
        median = statistics.median(values)
        print(f"| {size}x{size} | {name} | {median:,.0f} ({min(values):,.0f} to {max(values):,.0f}) | {median / base:.1f} |", flush=True)


def main():
    if sys.argv[1:2] == ["--worker"]:
        folder, size, images = sys.argv[2:]
        run_torchvision(folder, int(size), int(images))
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "cpu-release")
    parser.add_argument("--sizes", type=int, nargs="+", default=[224, 96])
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    try:
        import torch  # noqa: F401
        import torchvision  # noqa: F401
    except ImportError as missing:
        sys.exit(f"{missing}; install torch and torchvision into a virtual environment and start this with its python")
    if not options.folder.is_dir():
        sys.exit(f"{options.folder} is not a folder; name one with class folders of JPEG or PNG files")
    run.build(options.build, ["loader_run", "simclr_train"])
    with tempfile.TemporaryDirectory() as folder:
        packed = pathlib.Path(folder) / "set.packed"
        subprocess.run([options.build / "simclr_train", "pack", "--config", CONFIG, "--set", f"data.path={options.folder}",
                        "--output", packed], check=True, stdout=sys.stderr)
        head(options)
        for size in options.sizes:
            measure(options, size, packed)


if __name__ == "__main__":
    main()
