#!/usr/bin/env python3
"""Reads gcov's counters of an emulated build and prints, for the files of the CUDA backend, covered and total lines, then
the lines that nothing reached. Part of scripts/cuda_coverage.sh; standard library and gcov only.

usage: report.py BUILD_FOLDER
"""
import fnmatch
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = ["kernels/*_cuda.cu", "kernels/*_cuda.cpp", "kernels/*_cuda.cuh", "kernels/*/cudnn_*", "kernels/common/*cuda*",
         "kernels/common/launch.cuh", "src/device/*cuda*", "src/device/host_matrix.*", "src/device/choose_device.*",
         "src/comm/nccl_*", "src/comm/staged_*", "src/comm/device_agreement.*", "src/comm/communicator_health.*",
         "src/augment/device_*"]


def counts_of(build):
    """{file: {line: greatest count}} over all objects: a header's line counts where any object has run it."""
    lines = defaultdict(lambda: defaultdict(int))
    for counters in sorted(build.rglob("*.gcda")):
        # Counters older than their object belong to an earlier build of it.
        result = subprocess.run(["gcov", "--json-format", "--stdout", str(counters)], capture_output=True, text=True, cwd=build)
        if result.returncode != 0:
            print(f"left out: {counters.relative_to(build)}: {result.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            continue
        for document in result.stdout.splitlines():
            for file in json.loads(document)["files"] if document.startswith("{") else []:
                path = Path(file["file"])
                path = path if path.is_absolute() else build / path
                if not path.is_relative_to(ROOT):
                    continue
                name = str(path.relative_to(ROOT))
                if any(fnmatch.fnmatch(name, pattern) for pattern in FILES):
                    for line in file["lines"]:
                        known = lines[name][line["line_number"]]
                        lines[name][line["line_number"]] = max(known, line["count"])
    return lines


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: report.py BUILD_FOLDER")
    lines = counts_of(Path(sys.argv[1]).resolve())
    if not lines:
        sys.exit(f"{sys.argv[1]} has no counters of the CUDA backend: build and run with scripts/cuda_coverage.sh")
    print(f"{'lines run':>12}  file")
    covered = total = 0
    for name in sorted(lines):
        run = sum(1 for count in lines[name].values() if count > 0)
        print(f"{run:>5} of {len(lines[name]):>3}  {name}")
        covered, total = covered + run, total + len(lines[name])
    print(f"{covered:>5} of {total:>3}  in all: {100 * covered / total:.1f} %")
    print("\nnot reached:")
    for name in sorted(lines):
        text = (ROOT / name).read_text().splitlines()
        for number, count in sorted(lines[name].items()):
            if count == 0:
                print(f"{name}:{number}: {text[number - 1].strip()}")


if __name__ == "__main__":
    main()
