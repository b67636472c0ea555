"""TensorBoard's own reader on the event files of a run and of its resume; and what a run folder contains for people.

Skips the reader's part where the Python package tensorboard is not installed.
"""

import pathlib
import subprocess

from program import PROGRAM, SMALL, Folder, check, run

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    EventAccumulator = None

SETTINGS = SMALL | {"log.every_steps": 2, "train.epochs": 3, "checkpoint.every_steps": 4, "checkpoint.every_epochs": 0}


def event_files(folder):
    return sorted(folder.glob("events.out.tfevents.*"))


def check_events(first, resumed):
    events = EventAccumulator(str(resumed.folder), size_guidance={"images": 0, "scalars": 0, "tensors": 0}).Reload()
    steps = [e.step for e in events.Scalars("train/loss")]
    check(steps == [2, 4, 6, 8, 10, 12, 14, 15], f"TensorBoard has each point once: {steps}")
    losses = {m["step"]: m["loss"] for m in resumed.metrics if "loss" in m}
    check(all(abs(e.value - losses[e.step]) < 1e-6 for e in events.Scalars("train/loss")), "with the losses of metrics.jsonl")
    check([e.step for e in events.Scalars("evaluate/knn_top1")] == [0, 5, 10, 15], "k-NN at each evaluation")
    names = {key for m in resumed.metrics for key in m} - {"step", "epoch"}
    tags = {tag.split("/")[1] for tag in events.Tags()["scalars"]}
    check(names == tags, f"each number of metrics.jsonl is a scalar: {sorted(tags)}")
    for tag, end in (("augmented pairs", [8]), ("nearest neighbors", [10, 15])):
        images = [e for e in events.Images(tag)]
        check([e.step for e in images][-len(end):] == end and all(e.encoded_image_string[:4] == b"\x89PNG" for e in images),
              f"{tag} are images")
    text = events.Tensors("config/text_summary" if "config/text_summary" in events.Tags()["tensors"] else "config")[-1]
    check(b"global_batch: 32" in text.tensor_proto.string_val[0], "the configuration is text")


with Folder() as tmp:
    first = run(1, SETTINGS | {"train.stop_at_step": 8}, tmp / "a")
    check(first.code != 0 and first.status["state"] == "stopped", "the run stops", first)
    check("stopped: train.stop_at_step" in (first.folder / "report.html").read_text(), "and its report says so")
    # Steps 9 to 11 are lost: their lines in the first file must not stay next to those of the resumed run.
    lost = run(1, SETTINGS | {"train.stop_at_step": 11, "checkpoint.every_steps": 100}, tmp / "a")
    check(lost.checkpoints[-1].name == "step_00000011.safetensors", "continues to step 11", lost)
    lost.checkpoints[-1].unlink()
    resumed = run(1, SETTINGS, tmp / "a")
    check(resumed.code == 0 and len(event_files(tmp / "a")) == 3, "three starts, three event files", resumed)
    page = (tmp / "a" / "report.html").read_text()
    check("<b>finished</b>" in page and "<b>15 of 15</b>" in page and page.count("<img ") > 30, "the report is whole")
    check("http" not in page.replace("http-equiv", "") and "<script" not in page, "needs no network and runs nothing")
    check(len(page) < 1 << 20, f"and has {len(page)} bytes")
    if EventAccumulator:
        check_events(first, resumed)
    else:
        print("skipped: TensorBoard's reader, since the Python package tensorboard is not installed")

    made = subprocess.run([PROGRAM, "report", tmp / "a"], capture_output=True, text=True)
    check(made.returncode == 0 and "curves up to step 15, images as of the last evaluation" in made.stdout, "report writes it again")
    again = (tmp / "a" / "report.html").read_text()
    check(again.count("<img ") == page.count("<img ") and again.count("<figure") == page.count("<figure"), "with the same parts")

    views = subprocess.run([PROGRAM, "preview", "--config", tmp / "a" / "config.yaml", "--output", tmp / "v.png", "--rows", "3"],
                           capture_output=True, text=True)
    check(views.returncode == 0 and (tmp / "v.png").read_bytes()[:4] == b"\x89PNG", "preview writes an image")
    check("312 x 304 pixels, 3 rows" in views.stdout, "and says what: " + views.stdout.splitlines()[0])

    silent = run(1, SETTINGS | {"log.tensorboard": "false", "log.report": "false", "train.max_steps": 2}, tmp / "b")
    check(silent.code == 0 and not event_files(tmp / "b") and not (tmp / "b" / "report.html").exists(), "both can be left out", silent)
    check(silent.weights_hash() == run(1, SETTINGS | {"train.max_steps": 2}, tmp / "c").weights_hash(), "without a change of the numbers")
