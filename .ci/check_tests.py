#!/usr/bin/env python3
"""Holds tests/ to the mirror of the sources and test helpers to one suffix and one namespace.

Usage: check_tests.py [ROOT]. Prints FILE:LINE and the rule for every violation; exit code 1 when there is one.
"""
import re
import sys
from pathlib import Path, PurePosixPath

from sources import list_files

# Folders that test more than one folder of the sources, or no sources.
OTHERS = {
    "harness": "ranks as threads",
    "integration": "the program under mpirun",
    "jobs": "scripts",
    "fuzz": "parsers of foreign bytes",
    "gpu_check": "scripts/gpu_check.sh",
    "golden": "reference values",
}
OTHER_SUFFIX = re.compile(r"_(testing|test_utils?|utils?|parts|helpers?|common)\.(h|cpp)$")
NAMESPACE = re.compile(r"^namespace simclr::(testing|\w+_tests?)\b", re.MULTILINE)


def mirrored(folder):
    """The folder of the sources that `folder` tests: tests/comm mirrors src/comm, tests/kernels/x kernels/x; deeper ones are free."""
    rest = folder.parts[1:]
    return PurePosixPath(*rest[:2]) if rest[0] == "kernels" else PurePosixPath("src", rest[0])


def check(root):
    """All violations as (path, line, rule)."""
    found, missing = [], set()
    for path in list_files(root):
        is_test = path.parts[0] == "tests" and len(path.parts) > 2
        if is_test and path.parts[1] not in OTHERS and not (Path(root) / mirrored(path.parent)).is_dir():
            if path.parent not in missing:
                found.append((path, 1, f"{mirrored(path.parent)} does not exist; tests/ mirrors kernels/ and src/"))
            missing.add(path.parent)
        if path.suffix not in (".h", ".cpp", ".cu") or not (is_test or str(path).startswith("emulator/tests/")):
            continue
        if OTHER_SUFFIX.search(path.name):
            found.append((path, 1, "test helpers are called NAME_support.h"))
        text = (Path(root) / path).read_text(encoding="utf-8")
        for match in NAMESPACE.finditer(text):
            found.append((path, text.count("\n", 0, match.start()) + 1, f"test helpers are in simclr::test, not simclr::{match.group(1)}"))
    return found


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).resolve().parent.parent)
    violations = check(root)
    for path, number, rule in violations:
        print(f"{path}:{number}: {rule}")
    print(f"tests check: {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
