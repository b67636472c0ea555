"""Shared by the rows of fault_table.py: jobs, the list of faults, and how a job has to end."""

import subprocess
import time

import survivors
from program import MPIRUN, PROGRAM, SMALL, command, environment, kill_all, pids_of, wait_for

LONG = dict(SMALL, **{"run.threads": 1, "train.epochs": 100000, "evaluate.knn.every_epochs": 0, "checkpoint.every_epochs": 0,
                      "checkpoint.every_steps": 1000, "train.timeout_s": 5})
SHORT = dict(SMALL, **{"run.threads": 1, "train.max_steps": 12, "checkpoint.every_steps": 4, "checkpoint.every_epochs": 0,
                       "checkpoint.keep": 5, "evaluate.knn.every_epochs": 0})
rows, odd = [], []


class Job:
    def __init__(self, words, place, env=None, stdout=subprocess.PIPE):
        self.place, self.began = place, time.monotonic()
        self.process = subprocess.Popen([str(word) for word in words], stdout=stdout, stderr=subprocess.STDOUT, text=True,
                                        env=env or environment(), start_new_session=True)

    @property
    def pids(self):
        return pids_of(self.place)

    def trains(self):
        metrics = self.place / "metrics.jsonl"
        return wait_for(lambda: metrics.exists() and '"loss"' in metrics.read_text(), 40)


def job(ranks, settings, place, extra=(), **options):
    return Job(command(ranks, settings, place, extra), place, **options)


def row(text, job, codes, words=(), lines=1, limit_s=60, since=None):
    """Waits for the end. codes: allowed exit codes; words: what the error line must contain; lines: number of error lines."""
    began = since or job.began
    try:
        output, _ = job.process.communicate(timeout=limit_s)
        code = job.process.returncode
    except subprocess.TimeoutExpired:
        code = "HANGS"
        seen = survivors.describe(survivors.group_of(job.process.pid) + job.pids, job.place)
        kill_all(job.process, job.place)
        output = job.process.communicate()[0] + seen
    seconds = time.monotonic() - began
    output = output or ""
    wait_for(lambda: not job.pids, 10)
    left = len(job.pids)
    found = [line for line in output.splitlines() if line.startswith(("error: ", "warning: ")) or " warning " in line]
    errors = [line for line in output.splitlines() if line.startswith("error: ")]
    shown = errors or found or [line for line in output.splitlines() if line.startswith(("stopped after", "stopped before"))]
    wrong = []
    if code not in codes:
        wrong.append(f"exit code {code}, not {codes}")
    if lines is not None and len(errors) != lines:
        wrong.append(f"{len(errors)} lines of error, not {lines}")
    if any(word not in output for word in words):
        wrong.append(f"without {[word for word in words if word not in output]}")
    if left:
        wrong.append("processes left")
    rows.append((text, code, seconds, " / ".join(shown)[:300], left, wrong))
    print(f"{len(rows):2}. {text}\n    exit code {code} after {seconds:.1f} s, {left} processes left"
          f"{'   <-- ' + '; '.join(wrong) if wrong else ''}\n    {' / '.join(shown)[:400]}", flush=True)
    if wrong:
        odd.append((text, output))
    return output


FAULTS = []


def fault(text):
    def take(function):
        FAULTS.append((text, function))
        return function
    return take


def read(path):
    return path.read_bytes() if path.exists() else b""


def check_status(place, state, reason=""):
    """state: None where status.json may be missing."""
    text = read(place / "status.json").decode()
    if text if state is None else f'"{state}"' not in text or reason not in text:
        odd.append((f"{place.name}: status.json does not say {state}", text))
        print(f"    <-- status.json does not say {state}: {text}")


def with_odd_rank(words, odd_words):
    """One job of two ranks, the second with arguments of its own."""
    return [MPIRUN, "--oversubscribe", "--bind-to", "none", "-np", "1"] + words + [":", "-np", "1"] + odd_words


def program_words(settings, place):
    words = command(1, settings, place)
    return words[words.index(str(PROGRAM)):]


def apart(settings, place, make):
    """A job of two ranks in working folders of their own, each with what make(FOLDER / "data") leaves; the job, and the
    folder of rank 1."""
    folders = [place.parent / f"{place.name}_rank_{rank}" for rank in (0, 1)]
    for folder in folders:
        folder.mkdir()
        make(folder / "data")
    words = program_words(dict(settings, **{"data.path": "data"}), place)
    it = Job(with_odd_rank(["-wdir", str(folders[0])] + words, ["-wdir", str(folders[1])] + words), place)
    return it, folders[1]
