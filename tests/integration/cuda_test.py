"""The program on GPUs; on a machine without, on the emulator (EMULATOR_*). The promise on 1, 2 and 4 GPUs, agreement
with the CPU, resume on another number of GPUs, who calls MPI when, and what a machine without GPU or driver sees.

Arguments: program, mpirun, the library mpi_calls, the program nm, EMULATED or NVCC. Exit code 77: not enough GPUs here.
"""

import os
import re
import signal
import subprocess
import sys
from collections import Counter

from program import PROGRAM, SMALL, Folder, arguments, check, pids_of, run, start, finish, wait_for, write_image_folder

MPI_CALLS, NM, MODE = arguments(5, "SIMCLR_TRAIN MPIRUN MPI_CALLS NM NVCC|EMULATED")[2:]
EMULATED = MODE == "EMULATED"
GPUS = 4
os.environ["EMULATOR_DEVICES"] = str(GPUS)
if not EMULATED:
    try:
        there = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60).stdout.count("GPU ")
    except OSError:
        there = 0
    if there < GPUS:
        print(f"skipped: it takes {GPUS} GPUs, this machine has {there}")
        sys.exit(77)

GPU = dict(SMALL, **{"run.device": "cuda", "run.threads": 1, "train.check_every": 3, "train.epochs": 4})


def knob(name, value):
    os.environ[name] = value


with Folder() as folder:
    # Twenty steps: the same bits for every number of GPUs, whenever the streams run, in every precision.
    cpu = run(1, dict(GPU, **{"run.device": "cpu"}), folder / "cpu")
    check(cpu.code == 0, "the CPU run ends with 0", cpu)
    # First loss, and worst of twenty: training amplifies roundings, by about half a decade every five steps here.
    for precision, first_limit, worst_limit in [("fp32", 2e-6, 2e-2), ("tf32", 1e-4, 1e-1), ("bf16", 1e-2, 1e-1)]:
        first = None
        for ranks, streams in [(1, "eager"), (2, "lazy"), (4, "eager")]:
            if precision == "tf32" and ranks == 4:
                continue  # between fp32 and bf16: no path of its own beyond the products
            knob("EMULATOR_STREAMS", streams)
            result = run(ranks, dict(GPU, **{"run.precision": precision}), folder / f"{precision}_{ranks}", limit_s=300)
            check(result.code == 0, f"{precision}: {ranks} GPUs end with 0", result)
            facts = (result.losses, result.knn, result.weights_hash(), result.state_hash())
            first = first or facts
            check(len(result.losses) == 20, f"{precision}: twenty losses", result)
            check(facts == first, f"{precision}: {ranks} GPUs have the bits of one", result)
        apart = [abs(float(first[0][s]) - float(cpu.losses[s])) / float(cpu.losses[s]) for s in sorted(cpu.losses)]
        check(apart[0] < first_limit and 0 < max(apart) < worst_limit,
              f"{precision}: the CPU's losses, step 1 within {first_limit} ({apart[0]:.1e}), all within {worst_limit} "
              f"({' '.join(f'{a:.0e}' for a in apart)})")
    knob("EMULATOR_STREAMS", "eager")

    # The loss that stores no logits, with the positive left out of the denominator: the bits of one GPU, einsum's numbers.
    decoupled = dict(GPU, **{"loss.decoupled": "true", "train.epochs": 1, "evaluate.knn.every_epochs": 0})
    einsum = run(1, dict(decoupled, **{"loss.algorithm": "einsum"}), folder / "decoupled_einsum")
    check(einsum.code == 0, "decoupled, einsum: one GPU ends with 0", einsum)
    first = None
    for ranks in (1, 2, 4):
        result = run(ranks, dict(decoupled, **{"loss.algorithm": "streaming"}), folder / f"decoupled_{ranks}", limit_s=300)
        check(result.code == 0, f"decoupled, streaming: {ranks} GPUs end with 0", result)
        facts = (result.losses, result.weights_hash(), result.state_hash())
        first = first or facts
        check(len(result.losses) == 5 and facts == first, f"streaming: {ranks} GPUs have the bits of one", result)
    step = min(einsum.losses)
    apart = abs(float(first[0][step]) - float(einsum.losses[step]))
    check(apart <= 2e-6 * abs(float(einsum.losses[step])), f"streaming has einsum's first loss: {apart:.1e} apart")
    half = run(2, dict(decoupled, **{"loss.algorithm": "streaming", "loss.products": "bf16"}), folder / "decoupled_bf16")
    check(half.code == 0 and half.losses != first[0], "products of bfloat16 train, with other numbers", half)

    # Decoded images, whose views the host makes; bottleneck blocks; LARS; a checkpoint of GPUs evaluated on one.
    images = dict({k: v for k, v in GPU.items() if not k.startswith("data.synthetic")}, **{
        "data.format": "image_folder", "data.path": str(write_image_folder(folder / "images")), "model.encoder.depth": 50,
        "model.encoder.width": 4, "optimizer.type": "lars", "optimizer.base_lr": 0.5, "train.epochs": 3})
    cpu = run(1, dict(images, **{"run.device": "cpu"}), folder / "images_cpu")
    one, two = (run(ranks, images, folder / f"images_{ranks}", limit_s=300) for ranks in (1, 2))
    check(one.code == 0 and len(one.losses) == 3 and len(one.knn) > 1, "a folder of images on one GPU", one)
    check(two.code == 0 and (two.losses, two.knn, two.state_hash()) == (one.losses, one.knn, one.state_hash()),
          "images, ResNet-50, LARS: two GPUs have the bits of one", two)
    step = min(cpu.losses)
    apart = abs(float(one.losses[step]) / float(cpu.losses[step]) - 1)
    check(cpu.code == 0 and apart < 1e-4, f"... and the CPU's first loss: {apart:.1e}", cpu)
    evaluated = subprocess.run([PROGRAM, "evaluate", folder / "images_2", "--set", "run.device=cuda", "--labels", "0", "--k", "5"],
                          capture_output=True, text=True, timeout=120)
    top1 = f"{one.knn[max(one.knn)]:.4f}"
    check(evaluated.returncode == 0 and re.search(rf"^ +5  {top1} ", evaluated.stdout, re.MULTILINE),
          f"evaluated on a GPU: the last k-NN of training, {top1}: {evaluated.stdout}{evaluated.stderr}")

    # Two GPUs, stopped in mid-epoch, resume on four: other GPUs, other shards, the same run.
    parts = folder / "resumed"
    stopped = run(2, dict(GPU, **{"train.stop_at_step": 8}), parts)
    check(stopped.code == 75, "stopped after step 8", stopped)
    resumed = run(4, GPU, parts)
    whole = run(1, GPU, folder / "whole")
    check(resumed.code == 0 and resumed.state_hash() == whole.state_hash() and resumed.losses == whole.losses,
          "resumed on 4 GPUs: the bits of the unbroken run", resumed)

    # Another end: a stop request.
    asked = start(2, dict(GPU, **{"train.epochs": 2000, "evaluate.knn.every_epochs": 0}), folder / "asked")
    check(wait_for(lambda: (folder / "asked" / "metrics.jsonl").exists() and
                   (folder / "asked" / "metrics.jsonl").read_text().count("\n") > 3), "two GPUs train")
    os.kill(pids_of(folder / "asked")[1], signal.SIGUSR1)
    ended = finish(asked, folder / "asked", 60)
    check(ended.code == 75 and ended.status["state"] == "stopped", "SIGUSR1 to one rank stops both GPUs", ended)

    diverged = run(2, dict(GPU, **{"optimizer.base_lr": 1e30}), folder / "diverged")
    check(diverged.code == 5 and "not finite" in diverged.output, "non-finite on GPUs: exit code 5", diverged)

    # A step neither allocates nor synchronizes: ten more steps, not one such call more.
    counts = []
    for steps in (6, 16):
        calls = folder / f"waits_{steps}"
        os.environ.update(SIMCLR_MPI_CALLS=str(calls), LD_PRELOAD=MPI_CALLS)
        counted = run(2, dict(GPU, **{"train.max_steps": steps, "evaluate.knn.every_epochs": 0, "checkpoint.every_epochs": 0}),
                      folder / f"counted_{steps}")
        del os.environ["LD_PRELOAD"]
        check(counted.code == 0, f"{steps} steps with CUDA's calls written down", counted)
        logs = [p.read_text().split() for p in folder.glob(f"waits_{steps}.*")]
        counts.append(sorted(sorted(Counter(c for c in log if c.startswith("cuda")).items()) for log in logs
                             if "ncclCommInitRank" in log))  # of each rank
    check(len(counts[0]) == 2 and counts[0][0] and counts[0] == counts[1], f"no allocation, no wait within a step: {counts}")

    # No MPI call between the choice of the device and the end.
    calls = folder / "calls"
    os.environ.update(SIMCLR_MPI_CALLS=str(calls), LD_PRELOAD=MPI_CALLS)
    silent = run(2, GPU, folder / "silent")
    del os.environ["LD_PRELOAD"]
    check(silent.code == 0, "two GPUs with MPI's calls written down", silent)
    logs = [p.read_text().split() for p in folder.glob("calls.*")]
    logs = [[c for c in log if not c.startswith("cuda")] for log in logs if "ncclCommInitRank" in log]
    check(len(logs) == 2, "two ranks wrote their calls down")
    for log in logs:
        at = log.index("ncclCommInitRank")
        check("MPI_Bcast" in log[:at], "before NCCL starts, MPI carries its unique id")
        check(log[at + 1:] == ["MPI_Finalize"], f"from NCCL's start on only MPI_Finalize is called: {log[at + 1:]}")
    # ... and the list of recorded calls is complete.
    imports = set()
    libraries = [PROGRAM] + [p for p in PROGRAM.parent.rglob("libsimclr_comm.*") if p.suffix in (".so", ".a")]
    for library in libraries:
        text = subprocess.run([NM, "-C", "--undefined-only", library], capture_output=True, text=True).stdout
        text += subprocess.run([NM, "-D", "-C", "--undefined-only", library], capture_output=True, text=True).stdout
        imports |= {word for word in text.split() if word.startswith("MPI_")}
    noted = {word for word in subprocess.run([NM, "-D", "--defined-only", MPI_CALLS], capture_output=True, text=True).stdout.split()
             if word.startswith("MPI_")}
    quiet = {"MPI_Error_string", "MPI_Get_library_version", "MPI_Initialized", "MPI_Finalized"}  # local, no communication
    check(imports and imports - noted <= quiet, f"every MPI function of the program is watched: {imports - noted}")

    # A rank that dies or hangs on its GPU ends the job.
    for name, sent, says in [("killed", signal.SIGKILL, ""), ("stopped", signal.SIGSTOP, "has given no sign of life")]:
        job = start(2, dict(GPU, **{"train.epochs": 2000, "evaluate.knn.every_epochs": 0, "train.timeout_s": 4}), folder / name)
        check(wait_for(lambda: (folder / name / "metrics.jsonl").exists() and
                       (folder / name / "metrics.jsonl").read_text().count("\n") > 3), "two GPUs train")
        os.kill(pids_of(folder / name)[1], sent)
        ended = finish(job, folder / name, 40)
        check(ended.code != 0 and says in ended.output, f"one rank {name}: the job ends after {ended.seconds:.1f} s", ended)
        check(wait_for(lambda: not pids_of(folder / name), 10), f"one rank {name}: no process is left")

    # Choice of the device.
    knob("CUDA_VISIBLE_DEVICES", "0,1")
    few = run(4, GPU, folder / "few")
    check(few.code == 4 and "4 ranks on this node and 2 GPUs" in few.output, "fewer GPUs than ranks", few)
    knob("CUDA_VISIBLE_DEVICES", "0")
    shared = run(2, GPU, folder / "shared")
    check(shared.code == 4 and "ranks 0 and 1" in shared.output and "one GPU" in shared.output, "two ranks on one GPU", shared)
    del os.environ["CUDA_VISIBLE_DEVICES"]
    if not EMULATED:
        sys.exit(0)
    knob("EMULATOR_NO_DEVICE", "driver")
    auto = run(2, dict(GPU, **{"run.device": "auto", "train.epochs": 1}), folder / "no_driver")
    check(auto.code == 0 and "no GPU: no NVIDIA driver is loaded; computing on the CPU" in auto.output, "auto without driver", auto)
    wanted = run(2, GPU, folder / "wanted")
    check(wanted.code == 4 and wanted.output.count("run.device: cuda, but there is no GPU: no NVIDIA driver is loaded") == 1,
          "cuda without driver: exit code 4, said once", wanted)
    half = run(1, dict(GPU, **{"run.device": "auto", "run.precision": "tf32"}), folder / "half")
    check(half.code == 2 and "run.precision: tf32 is not available on the CPU" in half.output, "tf32 falls on a CPU", half)
    half = run(1, dict(GPU, **{"run.device": "auto", "loss.algorithm": "streaming", "loss.products": "bf16"}), folder / "products")
    check(half.code == 2 and "loss.products: bf16 is not available on the CPU" in half.output, "so do its products", half)
