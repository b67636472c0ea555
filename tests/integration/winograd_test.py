"""Winograd convolutions in whole runs: the same bits on 1, 2, 4 and 8 ranks, the recorded algorithms after a resume and in
evaluate, and the remedy where Winograd is not available. Where the library has none, the runs use direct convolutions and
report that."""

import hashlib
import json
import subprocess

from program import MPIRUN, PROGRAM, SMALL, Folder, check, command, environment, finish, run

# 8 views a shard; the table gives 32 channels on 16x16 maps and 64 on 8x8 to Winograd.
WIDE = SMALL | {"model.encoder.width": 32, "run.threads": 1}
DIRECT = {"model.convolution": "direct"}
ALLOWED = DIRECT | {"resume.allow": "[model.convolution]"}


def without_avx512(words, limit_s=100):
    process = subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=environment() | {"DNNL_MAX_CPU_ISA": "AVX2"}, start_new_session=True)
    return finish(process, None, limit_s)


def evaluate(folder, *words, ranks=0):
    start = [] if ranks == 0 else [MPIRUN, "--oversubscribe", "--bind-to", "none", "-np", ranks]
    return start + [PROGRAM, "evaluate", folder, "--labels", 0, *words]


def edit_metadata(checkpoint, edit):
    """Lets edit(metadata) change the checkpoint's metadata, and makes its sum right again."""
    data = checkpoint.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    metadata = header["__metadata__"]
    edit(metadata)
    digits = metadata["content_sha256"]
    metadata["content_sha256"] = "0" * len(digits)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    whole = len(text).to_bytes(8, "little") + text + data[end:]
    checkpoint.write_bytes(whole.replace(b"0" * len(digits), hashlib.sha256(whole).hexdigest().encode(), 1))


def without_choice(metadata):
    """As before there was a choice: without plans, without the key in the configuration."""
    del metadata["environment.plans"]
    lines = metadata["config"].splitlines(keepends=True)
    metadata["config"] = "".join(line for line in lines if not line.strip().startswith("convolution:"))
    check(len(lines) - len(metadata["config"].splitlines()) == 1, "the configuration names the algorithm once")


def only_checkpoint(place):
    return next((place / "checkpoints").glob("*.safetensors"))


def recorded(checkpoint):
    data = checkpoint.read_bytes()
    return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])["__metadata__"]["environment.plans"]


with Folder() as folder:
    one = run(0, WIDE | {"run.threads": 2}, folder / "one")
    check(one.code == 0 and len(one.losses) == 10, "ten steps", one)
    there = "convolutions: Winograd F(4x4, 3x3) in 9 of 35 passes, direct in the others" in one.output
    check(there or "convolutions: " in one.output and "Winograd" not in one.output, "the start block names the algorithms", one)
    for ranks in (1, 2, 4, 8):
        result = run(ranks, WIDE, folder / f"ranks_{ranks}")
        check(result.code == 0 and (result.losses, result.knn, result.state_hash()) == (one.losses, one.knn, one.state_hash()),
              f"{ranks} ranks have the bits of one process with two threads", result)
    direct = run(2, WIDE | DIRECT, folder / "direct")
    check("convolutions: " in direct.output and "Winograd" not in direct.output, "model.convolution: direct", direct)
    apart = abs(float(direct.losses[1]) / float(one.losses[1]) - 1)
    check((direct.losses != one.losses) == there and apart < 1e-5, f"other bits, the same first loss but for {apart:.1e}", direct)

    # The same numbers for every batch size of the command, and those of the training.
    reports = []
    for number, (batch, ranks) in enumerate([(1, 0), (7, 2), (256, 0)]):
        file = folder / f"report{number}.json"
        result = finish(subprocess.Popen([str(w) for w in evaluate(folder / "one", "--k", 5, "--batch", batch, "--json", file, ranks=ranks)],
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(), start_new_session=True), None)
        check(result.code == 0, f"evaluate with batches of {batch}", result)
        reports.append(json.loads(file.read_text()))
    check(reports[0] == reports[1] == reports[2], "batches of 1, 7 and 256 images: the same numbers")
    check(reports[0]["knn"][0]["top1"] == one.knn[10], "the k-NN that the training said at its end")

    # A run from before there was a choice resumes with direct convolutions.
    place = folder / "older"
    check(run(1, WIDE | DIRECT | {"train.stop_at_step": 5}, place).code == 75, "stopped")
    edit_metadata(only_checkpoint(place), without_choice)
    rest = run(2, WIDE, place)
    check(rest.code == 0 and "Winograd" not in rest.output and "other convolution plans" not in rest.output, "an older checkpoint", rest)
    check(rest.losses == direct.losses and rest.state_hash() == direct.state_hash(), "has the bits of direct convolutions", rest)

    # A run from before the shards shared a transform of the weights resumes with those of each shard.
    place = folder / "each_shard"
    check(run(1, WIDE | {"train.stop_at_step": 5}, place).code == 75, "stopped")
    plans = recorded(only_checkpoint(place))
    check(("winograd_shared; winograd_shared; winograd" in plans) == there, f"recorded: {plans}")
    of_each = plans.replace("winograd_shared", "winograd")
    edit_metadata(only_checkpoint(place), lambda metadata: metadata.update({"environment.plans": of_each}))
    rest = run(2, WIDE, place)
    check(rest.code == 0 and "other convolution plans" not in rest.output, "resumes", rest)
    check(recorded(rest.checkpoints[-1]) == of_each, "with the recorded algorithms")
    same = [step for step in one.losses if rest.losses[step] == one.losses[step]]
    check(same[:5] == list(one.losses)[:5] and (len(same) < 10) == there, f"which have other bits from there on: {same}", rest)

    place = folder / "stopped"
    check(run(1, WIDE | {"train.stop_at_step": 5}, place).code == 75, "stopped")
    other = run(1, WIDE | DIRECT, place)
    check(other.code == 2 and "(model.convolution: auto -> direct)" in other.output, "another algorithm is refused", other)
    if there:
        refused = without_avx512(command(1, WIDE, place))
        check(refused.code == 4 and "was computed with Winograd convolutions" in refused.output and
              "--set model.convolution=direct --set resume.allow=[model.convolution]" in refused.output, "no Winograd here", refused)
        refused = without_avx512(command(1, WIDE | {"model.convolution": "winograd"}, folder / "new"))
        check(refused.code == 4 and "model.convolution: winograd, but oneDNN" in refused.output, "nor for a new run", refused)
        looked_at = without_avx512(evaluate(folder / "one", "--k", 5))
        check(looked_at.code == 0 and "using direct ones" in looked_at.output, "but its encoder can be evaluated", looked_at)
        rest = without_avx512(command(2, WIDE | ALLOWED, place))
        check(rest.code == 0 and "model.convolution: auto -> direct, as resume.allow says" in rest.output, "resume.allow switches to direct", rest)
    else:
        print("skipped: this processor or its oneDNN has no Winograd convolution")
        rest = run(2, WIDE | ALLOWED, place)
        check(rest.code == 0, "allowed by name", rest)
    whole = run(4, WIDE, folder / "one", extra=["--resume", "none"])
    check(whole.losses == one.losses, "started from scratch: the same losses", whole)
    place = folder / "resumed"
    check(run(1, WIDE | {"train.stop_at_step": 5}, place).code == 75, "stopped")
    rest = run(4, WIDE, place)
    check(rest.code == 0 and rest.losses == one.losses and rest.state_hash() == one.state_hash(), "resumed: the bits of the unbroken run", rest)
