#!/usr/bin/env python3
"""Holds the folders to the dependency order of the README and the libraries to their places.

Usage: check_includes.py [ROOT]. Prints FILE:LINE and the rule for every violation; exit code 1 when there is one.
It reads the text of #include lines; what CMake links, and whether an include is needed, it does not look at.
"""
import re
import sys
from pathlib import Path, PurePosixPath

from sources import list_files

# A folder includes itself and what stands before it. src/main.cpp and other files right under src/ stand last.
ORDER = ["kernels", "src/base", "src/config", "src/device", "src/comm", "src/runtime", "src/data", "src/augment", "src/nn",
         "src/loss", "src/optim", "src/checkpoint", "src/metrics", "src/evaluate", "src/report", "src/check_loss", "src/train", "src/commands",
         "src"]
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}

# What a kernel, a leaf, does without. Names of headers, or their folder.
NOT_IN_KERNELS = re.compile(r"(mpi\.h|nccl\.h|yaml-cpp/.*|spdlog/.*|nlohmann/.*|CLI/.*|filesystem|fstream)$")

# Library: its headers, the folders that may include them (a test has the right of the folder that it mirrors).
PLACES = [
    ("MPI and NCCL", re.compile(r"(mpi|nccl)\.h$"), ["src/comm"]),
    ("oneDNN, cuDNN and cuBLAS", re.compile(r"(oneapi/dnnl/.*|dnnl.*|cudnn.*|cublas.*)$"), ["kernels", "src/device", "bench"]),
    ("Eigen", re.compile(r"Eigen/.*$"), ["src/evaluate", "src/report"]),
]
# Stands on the other side of NVIDIA's headers: it defines what they declare, and has include roots of its own.
EMULATOR = "emulator"
# Compiles one text once per instruction set, which only the compiler's macros can select.
INSTRUCTION_SETS = [PurePosixPath("kernels/infonce_streaming/streaming_tile_cpu.cpp")]
# Watches the program's calls from outside.
WATCHERS = [PurePosixPath("tests/integration/mpi_calls.cpp"), PurePosixPath("tests/integration/slow_init.cpp")]
YAML = re.compile(r"yaml-cpp/")

INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
CONDITIONAL = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif)\b")


def sources(root):
    return [p for p in list_files(root) if p.suffix in SUFFIXES and p.parts[0] in ("kernels", "src", "emulator", "tests", "bench")]


def level(path):
    """Index in ORDER of the folder of path, None for a folder that is not in it."""
    parts = path.parts
    folder = parts[0] if parts[0] != "src" or len(parts) == 2 else f"src/{parts[1]}"
    return ORDER.index(folder) if folder in ORDER else None


def mirrored(path):
    """tests/comm/x_test.cpp has the rights of src/comm/x_test.cpp, tests/kernels/... of kernels/..."""
    if path.parts[0] != "tests":
        return path
    rest = PurePosixPath(*path.parts[1:])
    return rest if rest.parts[0] == "kernels" else PurePosixPath("src") / rest


def is_under(path, folders):
    return any(PurePosixPath(folder) in path.parents for folder in folders)


def check_order(path, included):
    """Rule that `path` breaks with #include "included", or None. For files of kernels/ and src/."""
    own, other = level(path), level(included)
    if other is None:
        return f"{included}: its folder is not in the dependency order (ORDER in .ci/check_includes.py)"
    if other > own:
        return f"{ORDER[own]} stands before {ORDER[other]} and does not include {included}"
    if path.parts[0] == "kernels" and included.parts[1] not in ("common", path.parts[1], f"{path.parts[1].split('_')[0]}_common"):
        return f"an op includes kernels/common, the NAME_common of its family and its own folder, not {included}"
    return None


def check_file(root, path):
    """Violations of one file as (line, rule); and the line of its first include of yaml-cpp, or None."""
    found, yaml_line = [], None
    text = (Path(root) / path).read_text(encoding="utf-8")
    is_product = path.parts[0] in ("kernels", "src")
    if is_product and level(path) is None:
        found.append((1, f"{path.parent} is not in the dependency order (ORDER in .ci/check_includes.py)"))
    # NAME_body.h is included more than once, on purpose.
    if path.suffix in (".h", ".cuh") and not path.stem.endswith("_body") and not re.search(r"^#pragma once$", text, re.MULTILINE):
        found.append((1, "a header has #pragma once"))
    for number, line in enumerate(text.splitlines(), 1):
        if CONDITIONAL.match(line) and not is_under(path, ["kernels/common", EMULATOR]) and path not in INSTRUCTION_SETS:
            found.append((number, "no #if outside kernels/common: a choice is another source file, taken by CMake"))
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, name = match.group(1) is not None, match.group(1) or match.group(2)
        if path.parts[0] == "kernels" and NOT_IN_KERNELS.match(name):
            found.append((number, f"a kernel is a leaf and does not include {name}"))
        for library, headers, folders in PLACES:
            free = is_under(path, [EMULATOR]) or path in WATCHERS
            if headers.match(name) and not free and not is_under(mirrored(path), folders):
                found.append((number, f"{library} only under {', '.join(folders)}, not {name} here"))
        if YAML.match(name) and yaml_line is None:
            yaml_line = number
        if not quoted:
            continue
        # CMake makes src/base/version.h from src/base/version.h.in.
        if not any((Path(root) / f"{name}{end}").is_file() for end in ("", ".in")):
            # kernels/common/onednn_v2 and onednn_v3 hold one header each of the same name, as do with_cuda and
            # without_cuda, nvcc and the emulator; CMake takes the folder.
            chosen = list((Path(root) / "kernels/common").glob(f"*/{name}"))
            if not chosen and not (is_under(path, [EMULATOR]) and (Path(root) / EMULATOR / "include" / name).is_file()):
                found.append((number, f'"{name}" is not a file; includes are written from the repository root'))
        elif is_product and level(path) is not None:
            rule = check_order(path, PurePosixPath(name))
            if rule:
                found.append((number, rule))
    return found, yaml_line


def check(root):
    """All violations as (path, line, rule)."""
    violations, yaml = [], []
    for path in sources(root):
        found, yaml_line = check_file(root, path)
        violations += [(path, number, rule) for number, rule in found]
        if yaml_line is not None:
            yaml.append((path, yaml_line))
    for path, number in yaml:
        if len(yaml) > 1 or path.suffix != ".cpp":
            others = ", ".join(str(p) for p, _ in yaml if p != path)
            violations.append((path, number, f"yaml-cpp in exactly one .cpp file; also in: {others or 'none'}"))
    return violations


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).resolve().parent.parent)
    violations = check(root)
    for path, number, rule in violations:
        print(f"{path}:{number}: {rule}")
    print(f"include check: {len(sources(root))} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
