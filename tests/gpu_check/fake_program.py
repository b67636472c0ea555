#!/usr/bin/env python3
"""Replaces simclr_train in tests of scripts/gpu_check.sh: writes the files of a run at once. FAKE_FAULTS plants faults."""

import os
import pathlib
import sys

FAULTS = os.environ.get("FAKE_FAULTS", "").split()
words = sys.argv[1:]
if "--dry-run" in words:
    if "no_gpu" in FAULTS:
        sys.exit("error: run.device: cuda, but there is no GPU: no NVIDIA driver is loaded")
    sys.exit(0)
keys = [words[i + 1].split("=")[0] for i, w in enumerate(words) if w == "--set"]
if len(keys) != len(set(keys)):
    sys.exit("error: --set: a key given twice")
settings = dict(words[i + 1].split("=", 1) for i, w in enumerate(words) if w == "--set")
folder = pathlib.Path(words[words.index("--output") + 1])
precision, shards = settings.get("run.precision", "fp32"), int(settings.get("train.shards", 8))
quick = "quickstart" in words[words.index("--config") + 1]

if "dies" in FAULTS and precision == "tf32" and shards == 1:
    print("error: no plan")
    sys.exit(4)
first = 4.8 + {"fp32": 1e-6, "tf32": 1e-4, "bf16": 1e-2}[precision] * (settings["run.device"] == "cuda")
if "far" in FAULTS and settings["run.device"] == "cuda":
    first *= 1.001
if "empty" in FAULTS and precision == "fp32" and shards == 1 and not quick:
    sys.exit(0)
batch = 64 if quick else 512
(folder / "checkpoints").mkdir(parents=True)
(folder / "checkpoints" / "step_00000040.safetensors").write_text("large")
(folder / "config.yaml").write_text(f"train:\n  global_batch: {batch}  # images\n  shards: {shards}\n")
after = 0.4 if "dull" in FAULTS else 0.9
with open(folder / "metrics.jsonl", "w") as file:
    print('{"step":0,"epoch":0,"knn_top1":0.3,"knn_top5":0.7}', file=file)
    for step in range(1, 41):  # slow at first; one slow step among the later ones
        speed = 10 if step < 20 or step == 30 else 1000 * (2 if shards == 1 else 1)
        print(f'{{"step":{step},"epoch":0,"loss":{first - 0.01 * (step - 1):.17g},"lr":0.002,"images_per_s":{speed}.0,'
              f'"data_wait_s":0.01}}', file=file)
    print(f'{{"step":40,"epoch":4,"knn_top1":{after},"knn_top5":0.99}}', file=file)
again = folder.name.endswith("_again")
print("weights sha256: " + ("f" if "bits" in FAULTS and again and precision == "bf16" else "0") * 64)
