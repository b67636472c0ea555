"""Runs mutations (mutations.py) of the files on the command line against the tests that cover them. Called by
scripts/mutate.sh; --help lists the options. Exit code: 0 all caught, 1 some survived, 2 it could not run."""
import argparse
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import mutations

COPY = Path("build/mutate/source")
SLOWER = 5  # times its unmutated seconds, and a test counts as hung
SHORTEST_LIMIT_S = 20


def stop(message):
    print(f"mutate.sh: {message}", file=sys.stderr)
    sys.exit(2)


def parse_words():
    parser = argparse.ArgumentParser(prog="scripts/mutate.sh", description="Mutation test of C++ and CUDA sources.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="sources or headers under kernels/ or src/")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="mutations per file, spread over it; default: all")
    parser.add_argument("--seed", default="1", help="of the choice that --limit makes")
    parser.add_argument("--tests", metavar="REGEX", help="ctest names to run; default: the tests of the folder that mirrors the file's")
    parser.add_argument("--time-limit", type=float, default=0, metavar="MINUTES", help="start no mutation after that")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="of the build")
    parser.add_argument("--list", action="store_true", help="print the mutations and stop")
    return parser.parse_args()


def chosen(words):
    """(file, text, mutation) in order."""
    found = []
    for name in words.files:
        path = Path(os.path.relpath(name))
        if not path.is_file() or path.parts[0] not in ("kernels", "src"):
            stop(f"{name} is not a file under kernels/ or src/")
        text = path.read_text(encoding="utf-8")
        found += [(path, text, m) for m in mutations.spread(mutations.mutations(text), words.limit, f"{words.seed} {path}")]
    return found


def refresh_copy():
    """The files of the working tree that git does not ignore; one that has not changed keeps its time."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True, capture_output=True).stdout
    names = {Path(n.decode()) for n in names.split(b"\0") if n and Path(n.decode()).is_file()}
    for name in names:
        there = COPY / name
        if not there.is_file() or there.read_bytes() != name.read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, there)
            shutil.copymode(name, there)
    for there in COPY.rglob("*"):
        path = there.relative_to(COPY)
        if path.parts[0] != "build" and there.is_file() and path not in names:
            there.unlink()


class Build:
    """The copy's build with one preset."""

    def __init__(self, preset, jobs):
        self.preset, self.folder, self.jobs = preset, (COPY / "build" / preset).resolve(), jobs
        configured = self.run(["cmake", "--preset", preset, "-DSIMCLR_BUILD_TESTS=ON", "-DSIMCLR_BUILD_BENCH=OFF"])
        if configured.returncode != 0:
            stop(f"cmake failed in {COPY}:\n{configured.stdout}")
        self.sources = {}  # target: its source files
        for command in json.loads((self.folder / "compile_commands.json").read_text()):
            match = re.search(r" -o \S*CMakeFiles/([^/]+)\.dir/", command["command"])
            if match:
                self.sources.setdefault(match.group(1), []).append(Path(command["file"]))

    def run(self, command, timeout=None):
        return subprocess.run(command, cwd=COPY, timeout=timeout, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def make(self, targets):
        return self.run(["ninja", "-C", self.folder, "-j", str(self.jobs), *targets])

    def tests(self):
        """As ctest lists them; one whose program is not built has no command."""
        listed = subprocess.run(["ctest", "--test-dir", self.folder, "--show-only=json-v1"], capture_output=True, text=True)
        return json.loads(listed.stdout)["tests"]

    def targets_of(self, test):
        """What has to be built for a test: the programs in its command, or the one that its name begins with."""
        if "command" in test:
            return {Path(word).name for word in test["command"]} & self.sources.keys()
        return {max((t for t in self.sources if test["name"].startswith(t)), key=len, default="")} - {""}

    def covering(self, path, names):
        """Names and targets of the tests that match `names`, or of the folder of tests that mirrors path's."""
        folder = path.parent if path.parts[0] == "kernels" else path.parent.relative_to("src")
        mirror = (COPY / "tests" / folder).resolve()
        mirrored = {target for target, files in self.sources.items() if any(mirror in file.parents for file in files)}
        found, targets = [], set()
        for test in self.tests():
            labels = next((p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"), [])
            mine = self.targets_of(test)
            if (re.search(names, test["name"]) if names else mine & mirrored) and (self.preset != "cuda-emulated" or "cuda" in labels):
                found.append(test["name"])
                targets |= mine
        return found, sorted(targets)

    def digest(self, targets):
        """Of all that a mutation can change: programs and shared libraries."""
        files = sorted([self.folder / t for t in targets] + [p for p in self.folder.rglob("*.so") if p.is_file()])
        return sha256(b"".join(sha256(f.read_bytes()).digest() for f in files if f.is_file())).hexdigest()


def passes(test, limit_s):
    """Whether one test passes within limit_s seconds."""
    properties = {p["name"]: p["value"] for p in test.get("properties", [])}
    env = dict(os.environ, GTEST_FAIL_FAST="1", GTEST_BRIEF="1", **dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", [])))
    process = subprocess.Popen(test["command"], cwd=properties["WORKING_DIRECTORY"], env=env, start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        code = process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        code = None
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    return code in (0, 77)


class Suite:
    """The tests of one file: built and run once unmutated, the quickest first from then on."""

    def __init__(self, build, path, names):
        covering, self.targets = build.covering(path, names)
        if not covering:
            raise LookupError
        self.build = build
        built = build.make(self.targets)
        if built.returncode != 0:
            stop(f"{path}: the unmutated sources do not build:\n{built.stdout[-3000:]}")
        self.tests = []
        for test in build.tests():
            if test["name"] not in covering:
                continue
            start = time.monotonic()
            if not passes(test, 600):
                stop(f"{path}: {test['name']} fails without a mutation")
            self.tests.append((time.monotonic() - start, test))
        self.tests.sort(key=lambda pair: pair[0])
        self.digest = build.digest(self.targets)

    def judge(self):
        """'not compiled', 'equal code', 'survived', or 'caught by TEST' for the copy as it is."""
        if self.build.make(self.targets).returncode != 0:
            return "not compiled"
        if self.build.digest(self.targets) == self.digest:
            return "equal code"
        for seconds, test in self.tests:
            if not passes(test, max(SHORTEST_LIMIT_S, SLOWER * seconds)):
                return f"caught by {test['name']}"
        return "survived"


def make_suite(path, builds, words):
    """The tests of a file, built and announced; None when there are none. builds: by preset, filled here."""
    preset = "cuda-emulated" if path.suffix in (".cu", ".cuh") or path.stem.endswith("_cuda") else "cpu-release"
    if preset not in builds:
        builds[preset] = Build(preset, words.jobs)
    try:
        suite = Suite(builds[preset], path, words.tests)
    except LookupError:
        print(f"== {path}: no test in the mirrored folder; name tests with --tests", flush=True)
        return None
    print(f"== {path}: {', '.join(test['name'] for _, test in suite.tests)}", flush=True)
    return suite


def main():
    words = parse_words()
    todo = chosen(words)
    if words.list:
        for path, text, mutation in todo:
            print(f"{path}:{mutation.line(text)}: {mutation.kind}: {mutation.describe(text)}")
        return 0
    COPY.mkdir(parents=True, exist_ok=True)
    lock = open(COPY.parent / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stop(f"another mutate.sh is at work in {COPY.parent}; wait for it")
    refresh_copy()
    start, builds, suites, verdicts = time.monotonic(), {}, {}, []
    for path, text, mutation in todo:
        if words.time_limit and time.monotonic() - start > 60 * words.time_limit:
            print(f"time limit: {len(todo) - len(verdicts)} of {len(todo)} mutations not tried")
            break
        if path not in suites:
            suites[path] = make_suite(path, builds, words)
        if suites[path] is None:
            verdicts.append("no test")
            continue
        copy = COPY / path
        copy.write_text(mutation.apply(text), encoding="utf-8")
        try:
            verdict = suites[path].judge()
        finally:
            copy.write_text(text, encoding="utf-8")
        verdicts.append(verdict)
        word, _, test = verdict.partition(" by ")
        print(f"{word:12s} {path}:{mutation.line(text)}: {mutation.kind}: {mutation.describe(text)}{f'  [{test}]' if test else ''}", flush=True)
    survived = verdicts.count("survived")
    made = sum(v == "survived" or v.startswith("caught") for v in verdicts)
    print(f"made {made}, caught {made - survived}, survived {survived}; not counted: {verdicts.count('not compiled')} that do not "
          f"compile, {verdicts.count('equal code')} that give the same code, {verdicts.count('no test')} without a test")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
