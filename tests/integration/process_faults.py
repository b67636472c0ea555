"""Faults of processes: killed, suspended, asked to stop, started separately, with different settings; wrong numbers, lack of memory."""

import json
import os
import resource
import signal
import time

from faults import LONG, Job, check_status, fault, job, program_words, read, row
from program import MPIRUN, SMALL, command, environment, wait_for


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


# Drawing 200,000 images takes tens of seconds: nothing is trained yet.
STARTING = dict(LONG, **{"data.synthetic.train_images": 200000, "train.timeout_s": 600})


def asked_early(text, number, rank, codes, state, words=(), lines=0, before=lambda it: None, settings=STARTING):
    @fault(text)
    def do(place, name):
        it = job(2, settings, place)
        wait_for(lambda: (place / "train.log").exists(), 30)
        time.sleep(0.5)
        before(it)
        since = time.monotonic()
        os.kill(it.pids[rank] if rank is not None else it.process.pid, number)
        row(name, it, codes, words, lines, since=since)
        check_status(place, state)


asked_early("SIGUSR1 to mpirun before step 1", signal.SIGUSR1, None, (75,), "stopped", ("stopped before the first step",))
asked_early("SIGTERM to rank 1 before step 1", signal.SIGTERM, 1, (75,), "stopped", ("signal 15 to rank 1",))
asked_early("SIGTERM to rank 0 before step 1, rank 1 stopped by SIGSTOP", signal.SIGTERM, 0, (4,), "failed",
            ("asked to stop by signal 15 to rank 0", "rank 1 ("), 1, lambda it: os.kill(it.pids[1], signal.SIGSTOP))
asked_early("kill -9 of rank 1 before step 1", signal.SIGKILL, 1, (137,), None)
asked_early("SIGSTOP of rank 1 before step 1 (train.timeout_s: 5)", signal.SIGSTOP, 1, (4,), "failed", ("rank 1 (",), 1,
            settings=dict(STARTING, **{"train.timeout_s": 5}))


# Some ten seconds a step on two cores; on a faster machine the required result is the same.
TEN_SECONDS = dict(LONG, **{"run.threads": "auto", "data.image_size": 32, "model.encoder.depth": 18, "model.encoder.width": 64,
                            "train.global_batch": 96, "data.synthetic.train_images": 960, "train.timeout_s": 300})


def with_steps_of_ten_seconds(text, act, codes, words, lines=0, settings=TEN_SECONDS, ranks=2):
    """act(job, place): a second into the third step. The row's time is that from there to the end."""
    @fault(text + ", steps of 10 s")
    def do(place, name):
        it = job(ranks, settings, place)
        wait_for(lambda: read(place / "metrics.jsonl").count(b'"loss"') >= 1, 400)
        began = time.monotonic()
        wait_for(lambda: read(place / "metrics.jsonl").count(b'"loss"') >= 2, 400)
        step_s = time.monotonic() - began
        time.sleep(1)
        since = time.monotonic()
        act(it, place)
        row(f"{name} (here {step_s:.1f} s)", it, codes, words, lines, 200, since)


with_steps_of_ten_seconds("SIGTERM to rank 1 of 2", lambda it, place: os.kill(it.pids[1], signal.SIGTERM), (75,), ("stopped after step 2",))
with_steps_of_ten_seconds("SIGUSR1 to mpirun", lambda it, place: it.process.send_signal(signal.SIGUSR1), (75,), ("stopped after step 2",))
with_steps_of_ten_seconds("SIGTERM to one process", lambda it, place: os.kill(it.pids[0], signal.SIGTERM), (75,), ("stopped after step 2",),
                          ranks=0)
with_steps_of_ten_seconds("kill -9 of rank 1 of 2", lambda it, place: os.kill(it.pids[1], signal.SIGKILL), (137,), ())
with_steps_of_ten_seconds("no room for metrics.jsonl on rank 0",
                          lambda it, place: resource.prlimit(it.pids[0], resource.RLIMIT_FSIZE, (100, 100)), (6,), ("File too large",), None)


@fault("train.max_minutes: 1, steps of 10 s")
def minutes_of_long_steps(place, name):
    row(name, job(2, dict(TEN_SECONDS, **{"train.max_minutes": 1}), place), (75,), ("time limit",), 0, 400)


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
    words = program_words(SMALL, place)
    changed = ["optimizer.base_lr=0.06" if w.startswith("optimizer.base_lr=") else w for w in words]
    row(name, Job([MPIRUN, "--oversubscribe", "--bind-to", "none", "-np", "3"] + words + [":", "-np", "1"] + changed, place),
        (2,), ("rank 3", "optimizer.base_lr"))


def find_in_memory(pid, pattern):
    """The addresses of these bytes in the writable memory of a process."""
    found = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            place, rights = line.split()[:2]
            first, last = (int(number, 16) for number in place.split("-"))
            if not rights.startswith("rw") or "[v" in line:
                continue
            try:
                memory.seek(first)
                content = memory.read(last - first)
            except OSError:
                continue
            at = content.find(pattern)
            while at >= 0:
                found.append(first + at)
                at = content.find(pattern, at + 1)
    return found


@fault("a bit of a weight flips in the memory of rank 2 of 4 (train.check_every: 20)")
def drift(place, name):
    # Without a learning rate the weights of the checkpoint are those in memory.
    it = job(4, dict(LONG, **{"train.check_every": 20, "checkpoint.every_steps": 10, "optimizer.base_lr": 0}), place)
    it.trains()
    wait_for(lambda: list((place / "checkpoints").glob("step_*.safetensors")), 20)
    data = min((place / "checkpoints").glob("step_*.safetensors")).read_bytes()
    header_bytes = int.from_bytes(data[:8], "little")
    begin, _ = json.loads(data[8:8 + header_bytes])["layer1.0.conv1.weight"]["data_offsets"]
    weights = data[8 + header_bytes + begin:][:64]
    pid = it.pids[2]
    since = time.monotonic()
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for address in find_in_memory(pid, weights):
            memory.seek(address + 2)
            memory.write(bytes([weights[2] ^ 1]))
    row(name, it, (4,), ("tensors that differ from rank 0's: layer1.0.conv1.weight on rank 2",), since=since)


@fault("4 processes that srun started without an MPI plug-in")
def apart(place, name):
    row(name, job(0, SMALL, place, env=dict(environment(), SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="4", SLURM_JOB_ID="1",
                                            SLURM_NTASKS="4")), (4,), ("mpi",))


@fault("2 processes of another MPI's mpirun (PMI_SIZE=2)")
def other_mpi(place, name):
    row(name, job(0, SMALL, place, env=dict(environment(), PMI_SIZE="2", PMI_RANK="0")), (4,), ())


@fault("no memory: the address space of each rank is limited to 400 MB")
def no_memory(place, name):
    words = command(2, dict(SMALL, **{"data.synthetic.train_images": 60000, "data.image_size": 96}), place)
    row(name, Job(["bash", "-c", 'ulimit -v 400000; exec "$@"', "bash"] + words, place), (4,), ("memory",))
