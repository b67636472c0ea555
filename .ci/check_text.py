#!/usr/bin/env python3
"""Checks the text of the sources: whitespace, length, paths of one machine, marks of unfinished work, words of the glossary.

Usage: check_text.py [ROOT]. Prints FILE:LINE and the rule for every violation; exit code 1 when there is one.
The layout of C++ is left to clang-format.
"""
import re
import sys
from pathlib import Path

from sources import list_files
from words import find_words

CODE = {".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake"}
TEXT = CODE | {".md", ".yaml", ".txt"}
NAMES = {"Dockerfile", ".clang-tidy", ".clang-format", ".gitignore", ".dockerignore", "run"}
MAX_LINES = 500

# The brackets keep these lines from matching themselves.
MACHINE_PATH = re.compile(r"(?<![\w.}])/(hom[e]|roo[t]|User[s]|wor[k]|far[m])(/|\b)")
UNFINISHED = re.compile(r"\b(TO[D]O|FIX[M]E|XX[X])\b")


def sources(root):
    return [p for p in list_files(root) if p.suffix in TEXT or p.name in NAMES]


def check_file(root, path):
    """Violations of one file as (line, rule)."""
    found = []
    try:
        text = (Path(root) / path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        return [(1, f"not UTF-8: {error}")]
    lines = text.split("\n")
    if text and not text.endswith("\n"):
        found.append((len(lines), "no newline at the end of the file"))
    if path.suffix in CODE and len(lines) - 1 > MAX_LINES:
        found.append((MAX_LINES + 1, f"{len(lines) - 1} lines, at most {MAX_LINES}: split the file"))
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            found.append((number, "whitespace at the end of the line"))
        if "\t" in line:
            found.append((number, "a tab"))
        for rule, pattern in (("a path that one machine has", MACHINE_PATH), ("unfinished", UNFINISHED)):
            match = pattern.search(line)
            if match:
                found.append((number, f"{rule}: {match.group(0)}"))
    found += [(line, f"'{word}': {instead}") for line, word, instead in find_words(path, text)]
    return sorted(found)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).resolve().parent.parent)
    paths = sources(root)
    violations = [(path, number, rule) for path in paths for number, rule in check_file(root, path)]
    for path, number, rule in violations:
        print(f"{path}:{number}: {rule}")
    print(f"text check: {len(paths)} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
