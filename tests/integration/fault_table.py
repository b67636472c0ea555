"""A table of faults of a running or starting job: what was done, exit code, seconds until the job was gone, the line
that it printed, processes left. For a person to read; every row also has what it must be, and one that differs is marked.

fault_table.py PROGRAM MPIRUN [WORD ...]     only the rows whose text holds a WORD; needs /dev/full; about five minutes
"""

import sys

import file_faults  # noqa: F401  each adds its faults to the list
import process_faults  # noqa: F401
from faults import FAULTS, odd, rows
from program import Folder

WANTED = sys.argv[3:]

with Folder() as folder:
    for number, (text, do) in enumerate(FAULTS):
        if not WANTED or any(word in text for word in WANTED):
            do(folder / f"f{number}", text)

print("\n| # | fault | exit code | seconds | line | left |\n|---|---|---|---|---|---|")
for number, (text, code, seconds, line, left, wrong) in enumerate(rows, 1):
    line = line.replace("|", "\\|")
    print(f"| {number} | {text} | {code}{' (!)' if wrong else ''} | {seconds:.1f} | {line} | {left} |")
for text, output in odd:
    print(f"\n---- {text}\n{output}")
print(f"\n{len(rows)} faults, {len(odd)} not as they should be")
sys.exit(1 if odd else 0)
