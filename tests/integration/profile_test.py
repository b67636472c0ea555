"""--profile: a table whose rows add up to the step, a trace of every rank that JSON readers open, and the same bits."""

import json
import re
import subprocess

from program import PROGRAM, SMALL, Folder, check, run

SETTINGS = SMALL | {"train.max_steps": 9, "evaluate.knn.every_epochs": 0}
STEPS = 5


def table_of(folder):
    """(layer, op) and kind -> ms of profile.txt."""
    rows, sums = {}, {}
    body = (folder / "profile.txt").read_text().split("\n\n")
    for line in body[1].splitlines()[1:]:
        words = re.split(r" {2,}", line)
        rows[words[0], words[1]] = float(words[3])
    for line in body[2].splitlines():
        words = re.split(r" {2,}", line)
        sums[words[0]] = float(words[1])
    return rows, sums


def check_table(profiled):
    rows, sums = table_of(profiled.folder)
    info = subprocess.run([PROGRAM, "info", profiled.checkpoints[-1]], check=True, capture_output=True, text=True).stdout
    layers = {name for name in re.findall(r"^ *(\S+)\.weight ", info, re.MULTILINE) if not name.startswith("optimizer.")}
    check(len(layers) > 20 and "layer4.0.downsample.1" in layers and "projector.3" in layers, f"{len(layers)} layers have weights")
    for layer in layers:
        check((layer, "forward") in rows, f"{layer} has a row")
        backward = {op for name, op in rows if name == layer and op != "forward"}
        wanted = {"backward"} if "bn" in layer or layer.endswith((".downsample.1", "projector.1")) else {"backward weights"}
        check(wanted <= backward, f"and its backward: {sorted(backward)}")
    for row in (("views", "wait"), ("loss", "forward"), ("loss", "backward"), ("optimizer", "update"), ("avgpool", "forward"),
                ("collectives", "ordered_sum fp32"), ("layer1.0.conv2", "backward data"), ("gradients", "norm")):
        check(row in rows, f"{row} is a row")
    kinds = {k: v for k, v in sums.items() if k not in ("step", "outside convolutions")}
    check(abs(sum(kinds.values()) - sums["step"]) < 0.02, f"the sums by kind are those of the step: {sums}")
    check(abs(sum(rows.values()) + sums["between the rows"] - sums["step"]) < 0.1, "and so are the rows")
    check(0 < sums["outside convolutions"] < sums["step"], "with a share outside convolutions")


def check_trace(folder, rank, ranks):
    trace = json.loads((folder / f"trace_rank_{rank}.json").read_text())
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    steps = [e for e in events if e["cat"] == "step"]
    check([e["name"] for e in steps] == [f"step {i}" for i in range(4, 4 + STEPS)], f"the trace of rank {rank} has its steps")
    check(trace["otherData"]["ranks"] == ranks and all(e["pid"] == rank for e in events), "and says whose they are")
    check(trace["otherData"]["peak_GFLOP_per_s"] > 1 and trace["otherData"]["peak_GB_per_s"] > 0.1, "and what was the peak")
    shares = []
    for step in steps:
        inside = [e for e in events if e["cat"] != "step" and step["ts"] <= e["ts"] < step["ts"] + step["dur"]]
        shares.append(sum(e["args"]["self_us"] for e in inside) / step["dur"])
    # One of the steps may be disturbed by other work of the machine.
    check(max(shares) > 0.9 and max(shares) <= 1.0001, f"the spans of a step add up to it: {[round(s, 3) for s in shares]}")


with Folder() as tmp:
    plain = run(1, SETTINGS, tmp / "plain")
    check(plain.code == 0 and not (plain.folder / "profile.txt").exists(), "a run without --profile leaves none", plain)
    for ranks in (1, 2):
        profiled = run(ranks, SETTINGS, tmp / f"profiled{ranks}", ["--profile", str(STEPS)])
        check(profiled.code == 0 and "profile of rank 0 of" in profiled.output, f"{ranks} rank(s) measure", profiled)
        check(profiled.losses == plain.losses and profiled.state_hash() == plain.state_hash(), "with the same bits")
        check_table(profiled)
        for rank in range(ranks):
            check_trace(profiled.folder, rank, ranks)
        check(not (profiled.folder / f"trace_rank_{ranks}.json").exists(), "one trace a rank")

    # Without a number: 20 steps, here all there are.
    few = run(1, SETTINGS, tmp / "few", ["--profile"])
    check(few.code == 0 and "the medians of steps 4 to 9" in few.output, "a run that ends early shows what it has", few)
    none = run(1, SETTINGS | {"train.max_steps": 2}, tmp / "none", ["--profile"])
    check(none.code == 0 and "--profile: no step was measured" in none.output, "or says that there is nothing", none)
    dry = run(1, SETTINGS, tmp / "dry", ["--profile", "--dry-run"])
    check(dry.code == 2 and "--profile measures training steps, and --dry-run runs none" in dry.output, "--profile with --dry-run is refused", dry)
    zero = run(1, SETTINGS, tmp / "zero", ["--profile", "0"])
    check(zero.code == 2 and "--profile" in zero.output, "nor are none", zero)
