"""Training steps, ours and PyTorch's."""
import pathlib
import sys

from . import run

NETWORKS = {"ResNet-10, width 32": (10, 32), "ResNet-18": (18, 64)}
TORCH_STEP = pathlib.Path(__file__).resolve().parent / "torch_step.py"
# Name in the table: precision, and what a configuration says for it.
OURS = {"direct": ("fp32", ["model.convolution=direct"]), "default": ("fp32", []), "bf16": ("bf16", ["run.precision=bf16"])}


def our_step(build, depth, width, views, threads, repeats, keys):
    return [build / "step_run", repeats, f"model.encoder.depth={depth}", f"model.encoder.width={width}",
            f"model.projector.hidden={8 * width}", f"train.global_batch={views // 2}", f"run.threads={threads}", *keys]


def candidates(options, depth, width, views):
    """{(who, precision): words}"""
    commands = {}
    for name, (precision, keys) in OURS.items():
        if precision in options.precisions:
            commands[f"ours, {name}", precision] = our_step(options.build, depth, width, views, options.threads, options.repeats, keys)
    for python, version in options.torches.items():
        for precision in options.precisions:
            for mode in options.torch_modes:
                if mode == "compile" and version.startswith("1."):
                    continue
                commands[f"PyTorch {version}, {mode}", precision] = [python, TORCH_STEP, depth, width, views, precision, mode, options.threads,
                                                                     options.repeats]
    return commands


def measure(options):
    print("| network | views | | precision | views/s | of one CPU second | times PyTorch's best | by CPU time | MB |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for network, (depth, width) in NETWORKS.items():
        for views in options.views:
            commands = candidates(options, depth, width, views)
            results = run.alternate(commands, options.rounds, lambda words: run.call(words, options.threads))
            rate = {who: views / run.median(runs, "seconds") for who, runs in results.items()}
            cpu_rate = {who: views / run.median(runs, "cpu_seconds") for who, runs in results.items()}
            for (name, precision), runs in results.items():
                theirs = [who for who in results if who[0].startswith("PyTorch") and who[1] == precision]
                ratios = [f"{rates[name, precision] / max(rates[who] for who in theirs):.2f}" if theirs else "" for rates in (rate, cpu_rate)]
                print(f"| {network} | {views} | {name} | {precision} | {rate[name, precision]:.4g} | {cpu_rate[name, precision]:.4g} | "
                      f"{' | '.join(ratios)} | {run.median(runs, 'bytes') / 1e6:.4g} |", flush=True)
    print(run.load(), file=sys.stderr)
