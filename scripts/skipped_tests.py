#!/usr/bin/env python3
"""Lists the test cases that a run of ctest skipped, each with its reason: ctest itself counts them as passed.

usage: skipped_tests.py BUILD_FOLDER [--fail-on VARIABLE]
Reads Testing/Temporary/LastTest.log, which ctest writes. Cases that skip for lack of SIMCLR_SHARED, the folder of real
images, are counted apart from those that this machine cannot run. --fail-on: exit code 1 when a reason names VARIABLE.
"""
import re
import sys
from pathlib import Path

SHARED = "SIMCLR_SHARED"
TEST = re.compile(r"\d+/\d+ Testing: (.*)")
CASE = re.compile(r"\[  SKIPPED \] (\S+) \(\d+ ms\)")  # GoogleTest, when the case ends; its list at the end has no time
WHERE = re.compile(r"\S+:\d+: Skipped$")
SCRIPT = re.compile(r"skipped: (.*)", re.IGNORECASE)  # the Python tests


def skipped(log):
    """(test, case, reason) of each skipped case in the text of a log; case is empty for a Python test."""
    found, test, reason = [], "", []
    reads_reason = False
    for line in log.splitlines():
        if match := TEST.match(line):
            test = match.group(1)
        elif WHERE.match(line):
            reason, reads_reason = [], True
        elif match := CASE.match(line):
            found.append((test, match.group(1), " ".join(reason) or "no reason given"))
            reason, reads_reason = [], False
        elif reads_reason:
            reason += [line.strip()] if line.strip() else []
        elif match := SCRIPT.match(line):
            found.append((test, "", match.group(1)))
    return found


def suite(case):
    """Bfloat16Conv2d of Shapes/Bfloat16Conv2d.AgreesWithPlainLoops/k3s1p1."""
    return case.split(".")[0].split("/")[-1]


def report(cases):
    """The lines to print: every case that lacks SIMCLR_SHARED, and the others by reason, their suites named."""
    apart = [case for case in cases if SHARED in case[2]]
    others = [case for case in cases if SHARED not in case[2]]
    lines = [f"skipped cases: {len(apart)} for lack of {SHARED}, {len(others)} for other reasons"]
    lines += [f"  {test} {case}: {reason}" for test, case, reason in apart]
    for reason in sorted({reason for _, _, reason in others}):
        here = [(test, case) for test, case, why in others if why == reason]
        tests = ", ".join(sorted({test for test, _ in here}))
        suites = ", ".join(sorted({suite(case) for _, case in here if case}))
        lines.append(f"  {len(here):3d} in {tests}{f' ({suites})' if suites else ''}: {reason}")
    return lines


def main(words):
    if len(words) not in (1, 3) or words[0].startswith("-") or (len(words) == 3 and words[1] != "--fail-on"):
        print("usage: skipped_tests.py BUILD_FOLDER [--fail-on VARIABLE]", file=sys.stderr)
        return 2
    log = Path(words[0]) / "Testing/Temporary/LastTest.log"
    if not log.is_file():
        print(f"skipped_tests.py: {log} does not exist; run ctest there first", file=sys.stderr)
        return 2
    cases = skipped(log.read_text(encoding="utf-8", errors="replace"))
    print("\n".join(report(cases)))
    return int(len(words) == 3 and any(words[2] in reason for _, _, reason in cases))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
