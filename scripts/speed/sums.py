"""Sums over the ranks of this machine: in the promised order, and MPI's own."""
from . import run

# Elements of the gradients that are summed, of the networks of steps.py.
GRADIENTS = {"ResNet-10, width 32": 1_327_104, "ResNet-18": 11_495_424}


def measure(options):
    print("| ranks | elements | | ordered sum, ms | MPI_Allreduce, ms | sum of 512 doubles, us |")
    print("|---|---|---|---|---|---|", flush=True)
    for ranks in options.ranks:
        for network, elements in GRADIENTS.items():
            words = [options.build / "sum_run", elements, options.repeats]
            runs = [run.call(run.mpirun(ranks, words), 1) for _ in range(options.rounds)]
            ordered, library, short = (run.median(runs, key) for key in ("ordered_seconds", "allreduce_seconds", "short_seconds"))
            print(f"| {ranks} | {elements} | {network} | {1e3 * ordered:.3g} | {1e3 * library:.3g} | {1e6 * short:.3g} |", flush=True)
