"""The model equals the plain-Python oracle on random small cases: the log event for event, all counts."""

from collections import Counter
from itertools import pairwise, product
from random import Random

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cxdbench.bins import bins_of
from cxdbench.device import Device
from cxdbench.model import layout, nand
from cxdbench.model.engine import Run
from cxdbench.model.inputs import prepare
from cxdbench.model.rng import from_knots
from cxdbench.result import COUNTERS, OUTCOMES, STAGES, event_log
from cxdbench.run import run
from cxdbench.workload import Chase, Trace, Zipf

from .oracle import simulate
from .oracle.draws import Stream, quantile_knots, threshold
from .oracle.nand import REMEMBERED, Nand

EVICTIONS = list(product(("clean", "dirty"), ("foreground", "background")))
NAMES = {"hit": "hit", "miss": "miss", "waited": "wait"}  # of outcomes, here and in a Dataset

# Times that meet: a few round ones, so that many events fall on one time, and zero.
few_us = st.sampled_from([0, 0.5, 1, 2, 3.2, 5, 12.5])
times = few_us | st.lists(few_us, min_size=1, max_size=4)
rising = st.lists(few_us, min_size=5, max_size=5).map(sorted).map(tuple)
small_caches, few_threads = st.integers(1, 12), st.integers(1, 5)
share = st.sampled_from([0, 0.2, 0.5, 0.8, 1])

nands = st.fixed_dictionaries({
    "read_us": times, "program_us": times, "erase_us": st.sampled_from([0, 5, 15]), "transfer_us": few_us,
    "channels": st.sampled_from([1, 2, 3]), "ways": st.sampled_from([1, 2, 5]),
    "channel_model": st.sampled_from(["event", "event", "none"]),
    "pages_per_block": st.sampled_from([1, 3, 256])})

fault_paths = st.just("ideal") | st.fixed_dictionaries({
    "kind": st.just("cxdvirt"), "overhead_us": rising, "serial_us": few_us,
}) | st.fixed_dictionaries({
    "kind": st.just("cylon"), "exit_us": few_us, "rest_us": rising, "refault_probability": share,
    "refault_gap_us": few_us, "handover_mean": share, "handover_spread": share,
    "handover_us": st.sampled_from([0, 2, 12.5, 40]), "second_exit_us": few_us})

semantics = st.fixed_dictionaries({}, optional={
    "unwritten_read": st.sampled_from(["charge", "free", "program"]),
    "writeback": st.sampled_from(["charged", "free"]),
    "write_miss": st.sampled_from(["fetch", "none"]), "prefetch_timing": st.sampled_from(["charged", "free"]),
    "policy_sees": st.sampled_from(["all", "faults"])})


@st.composite
def devices(draw, caches=small_caches):
    cache = draw(caches)
    eviction = draw(st.sampled_from(["fifo", "clock", "lru", "lifo"]))
    if eviction == "lifo":
        eviction = {"kind": "lifo", "protect": draw(st.integers(0, cache - 1))}
    levels = sorted(draw(st.tuples(share, share)))
    capacity = max(5, 3 * cache) + draw(st.sampled_from([0, 0, 30]))
    return Device(
        cache_pages=cache, capacity_pages=capacity, hit_ns=draw(st.sampled_from([1, 139, 500])),
        eviction=eviction,
        prefetch=draw(st.just({}) | st.fixed_dictionaries({
            "pages": st.integers(1, 4), "start_delay_us": few_us, "push_ns": st.sampled_from([0, 300, 500]),
            "queue_pages": st.integers(1, 8)})),
        drain=draw(st.just({}) | st.fixed_dictionaries({
            "low": st.just(levels[0]), "high": st.just(levels[1]), "stop": st.none() | st.integers(0, 4),
            "pages": st.integers(1, 5), "period_us": st.sampled_from([1, 2.5, 10])})),
        fault_path=draw(fault_paths), semantics=draw(semantics), nand=draw(nands))


@st.composite
def workloads(draw, device, threads=few_threads):
    threads, cache = draw(threads), device.cache_pages
    kind = draw(st.sampled_from(["chase", "zipf", "trace"]))
    most = max(120, 20 * threads)
    pages = draw(st.integers(cache + 1, 3 * cache) | st.integers(1, 3 * cache))  # mostly more than the cache
    common = {
        "start": draw(st.sampled_from(["warm", "cold"])),
        "prepare": draw(st.sampled_from(["clean", "written"])),
        "warmup": draw(st.just("auto") | st.integers(0, most // 2)), "seed": draw(st.integers(0, 2**63 - 1)),
        "think_ns": draw(st.sampled_from([0, 0, 500, 2000]))}
    if kind == "trace":
        n = draw(st.integers(1, most // 2))
        page, flag, thread = st.integers(0, pages - 1), st.booleans(), st.integers(0, threads - 1)
        return Trace(pages=draw(st.lists(page, min_size=n, max_size=n)),
                     writes=draw(st.lists(flag, min_size=n, max_size=n)),
                     thread=draw(st.lists(thread, min_size=n, max_size=n)),
                     accesses=draw(st.none() | st.integers(1, most)), **common)
    shared = draw(st.booleans())
    pages = pages if shared else max(threads, pages)
    common |= {"wss": pages / cache, "threads": threads, "shared": shared, "write_share": draw(share),
               "accesses": draw(st.integers(1, most))}
    if kind == "zipf":
        return Zipf(skew=draw(st.sampled_from([0, 0.99, 2])), scramble=draw(st.booleans()), **common)
    return Chase(pattern=draw(st.sampled_from(["sequential", "cycle", "random"])),
                 node_bytes=draw(st.sampled_from([1024, 4096])), **common)


def bins(values) -> np.ndarray:
    return bins_of(np.array(list(values), np.uint64))


def histogram(values) -> dict[int, int]:
    return dict(sorted(Counter(bins(values).tolist()).items()))


def sparse(row) -> dict[int, int]:
    return {int(b): int(row[b]) for b in np.flatnonzero(row)}


def differences(device, workload) -> list[str]:
    """What the model and the oracle say differently; the first event where their logs part comes first."""
    result = run(device, workload, log=True)
    oracle = simulate(device, workload, prepare(device, workload))
    found = []

    def compare(name, model, oracle):
        if model != oracle:
            found.append(f"{name}: model {model}, oracle {oracle}")

    log = [tuple(event) for event in event_log(result).itertuples(index=False, name=None)]
    for i, (ours, theirs) in enumerate(zip(log, oracle.log, strict=False)):
        if ours != theirs:
            found.append(f"log[{i}]: model {ours}, oracle {theirs}, after {oracle.log[max(0, i - 5):i]}")
            break
    compare("events", len(log), len(oracle.log))
    for name in COUNTERS:
        if not name.startswith("resident"):
            compare(name, int(result[name]), oracle.counters[name])
    compare("resident_start", int(result["resident_start"]), oracle.resident_start)
    compare("resident_end", int(result["resident_end"]), oracle.resident_end)
    for kind, by in EVICTIONS:
        compare(f"evictions {kind} {by}", int(result["evictions"].sel(kind=kind, by=by)),
                oracle.counters[f"evict_{kind}_{by}"])
    moves = oracle.transitions
    compare("transitions", result["transitions"].values.tolist(), [
        moves["NOT_CACHED", "LOADING"], moves["LOADING", "CACHED"],
        moves["CACHED", "EVICTING"] + moves["CACHED", "NOT_CACHED"],
        moves["EVICTING", "NOT_CACHED"] + moves["CACHED", "NOT_CACHED"]])
    for name in ("hits", "misses", "waits", "run_ns", "sum_ns"):
        compare(f"thread {name}", result[f"thread_{name}"].values.tolist(), list(getattr(oracle, name)))

    for outcome in OUTCOMES:
        latencies = [f[1] for f in oracle.finished if NAMES[f[0]] == outcome]
        of = result.sel(outcome=outcome)
        compare(f"{outcome} latency", sparse(of["latency"].values), histogram(latencies))
        compare(f"{outcome} sums", [int(of[name]) for name in ("count", "sum_ns", "min_ns", "max_ns")],
                [len(latencies), sum(latencies), min(latencies, default=0), max(latencies, default=0)])
    stages = np.zeros(result["stage_sum_ns"].shape, np.int64)
    for b, (_, _, by_stage, _, _) in zip(bins(f[1] for f in oracle.finished), oracle.finished, strict=True):
        for stage, ns in by_stage.items():
            stages[STAGES.index(stage), b] += ns
    for stage, model, ours in zip(STAGES, result["stage_sum_ns"].values, stages, strict=True):
        compare(f"stage {stage}", sparse(model), sparse(ours))
    for at, name in ((3, "excess"), (4, "residual")):
        values = [f[at] for f in oracle.finished if f[at] is not None]
        compare(name, [sparse(row) for row in result[name].values],
                [histogram([-v for v in values if v < 0]), histogram([v for v in values if v >= 0])])
    windows = windows_of(oracle, result.sizes["window"])
    for name, values in windows.items():
        compare(f"window {name}", result[f"window_{name}"].values.tolist(), values)
    return found


def windows_of(oracle, n: int) -> dict[str, list[int]]:
    """What each of n slices of the accesses, in order of settling, held; equal but for rounding up."""
    edges = [-(-w * len(oracle.finished) // n) for w in range(n + 1)]
    slices = [[f[0] for f in oracle.finished[a:b]] for a, b in pairwise(edges)]
    resident, evictions = zip(*(oracle.levels[edge - 1] for edge in edges[1:]), strict=True)
    evictions = [0, *evictions[:-1], sum(oracle.counters[f"evict_{kind}_{by}"] for kind, by in EVICTIONS)]
    return {"hits": [s.count("hit") for s in slices], "misses": [s.count("miss") for s in slices],
            "waits": [s.count("waited") for s in slices], "resident": list(resident),
            "evictions": [b - a for a, b in pairwise(evictions)]}


def agree(device, workload) -> None:
    found = differences(device, workload)
    assert not found, "\n".join([device.model_dump_json(), workload.model_dump_json(), *found])


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_model_equals_the_oracle(data):
    device = data.draw(devices())
    agree(device, data.draw(workloads(device)))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_model_equals_the_oracle_with_many_threads(data):
    device = data.draw(devices(caches=st.integers(65, 90)))
    agree(device, data.draw(workloads(device, threads=st.integers(30, 64))))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), types=st.integers(1, 16), transfer_ns=st.sampled_from([0, 1, 7, 40]))
def test_nand_timing_is_the_oracles_also_beyond_what_a_channel_remembers(seed, types, transfer_ns):
    """So many dies and so long reads that far more than 64 transfers of one channel lie ahead, with gaps."""
    random = Random(seed)
    device = Device(cache_pages=1, nand={
        "channels": 1, "ways": 64, "transfer_us": transfer_ns / 1000, "pages_per_block": 2, "erase_us": 1.5,
        "read_us": [random.uniform(2, 9) for _ in range(types)], "program_us": random.uniform(0, 3)})
    model = Run(device, prepare(device, Chase(threads=1)), seed=0)
    logged, now, most = [], 0, 0
    oracle = Nand(device.nand, lambda *event: logged.append(event))
    for _ in range(400):
        now += random.choice([0, 1, 5, 30, 100])
        page = random.randrange(2000)
        if random.random() < 0.8:
            ready, stages = oracle.read(now, page)
            g = model.g
            assert nand.read(model.cfg, g, model.nand, model.times, np.uint64(page), np.uint64(now)) == ready
            ours = {"queue": g[layout.G_QUEUE_NS], "sense": g[layout.G_SENSE_NS],
                    "transfer": g[layout.G_TRANSFER_NS]}
            assert ours == stages
        else:
            assert oracle.program(now, page, 0) == nand.program(
                model.cfg, model.g, model.nand, model.times, model.no_log, np.uint64(0), np.uint64(page),
                np.uint64(now))
        most = max(most, len(oracle.channel[0].busy))
    assert most == (REMEMBERED if transfer_ns else 0)
    assert int(model.g[layout.G_NAND_ERASES]) == sum(kind == "erase" for *_, kind in logged)


def test_quantile_draws_are_the_oracles_at_and_around_every_knot():
    class Fixed(Stream):
        def draw(self):
            return self.value

    points, stream = quantile_knots((1, 1, 2.5, 40, 1000)), Fixed(0, 0, 0)
    knots = np.array([points], np.uint64)
    for level in (0, 0.3, 0.5, 0.99, 0.999, 0.9999, 1):
        for stream.value in (threshold(level) + offset for offset in (-1, 0, 1)):
            if 0 <= stream.value < 2**32:
                model = from_knots(knots, 0, np.uint64(len(points)), np.uint64(stream.value))
                assert model == stream.quantile(points)
