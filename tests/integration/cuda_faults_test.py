"""The program on emulated GPUs when something has changed or fails: another cuDNN on resume, a kernel or a network that
fails in mid-run. What is said, when it ends, and that nothing half computed is in a file.

Arguments: program, mpirun.
"""

import os
import shutil

from program import SMALL, Folder, check, pids_of, run, wait_for

os.environ["EMULATOR_DEVICES"] = "4"
GPU = dict(SMALL, **{"run.device": "cuda", "run.threads": 1, "train.epochs": 2, "evaluate.knn.every_epochs": 0})


def run_with(variable, value, *arguments, **words):
    os.environ[variable] = value
    try:
        return run(*arguments, limit_s=200, **words)
    finally:
        del os.environ[variable]


with Folder() as folder:
    # Convolution plans decide bits: a resume uses those of the checkpoint, whatever cuDNN would choose now.
    tf32 = dict(GPU, **{"run.precision": "tf32"})
    unbroken = run(2, tf32, folder / "unbroken", limit_s=200)
    check(unbroken.code == 0 and len(unbroken.losses) == 10, "tf32 on two GPUs", unbroken)
    begun, bereft = folder / "begun", folder / "bereft"
    check(run(2, dict(tf32, **{"train.stop_at_step": 4}), begun).code == 75, "stopped after step 4")
    shutil.copytree(begun, bereft)
    reranked = run_with("EMULATOR_CUDNN_ENGINES", "reversed", 1, dict(tf32, **{"train.max_steps": 1}), folder / "reversed")
    check(reranked.code == 0 and reranked.losses[1] != unbroken.losses[1], "a cuDNN that ranks its engines differently: other bits", reranked)
    again = run_with("EMULATOR_CUDNN_ENGINES", "reversed", 1, tf32, begun)
    check(again.code == 0 and again.losses == unbroken.losses and again.state_hash() == unbroken.state_hash() and
          "other convolution plans" not in again.output, "resumed there: the plans of the checkpoint, the bits of the unbroken run", again)
    without = run_with("EMULATOR_CUDNN_ENGINES", "plain", 2, tf32, bereft)
    check(without.code == 0 and without.output.count("was written with other convolution plans") == 1 and len(without.losses) == 10 and
          without.losses != unbroken.losses, "resumed where these engines are gone: continues, with a warning", without)

    # A GPU, or the network between GPUs, fails: reported once, with rank and step.
    whole = run(1, GPU, folder / "whole", limit_s=200)
    check(whole.code == 0 and len(whole.losses) == 10, "fp32 on one GPU", whole)

    def failing(name, variable, value, says):
        place = folder / name
        ended = run_with(variable, value, 2, dict(GPU, **{"train.timeout_s": 30}), place)
        errors = [line for line in ended.output.splitlines() if line.startswith("error: ")]
        check(ended.code == 4 and len(errors) == 1 and all(text in errors[0] for text in says), f"{name}: {errors}", ended)
        check(ended.status["state"] == "failed" and ended.status["exit_code"] == 4 and ended.seconds < 120,
              f"{name}: ended after {ended.seconds:.1f} s, status.json says so", ended)
        check(ended.losses and all(whole.losses[step] == loss for step, loss in ended.losses.items()),
              f"{name}: {len(ended.losses)} right losses and no other", ended)
        check(wait_for(lambda: not pids_of(place), 10), f"{name}: no process is left")

    for rank in (0, 1):
        failing(f"kernel_of_rank_{rank}", "EMULATOR_FAULT", f"{rank}:1600", [f"rank {rank} (", "after step ", "illegal memory access"])
    failing("network_of_rank_1", "EMULATOR_NCCL_FAULT", "1:300",
            ["rank 1 (", "the communication between GPUs failed after step ", "network error"])
