"""The time of a step on W ranks, from figures that two cores can measure. Arithmetic only; scripts/scaling_model.py measures.

    step = ceil(S / (W t)) tau  +  rest / W  +  loss / W  +  sums + messages
    tau      seconds of one shard on one thread; t threads a rank; a shard is not divided between threads
    rest     what every rank does whole: optimizer, norms, packing of weights (not divided by W)
    sum of n bytes, W > 1:   2 (W-1)/W n / bandwidth  +  ceil(n / piece) 2 log2(W) latency      (all-to-all of slices, all-gather)
    short sum, gather:       (W-1) n / bandwidth  +  log2(W) latency

Assumptions: ranks are alike and come to every collective together; nothing overlaps (on CPUs nothing does); the link gives
every rank its bandwidth at the same time; tau does not depend on how many cores of a chip are busy, which memory and clock
rates make too kind for many cores.
"""
import dataclasses
import math

SHORT_BYTES, PIECE_BYTES = 4096, 1 << 20  # MessageSizes of src/comm/mpi_collectives.h


@dataclasses.dataclass
class Link:
    bandwidth: float  # bytes/s that a rank sends while it receives as many
    latency: float    # s of a message


@dataclasses.dataclass
class Work:
    """Of one step of one configuration, whatever the ranks."""
    shards: int                 # S
    shard_seconds: float        # tau: network, forward and backward, one shard on one thread
    rank_seconds: float         # of every rank whole, on one thread
    loss_seconds: float         # of the loss of the whole batch on one thread
    gradient_bytes: int         # summed over ranks
    sums: list = dataclasses.field(default_factory=list)     # (calls, bytes of one), of batch norm and the loss
    gathers: list = dataclasses.field(default_factory=list)  # (calls, bytes of the whole that is gathered)


def log2(ranks):
    return math.ceil(math.log2(ranks)) if ranks > 1 else 0


def sum_seconds(bytes_, ranks, link):
    if ranks == 1:
        return 0.0
    if bytes_ <= SHORT_BYTES:
        return (ranks - 1) * bytes_ / link.bandwidth + log2(ranks) * link.latency
    return 2 * (ranks - 1) / ranks * bytes_ / link.bandwidth + math.ceil(bytes_ / PIECE_BYTES) * 2 * log2(ranks) * link.latency


def gather_seconds(bytes_, ranks, link):
    return 0.0 if ranks == 1 else (ranks - 1) / ranks * bytes_ / link.bandwidth + log2(ranks) * link.latency


def communication_seconds(work, ranks, link):
    return (sum_seconds(work.gradient_bytes, ranks, link) + sum(calls * sum_seconds(n, ranks, link) for calls, n in work.sums) +
            sum(calls * gather_seconds(n, ranks, link) for calls, n in work.gathers))


def compute_seconds(work, ranks, threads, cores=None):
    """cores: of the machine that all ranks share; None: every thread has its own."""
    local = work.shards // ranks
    per_rank = math.ceil(local / threads) * work.shard_seconds + work.rank_seconds / threads + work.loss_seconds / ranks / min(threads, local)
    crowding = max(1.0, ranks * min(threads, local) / cores) if cores else 1.0
    return per_rank * crowding


def step_seconds(work, ranks, threads, link, cores=None):
    return compute_seconds(work, ranks, threads, cores) + communication_seconds(work, ranks, link)
