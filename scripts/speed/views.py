"""Random views of one core, ours and torchvision's on PIL images."""
import pathlib

from . import run

TORCH_VIEWS = pathlib.Path(__file__).resolve().parent / "torch_views.py"
# Side of the source, side of the view, blur.
CASES = [(32, 32, 0), (32, 32, 1), (96, 32, 0), (96, 32, 1), (224, 32, 0), (224, 32, 1), (224, 224, 0), (224, 224, 1)]


def our_rate(options, case):
    name = "BM_RandomView/" + "/".join(str(number) for number in case)
    out = run.call([options.build / "augment_bench", f"--benchmark_filter=^{name}$", "--benchmark_format=json", "--benchmark_min_time=0.5"], 1)
    return {"rates": [1e9 / row["cpu_time"] for row in out["benchmarks"]]}


def measure(options):
    print("| source | view | blur | ours, views/s of one core | torchvision, PIL | times |")
    print("|---|---|---|---|---|---|", flush=True)
    for case in CASES:
        runs = {"ours": lambda: our_rate(options, case)}
        for python in options.torches:
            runs[python] = lambda python=python: run.call([python, TORCH_VIEWS, *case, options.repeats], 1)
        results = run.alternate(runs, options.rounds, lambda measure_once: measure_once())
        theirs = [run.median(result, "rates") for name, result in results.items() if name != "ours"]
        ours = run.median(results["ours"], "rates")
        source, side, blur = case
        print(f"| {source} | {side} | {'yes' if blur else 'no'} | {ours:.4g} | " + (f"{max(theirs):.4g} | {ours / max(theirs):.1f} |" if theirs else " | |"),
              flush=True)
