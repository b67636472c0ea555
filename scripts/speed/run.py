"""Runs measurements for the tables: processes that take turns, each printing one JSON object, and medians of what they say."""
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Without these, glibc gives large blocks back to the system and takes them again in every step, page by page, of 4 KiB.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 34), "MALLOC_TRIM_THRESHOLD_": str(1 << 34), "MALLOC_TOP_PAD_": str(1 << 28),
               "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Failed(Exception):
    """A measurement that cannot be made here; its text is the exit code and the last line that the process wrote."""


def build(folder, targets):
    if not (folder / "CMakeCache.txt").exists():
        subprocess.run(["cmake", "--preset", "cpu-release", "-B", str(folder)], cwd=ROOT, check=True, stdout=sys.stderr)
    subprocess.run(["cmake", "--build", str(folder), "--target", *targets], check=True, stdout=sys.stderr)


def call(words, threads, **env):
    """The JSON object that a process prints."""
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, OMP_NUM_THREADS=str(threads), **KEEP_MEMORY, **MPI, **env))
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no word of it"]
        raise Failed(f"exit code {done.returncode}: {lines[-1]}")
    return json.loads(done.stdout)


def mpirun(ranks, words):
    """A rank that is one of several waits by sleeping only where cores are fewer than ranks."""
    crowded = ranks > len(os.sched_getaffinity(0))
    return ["mpirun", "-np", ranks, "--bind-to", "none", *(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] if crowded else []), *words]


def alternate(commands, rounds, run):
    """{name: [result of each round]}; those that fail are left out and reported. run(words) -> result."""
    results = {name: [] for name in commands}
    failed = {}
    for _ in range(rounds):
        for name, words in commands.items():
            if name in failed:
                continue
            try:
                results[name].append(run(words))
            except Failed as failure:
                failed[name] = str(failure)
    for name, reason in failed.items():
        print(f"{name}: not measured: {reason}", file=sys.stderr, flush=True)
    return {name: runs for name, runs in results.items() if name not in failed}


def values(runs, key):
    """Of all rounds; a key holds one value or a list of them."""
    return [value for run in runs for value in (run[key] if isinstance(run[key], list) else [run[key]])]


def median(runs, key):
    return statistics.median(values(runs, key))


def least(runs, key):
    return min(values(runs, key))


def machine():
    cpu = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.processor())
    flags = next((line.split(":")[1].split() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("flags")), [])
    sets = [name for flag, name in (("avx2", "AVX2"), ("avx512f", "AVX-512"), ("avx512_bf16", "AVX512_BF16"), ("amx_bf16", "AMX"))
            if flag in flags]
    return f"{cpu} ({', '.join(sets)}), {os.cpu_count()} cores"


def commit():
    return subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], stdout=subprocess.PIPE, text=True).stdout.strip()


def load():
    return "load {:.1f} {:.1f} {:.1f}".format(*os.getloadavg())
