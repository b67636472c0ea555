"""Wrong input: one line per error with what, where and what to do; the documented exit code; no files left behind."""

import os
import signal
import subprocess

from program import CIFAR, CIFAR_RECORD, PROGRAM, SMALL, Folder, check, finish, pids_of, run, start, wait_for, write_cifar

def expect(code, words, result):
    errors = [line for line in result.output.splitlines() if line.startswith("error: ")]
    check(result.code == code and len(errors) == len(words) and
          all(all(part in line for part in parts) for parts, line in zip(words, errors)),
          f"{code}: {errors}", result)


with Folder() as folder:
    place = folder / "run"

    def with_config(text):
        config = folder / "run.yaml"
        config.write_text(text)
        return run(0, {}, place)

    # The configuration: every fault on a line of its own, with its place.
    expect(2, [("run.yaml:2", "train.global_bach", "train.global_batch"), ("run.yaml:4", "loss.temperature", "quotes"),
               ("run.yaml:3", "train.shards", "power of two")],
           with_config('train:\n  global_bach: 64\n  shards: 6\nloss: {temperature: "0.5"}\n'))
    expect(2, [("run.yaml:1", "064", "write 64")], with_config("train: {global_batch: 064}\n"))
    expect(2, [("contains no settings",)], with_config(""))
    expect(2, [("run.yaml:2", "tab")], with_config("train:\n\tepochs: 3\n"))
    expect(2, [("run.yaml:2", "train.epochs", "twice")], with_config("train: {epochs: 3,\n  epochs: 4}\n"))
    expect(4, [("cuda", "without CUDA")], with_config("run: {device: cuda}\n"))
    check(not place.exists(), "no run folder was made")
    (folder / "run.yaml").write_text("{}\n")

    # A precision that the CPU does not have: the library is limited to an older instruction set, as its users can do.
    os.environ["DNNL_MAX_CPU_ISA"] = "AVX512_CORE"
    expect(2, [("run.precision: bf16", "AVX512_BF16", "write fp32")], run(2, dict(SMALL, **{"run.precision": "bf16", "run.device": "cpu"}), place))
    del os.environ["DNNL_MAX_CPU_ISA"]
    expect(2, [("run.precision: found tf32", "write fp32")], run(0, dict(SMALL, **{"run.precision": "tf32", "run.device": "cpu"}), place))
    check(not place.exists(), "no run folder was made")

    # Ranks and batches.
    expect(2, [("3 ranks", "1, 2, 4, 8")], run(3, SMALL, place))
    expect(2, [("train.global_batch", "30", "8")], run(1, dict(SMALL, **{"train.global_batch": 30}), place))

    # Data.
    missing = dict(CIFAR, **{"data.path": folder / "nothing"})
    expect(3, [(str(folder / "nothing"), "does not exist")], run(2, missing, folder / "missing"))
    cut = write_cifar(folder / "cut")
    (cut / "data_batch_3.bin").write_bytes(b"\1" * (CIFAR_RECORD * 20 - 1))
    expect(3, [("data_batch_3.bin", str(CIFAR_RECORD))], run(2, dict(CIFAR, **{"data.path": cut}), folder / "cut_run"))
    odd = write_cifar(folder / "odd")
    data = bytearray((odd / "data_batch_2.bin").read_bytes())
    data[7 * CIFAR_RECORD] = 10
    (odd / "data_batch_2.bin").write_bytes(data)
    expect(3, [("data_batch_2.bin", "7", "10")], run(2, dict(CIFAR, **{"data.path": odd}), folder / "odd_run"))
    few = write_cifar(folder / "few", records=5)
    expect(3, [("25", "32")], run(2, dict(CIFAR, **{"data.path": few}), folder / "few_run"))

    # Output and checkpoints.
    (folder / "file").write_text("")
    expect(6, [(str(folder / "file"),)], run(2, SMALL, folder / "file"))
    expect(6, [("run.yaml",)], run(2, SMALL, folder / "foreign", ["--resume", str(folder / "run.yaml")]))
    result = subprocess.run([PROGRAM, "info", folder / "run.yaml"], capture_output=True, text=True)
    check(result.returncode == 6 and "run.yaml" in result.stderr + result.stdout, "info of a foreign file: 6")

    # A folder that another run uses; that run continues undisturbed.
    busy = folder / "busy"
    first = start(2, dict(SMALL, **{"run.threads": 1, "train.epochs": 2000}), busy)
    check(wait_for(lambda: (busy / "status.json").exists()), "the first run has begun")
    expect(6, [(f"{busy} is in use by another run (process {pids_of(busy)[0]} on ",)], run(2, SMALL, busy))
    first.send_signal(signal.SIGUSR1)
    stopped = finish(first, busy)
    check(stopped.code == 75 and stopped.status["state"] == "stopped", "the first run ends as it was asked to", stopped)

    # The command line.
    for words, code, part in [(["--confg", "x"], 2, "--config"), ([], 2, "--config"), (["--help"], 0, "--resume"),
                              (["--version"], 0, "oneDNN")]:
        result = subprocess.run([PROGRAM] + words, capture_output=True, text=True)
        check(result.returncode == code and part in result.stdout + result.stderr, f"{words}: {code}")

    # Inspecting without training.
    dry = run(2, SMALL, folder / "dry", ["--dry-run"])
    parameters, _, facts = dry.output.partition("simclr_train ")
    check("layer2.0.downsample.0.weight [16, 8, 1, 1]" in parameters and "reduction ordered" in facts
          and "peak memory per rank: " in facts.splitlines()[-1], "--dry-run lists the parameters, then what a run would be", dry)
    check(dry.code == 0 and "1 positive and 62 negatives per anchor" in dry.output and not (folder / "dry").exists(),
          "--dry-run reports what an anchor sees and leaves no files", dry)
    shown = run(0, dict(SMALL, **{"optimizer.lr_scaling": "linear"}), folder / "shown", ["--print-config"])
    check(shown.code == 0 and "0.00625" in shown.output, "--print-config shows the scaled learning rate", shown)
