"""A table of faults of a running or starting job: what was done, exit code, seconds until the job was gone, the line
that it printed, processes left. For a person to read; every row also has what it must be, and one that differs is marked.

fault_table.py PROGRAM MPIRUN [WORD ...]     only the rows whose text holds a WORD; needs /dev/full; about five minutes
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time

from program import MPIRUN, PROGRAM, SMALL, Folder, command, environment, pids_of, run, wait_for, write_cifar, CIFAR

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
    """Waits for the end. codes: the exit codes that are right; words: what the line must hold; lines: how many there are."""
    began = since or job.began
    try:
        output, _ = job.process.communicate(timeout=limit_s)
        code = job.process.returncode
    except subprocess.TimeoutExpired:
        code = "HANGS"
        os.killpg(job.process.pid, signal.SIGKILL)
        for pid in job.pids:
            os.kill(pid, signal.SIGKILL)
        output, _ = job.process.communicate()
    seconds = time.monotonic() - began
    output = output or ""
    wait_for(lambda: not job.pids, 10)
    left = len(job.pids)
    found = [line for line in output.splitlines() if line.startswith(("error: ", "warning: ")) or " warning " in line]
    errors = [line for line in output.splitlines() if line.startswith("error: ")]
    shown = errors or found or [line for line in output.splitlines() if line.startswith("stopped after")]
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


WANTED = sys.argv[3:]
FAULTS = []


def fault(text):
    def take(function):
        FAULTS.append((text, function))
        return function
    return take


def signalled(text, number, rank, codes, words, lines=1, limit_s=40, ranks=4, settings=LONG):
    @fault(text)
    def do(place, name):
        it = job(ranks, settings, place)
        it.trains()
        since = time.monotonic()
        os.kill(it.pids[rank] if rank is not None else it.process.pid, number)
        row(name, it, codes, words, lines, limit_s, since)


signalled("kill -9 of rank 2 of 4", signal.SIGKILL, 2, (137,), (), lines=0)
signalled("kill -9 of rank 0 of 4", signal.SIGKILL, 0, (137,), (), lines=0)
signalled("kill -9 of mpirun", signal.SIGKILL, None, (-9,), (), lines=None)
signalled("SIGSTOP of rank 1 of 4", signal.SIGSTOP, 1, (4,), ("rank 1 (",))
signalled("SIGSEGV to rank 3 of 4", signal.SIGSEGV, 3, (139,), (), lines=0)
signalled("SIGTERM to rank 1 of 2", signal.SIGTERM, 1, (75,), (), lines=0, ranks=2)
signalled("SIGUSR1 to mpirun", signal.SIGUSR1, None, (75,), (), lines=0, ranks=2)


@fault("SIGTERM to mpirun, the ranks given 5 s by OMPI_MCA_odls_base_sigkill_timeout")
def term_mpirun(place, name):
    it = job(2, LONG, place, env=dict(environment(), OMPI_MCA_odls_base_sigkill_timeout="5"))
    it.trains()
    since = time.monotonic()
    it.process.send_signal(signal.SIGTERM)
    row(name, it, (1, 75, 143), (), 0, since=since)
    check_status(place, "stopped")


@fault("SIGUSR1 and SIGTERM at once to all ranks")
def twice(place, name):
    it = job(4, LONG, place)
    it.trains()
    since = time.monotonic()
    for number in (signal.SIGUSR1, signal.SIGTERM):
        for pid in it.pids:
            os.kill(pid, number)
    row(name, it, (75,), (), 0, since=since)


@fault("SIGUSR1 before step 1")
def early(place, name):
    it = job(2, dict(LONG, **{"data.synthetic.train_images": 20000, "train.timeout_s": 60}), place)
    wait_for(lambda: (place / "train.log").exists(), 30)
    since = time.monotonic()
    os.kill(it.pids[0], signal.SIGUSR1)
    row(name, it, (75,), (), 0, since=since)


@fault("SIGUSR1 in an evaluation")
def in_evaluation(place, name):
    it = job(2, dict(LONG, **{"evaluate.knn.every_epochs": 1, "data.synthetic.test_images": 3000, "train.timeout_s": 60}), place)
    it.trains()
    wait_for(lambda: any(b"evaluat" in read(place / "train.log") for _ in [0]), 3)
    since = time.monotonic()
    os.kill(it.pids[1], signal.SIGUSR1)
    row(name, it, (75,), (), 0, since=since)


@fault("SIGUSR1 in a save (a checkpoint each step)")
def in_save(place, name):
    it = job(2, dict(LONG, **{"checkpoint.every_steps": 1}), place)
    it.trains()
    wait_for(lambda: list((place / "checkpoints").glob("*.tmp-*")), 10)
    since = time.monotonic()
    os.kill(it.pids[0], signal.SIGUSR1)
    row(name, it, (75,), (), 0, since=since)


@fault("train.max_minutes: 0.05")
def minutes(place, name):
    row(name, job(2, dict(LONG, **{"train.max_minutes": 0.05}), place), (75,), (), 0)


@fault("a loss that is not finite")
def diverged(place, name):
    row(name, job(2, dict(LONG, **{"optimizer.base_lr": 1e30, "optimizer.momentum": 0}), place), (5,), ("not finite",))


@fault("a typing error in the configuration, 4 ranks")
def typo(place, name):
    row(name, job(4, dict(SMALL, **{"loss.temprature": 0.5}), place), (2,), ("loss.temperature",))


@fault("3 ranks for 8 shards")
def three(place, name):
    row(name, job(3, SMALL, place), (2,), ("1, 2, 4, 8",))


@fault("another learning rate on rank 3 of 4")
def other(place, name):
    base = command(1, SMALL, place)
    words = base[base.index(str(PROGRAM)):]
    changed = ["optimizer.base_lr=0.06" if w.startswith("optimizer.base_lr=") else w for w in words]
    row(name, Job([MPIRUN, "--oversubscribe", "--bind-to", "none", "-np", "3"] + words + [":", "-np", "1"] + changed, place),
        (2,), ("rank 3", "optimizer.base_lr"))


@fault("data files that only rank 1 of 2 does not find")
def blind(place, name):
    write_cifar(place.parent / f"{place.name}_here")
    base = command(1, dict(CIFAR, **{"data.path": "data"}), place)
    words = base[base.index(str(PROGRAM)):]
    here, there = place.parent / f"{place.name}_a", place.parent / f"{place.name}_b"
    here.mkdir()
    there.mkdir()
    (here / "data").symlink_to(place.parent / f"{place.name}_here")
    row(name, Job([MPIRUN, "--oversubscribe", "--bind-to", "none", "-np", "1", "-wdir", str(here)] + words +
                  [":", "-np", "1", "-wdir", str(there)] + words, place), (3,), ("rank 1", "data"))


@fault("4 processes that srun started without an MPI plug-in")
def apart(place, name):
    row(name, job(0, SMALL, place, env=dict(environment(), SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="4", SLURM_JOB_ID="1",
                                            SLURM_NTASKS="4")), (4,), ("mpi",))


@fault("2 processes of another MPI's mpirun (PMI_SIZE=2)")
def other_mpi(place, name):
    row(name, job(0, SMALL, place, env=dict(environment(), PMI_SIZE="2", PMI_RANK="0")), (4,), ())


def filling(text, bytes_left, file, settings=LONG, lines=1):
    @fault(text)
    def do(place, name):
        small = place.parent / f"{place.name}_disk"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(small)], capture_output=True).returncode != 0:
            print(f"    {text}: not done, mounting a small disk needs root")
            return
        try:
            inside = small / "run"
            it = job(2, settings, inside)
            it.trains()
            since = time.monotonic()
            free = os.statvfs(small)
            with open(small / "filler", "wb") as filler:
                filler.write(b"\1" * max(0, free.f_bavail * free.f_frsize - bytes_left))
            row(name, it, (6,), ("No space left", file), lines, since=since)
        finally:
            subprocess.run(["umount", "-l", str(small)])


filling("disk full: no room for a checkpoint", 8192, "checkpoints/step_", dict(LONG, **{"checkpoint.every_steps": 20}))
filling("disk full: no room for metrics.jsonl and train.log", 0, "metrics.jsonl", lines=2)  # status.json, too


@fault("quota: rank 0 may not let a file grow beyond 20 kB")
def quota(place, name):
    it = job(2, dict(LONG, **{"checkpoint.every_steps": 20, "log.every_steps": 1000}), place)
    it.trains()
    resource.prlimit(it.pids[0], resource.RLIMIT_FSIZE, (20000, 20000))
    row(name, it, (6,), ("File too large",))


@fault("stdout and stderr on /dev/full")
def full_terminal(place, name):
    with open("/dev/full", "w") as full:
        it = Job(command(0, SHORT, place), place, stdout=full)
    row(name, it, (0, 6), (), None)


@fault("train.log is a link to /dev/full")
def full_log(place, name):
    place.mkdir()
    (place / "train.log").symlink_to("/dev/full")
    row(name, job(2, SHORT, place), (6,), ("train.log",))


@fault("a run folder on a disk that is mounted read-only")
def read_only(place, name):
    disk = place.parent / f"{place.name}_disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", str(disk)], capture_output=True).returncode != 0:
        print(f"    {name}: not done, mounting needs root")
        return
    try:
        words = [str(disk / "run") if word == str(place) else word for word in command(2, SHORT, place)]
        row(name, Job(words, disk / "run"), (6,), (str(disk),))
    finally:
        subprocess.run(["umount", "-l", str(disk)])


@fault("the run folder is removed while the job trains")
def removed(place, name):
    it = job(2, dict(LONG, **{"checkpoint.every_steps": 200}), place)
    it.trains()
    since = time.monotonic()
    shutil.rmtree(place)
    row(name, it, (6,), (str(place),), 2, since=since)  # status.json, too


@fault("a second job in the folder of the first")
def second(place, name):
    first = job(2, LONG, place)
    first.trains()
    it = job(2, LONG, place)
    try:
        output, _ = it.process.communicate(timeout=40)
        errors = [line for line in output.splitlines() if line.startswith("error: ")]
        wrong = [] if it.process.returncode == 6 and len(errors) == 1 and "in use" in errors[0] else ["not refused"]
    except subprocess.TimeoutExpired:
        wrong, errors = ["HANGS"], []
    seconds = time.monotonic() - it.began
    os.kill(first.pids[0], signal.SIGUSR1)
    first.process.communicate(timeout=40)
    rows.append((name, it.process.returncode, seconds, " / ".join(errors), len(it.pids), wrong))
    print(f"{len(rows):2}. {name}\n    exit code {it.process.returncode} after {seconds:.1f} s, {len(it.pids)} processes left"
          f"{'   <-- ' + '; '.join(wrong) if wrong else ''}\n    {' / '.join(errors)[:400]}", flush=True)
    odd.extend((name, output) for _ in wrong)


@fault("a lock file of a job that is gone")
def stale(place, name):
    place.mkdir()
    (place / "lock").write_text("process 1 on elsewhere since 2020-01-01T00:00:00Z\n")
    row(name, job(2, SHORT, place), (0,), (), 0)


def bad_checkpoint(text, change, words, settings=SHORT, codes=(6,)):
    @fault(f"resume from a checkpoint that is {text}")
    def do(place, name):
        checkpoint = place.parent / f"{place.name}.safetensors"
        data = bytearray(good_checkpoint(place.parent).read_bytes())
        checkpoint.write_bytes(change(data))
        row(name, job(2, settings, place, ["--resume", str(checkpoint)]), codes, (str(checkpoint),) + words)


def good_checkpoint(folder):
    if not (folder / "good").exists():
        assert run(2, SHORT, folder / "good").code == 0
    return sorted((folder / "good" / "checkpoints").glob("step_*"))[-1]


def with_header(text):
    return len(text).to_bytes(8, "little") + text


def flipped(data):
    data[-5] ^= 1
    return data


bad_checkpoint("empty", lambda data: b"", ())
bad_checkpoint("cut in half", lambda data: data[:len(data) // 2], ())
bad_checkpoint("flipped in one bit", flipped, ())
bad_checkpoint("another program's", lambda data: b"PK\3\4" + data, ())
bad_checkpoint("a header that claims 2^60 numbers",
               lambda data: with_header(b'{"conv1.weight":{"dtype":"F32","shape":[1152921504606846976],"data_offsets":[0,4611686018427387904]}}'), ())
bad_checkpoint("a header of 2^60 bytes", lambda data: (1 << 60).to_bytes(8, "little") + data[8:], ())
bad_checkpoint("of a wider network", lambda data: data, ("model.encoder.width: 8 -> 16",),
               dict(SHORT, **{"model.encoder.width": 16}), codes=(2,))


@fault("--resume auto, the newest checkpoint broken")
def fall_back(place, name):
    good_checkpoint(place.parent)
    shutil.copytree(place.parent / "good", place)
    newest = sorted((place / "checkpoints").glob("step_*"))[-1]
    newest.write_bytes(flipped(bytearray(newest.read_bytes())))
    row(name, job(2, SHORT, place, ["--resume", "auto"]), (0,), (newest.name, "step_00000008"), 0)


@fault("resume with another train.shards")
def other_shards(place, name):
    row(name, job(2, dict(SHORT, **{"train.shards": 4}), place, ["--resume", str(good_checkpoint(place.parent))]), (2, 6),
        ("train.shards", "8", "4"))


@fault("no memory: the address space of each rank is limited to 400 MB")
def no_memory(place, name):
    words = command(2, dict(SMALL, **{"data.synthetic.train_images": 60000, "data.image_size": 96}), place)
    row(name, Job(["bash", "-c", 'ulimit -v 400000; exec "$@"', "bash"] + words, place), (4,), ("memory",))


def read(path):
    return path.read_bytes() if path.exists() else b""


def check_status(place, state):
    text = read(place / "status.json").decode()
    if f'"{state}"' not in text:
        odd.append((f"{place.name}: status.json does not say {state}", text))
        print(f"    <-- status.json does not say {state}: {text}")


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
