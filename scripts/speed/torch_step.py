#!/usr/bin/env python3
"""Training steps of PyTorch: what bench/step_run.cpp does, one process, one JSON object.

Usage: torch_step.py DEPTH WIDTH VIEWS fp32|bf16 eager|compile THREADS REPEATS
The network is ours (encoder with a 3x3 stem, projector of two layers), in channels_last; the loss is scripts/loss_table.py's;
the optimizer is SGD with momentum, fused where this PyTorch has that. bf16 is torch.autocast. `compile` is torch.compile.
"""
import inspect
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from loss_table import memory_bytes, torch_loss  # noqa: E402

import torch  # noqa: E402
from torch import nn  # noqa: E402

BLOCKS = {10: [1, 1, 1, 1], 18: [2, 2, 2, 2], 34: [3, 4, 6, 3]}


class Block(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels_in != channels:
            self.downsample = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


def make_network(depth, width):
    """Encoder and projector; `hidden` is the representation's width, as the trainer's default is for ResNet-18."""
    layers = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    channels = width
    for stage, blocks in enumerate(BLOCKS[depth]):
        for block in range(blocks):
            layers.append(Block(channels, width << stage, 2 if stage > 0 and block == 0 else 1))
            channels = width << stage
    projector = [nn.Linear(channels, channels, bias=False), nn.BatchNorm1d(channels), nn.ReLU(inplace=True), nn.Linear(channels, 128)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), *projector)


def main():
    depth, width, views, precision, mode, threads, repeats = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    before = memory_bytes("VmRSS")
    network = make_network(int(depth), int(width)).to(memory_format=torch.channels_last)
    fused = {"fused": True} if "fused" in inspect.signature(torch.optim.SGD.__init__).parameters else {}
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4, **fused)
    x = torch.randn(int(views), 3, 32, 32).to(memory_format=torch.channels_last)

    def loss_of(x):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            z = network(x)
        return torch_loss(z.float(), 0.5)

    step_loss = torch.compile(loss_of) if mode == "compile" else loss_of
    seconds, cpu_seconds = [], []
    for repeat in range(-2, int(repeats)):  # two that are not counted: compilation, and memory that is then kept
        start, cpu_start = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        loss = step_loss(x)
        loss.backward()
        optimizer.step()
        value = loss.item()
        if repeat >= 0:
            seconds.append(time.perf_counter() - start)
            cpu_seconds.append(time.process_time() - cpu_start)
    print(json.dumps({"loss": value, "seconds": seconds, "cpu_seconds": cpu_seconds, "bytes": memory_bytes("VmHWM") - before,
                      "version": torch.__version__}))


if __name__ == "__main__":
    main()
