"""Starts scripts/gpu_check.sh and reads its output. Standard library only; not a test itself."""

import os
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "gpu_check.sh"


def check(condition, text, result=None):
    """The first false one ends the test."""
    if not condition:
        print("FAILED:", text, f"\nexit code {result.code}, output:\n{result.text}" if result else "")
        sys.exit(1)
    print("ok:", text, flush=True)


class Result:
    """One finished check: exit code, what it printed, and the rows of its table as {what: (result, note)}."""

    def __init__(self, code, text, output):
        self.code, self.text, self.output = code, text, output
        self.rows = {}
        table = output / "table.txt"
        for line in table.read_text().splitlines()[2:] if table.exists() else []:
            if not line:
                break
            what, rest = line[:44].strip(), line[45:].split(None, 2)
            self.rows[what] = (rest[0], rest[2] if len(rest) > 2 else "")

    def named(self, result):
        return sorted(what for what, row in self.rows.items() if row[0] == result)


def run(script, output, *words, limit_s=170, **environment):
    """In an environment with nothing but PATH and what is given."""
    environment.setdefault("PATH", "/usr/bin:/bin")
    done = subprocess.run([script, "--output", output, *words], env=environment, text=True, timeout=limit_s,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return Result(done.returncode, done.stdout, pathlib.Path(output))


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def size_mib(folder):
    return sum(os.path.getsize(p) for p in folder.rglob("*") if p.is_file()) / 2**20
