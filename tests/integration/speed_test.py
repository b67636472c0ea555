"""The programs and formulas behind scripts/step_table.py and scripts/scaling_model.py: they run, count the messages of a step,
and their times add up."""

import json
import pathlib
import subprocess
import sys

from program import arguments, check, environment, fail

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from speed.scaling import Link, Work, communication_seconds, compute_seconds, gather_seconds, step_seconds, sum_seconds  # noqa: E402
from speed.run import median, mpirun  # noqa: E402

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
STEP_RUN, SUM_RUN = (pathlib.Path(word).resolve() for word in arguments(4, "SIMCLR_TRAIN MPIRUN STEP_RUN SUM_RUN")[2:])
TINY = ["model.encoder.depth=10", "model.encoder.width=8", "model.projector.hidden=16", "model.projector.output=16", "data.image_size=16",
        "train.global_batch=32", "run.threads=1"]


def run(words):
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    if done.returncode:
        fail(f"{words} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def calls(result, operation):
    return {row["bytes"]: row["calls"] for row in result["collectives"] if row["operation"] == operation}


def steps_of_any_rank_count():
    alone, pair = run([STEP_RUN, 2, *TINY]), run(mpirun(2, [STEP_RUN, 2, *TINY]))
    check(alone["loss"] == pair["loss"], f"loss {alone['loss']} on one rank, {pair['loss']} on two")
    check(len(alone["seconds"]) == 2 and all(s > 0 for s in alone["seconds"] + alone["cpu_seconds"]), "times of each step, by clock and processor")
    check(all(0 < part < whole for part, whole in zip(alone["loss_seconds"], alone["seconds"])), "the loss is a part of the step")
    check(alone["flops"] == pair["flops"] > 0 and alone["bytes"] > 0, f"FLOPs {alone['flops']}, {pair['flops']}")
    check(alone["collectives"] == [], f"one rank exchanges nothing: {alone['collectives']}")
    gradients = calls(pair, "gradient_sum")
    check(sum(size * count for size, count in gradients.items()) == 4 * pair["gradient_elements"], f"gradients {gradients}")
    # 12 batch norms of the encoder and one of the projector, forward and backward, and the loss.
    check(sum(calls(pair, "ordered_sum").values()) == 2 * 13 + 1, f"sums {calls(pair, 'ordered_sum')}")
    # streaming: embeddings [64, 16] in float, log denominators [64] in double.
    check(calls(pair, "all_gather") == {64 * 16 * 4: 1, 64 * 8: 1}, f"gathers {calls(pair, 'all_gather')}")


def sums_take_time():
    for ranks in (1, 2):
        result = run(mpirun(ranks, [SUM_RUN, 5000, 2]))
        check({key: len(values) for key, values in result.items()} == {"ordered_seconds": 4, "allreduce_seconds": 4, "short_seconds": 200},
              f"{ranks} ranks: a time for each sum of both kinds")
        check(ranks == 1 or median([result], "ordered_seconds") > 0, "an exchange takes time")


def formulas():
    link = Link(bandwidth=1e9, latency=1e-5)
    check(sum_seconds(4e6, 1, link) == gather_seconds(4e6, 1, link) == 0, "one rank sends nothing")
    check(abs(sum_seconds(4_000_000, 4, link) - (6e-3 + 4 * 2 * 2 * 1e-5)) < 1e-12, "6 of 4 MB in four pieces, two rounds of two messages each")
    check(abs(sum_seconds(4096, 8, link) - (7 * 4096e-9 + 3e-5)) < 1e-12, "a short sum is one gather")
    work = Work(shards=8, shard_seconds=0.1, rank_seconds=0.02, loss_seconds=0.04, gradient_bytes=4_000_000, sums=[(26, 512)],
                gathers=[(1, 32768)])
    check(abs(compute_seconds(work, 1, 1) - 0.86) < 1e-12, "all shards, once")
    check(abs(compute_seconds(work, 2, 2) - (0.2 + 0.01 + 0.01)) < 1e-12, "four shards by two threads")
    check(compute_seconds(work, 8, 4) > 0.1, "a shard is not divided")
    check(abs(compute_seconds(work, 4, 1, cores=2) / compute_seconds(work, 4, 1) - 2) < 1e-12, "four ranks share two cores")
    times = [step_seconds(work, ranks, 1, link) for ranks in (1, 2, 4, 8)]
    check(times == sorted(times, reverse=True) and times[0] < 8 * times[3], "more ranks are faster, less than ideally")
    check(communication_seconds(work, 8, link) > communication_seconds(work, 2, link) > 0, "more ranks exchange more")


def missing_pytorch_is_reported():
    done = subprocess.run([sys.executable, SCRIPTS / "step_table.py", "--torch", "/bin/false"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    check(done.returncode == 1 and "--torch" in done.stderr and done.stderr.count("\n") == 1, f"reported: {done.stderr.strip()}")


formulas()
missing_pytorch_is_reported()
steps_of_any_rank_count()
sums_take_time()
