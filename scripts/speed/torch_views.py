#!/usr/bin/env python3
"""Random views by torchvision on PIL images, one thread: views per second of CPU time, as one JSON object.

Usage: torch_views.py SOURCE_SIDE VIEW_SIDE BLUR(0|1) REPEATS
The same steps as bench/augment_bench.cpp: crop, flip, jitter, grayscale, blur, to tensor, normalize.
"""
import json
import sys
import time

import numpy
import torch
import torchvision
from PIL import Image
from torchvision import transforms

IMAGES = 200


def main():
    source, side, blur, repeats = (int(word) for word in sys.argv[1:])
    torch.set_num_threads(1)
    random = numpy.random.default_rng(1)
    images = [Image.fromarray(random.integers(0, 256, (source, source, 3), dtype=numpy.uint8)) for _ in range(IMAGES)]
    steps = [transforms.RandomResizedCrop(side), transforms.RandomHorizontalFlip(),
             transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)], 0.8), transforms.RandomGrayscale(0.2)]
    if blur:
        taps = 3 if side < 40 else 2 * (side // 20) + 1  # blur_taps_for() of kernels/augment/augment.h
        steps.append(transforms.RandomApply([transforms.GaussianBlur(taps, (0.1, 2.0))], 0.5))
    steps += [transforms.ToTensor(), transforms.Normalize((0.49, 0.48, 0.44), (0.25, 0.24, 0.26))]
    view = transforms.Compose(steps)
    rates = []
    for repeat in range(-1, repeats):
        start = time.process_time()
        for image in images:
            view(image)
        if repeat >= 0:
            rates.append(IMAGES / (time.process_time() - start))
    print(json.dumps({"rates": rates, "version": torchvision.__version__}))


if __name__ == "__main__":
    main()
