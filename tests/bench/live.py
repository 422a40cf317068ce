"""`python -m tests.bench.live`: how true the live engine is here, what a hit costs on it, and what an eviction does.

Run by hand on a machine with nothing else to do; a shared one shows in the noise floor. The tables go into README.md
between their markers.
"""
from __future__ import annotations

import ctypes
import datetime
import json
import mmap
import os
import threading
import time
from collections.abc import Callable

import numba
import numpy as np

import cxdbench as cxd
from cxdbench.live.host import ORDER, probe
from cxdbench.result import cpu_name
from cxdbench.summary import percentiles, signed_counts
from tests.bench.__main__ import command

BEGIN, END = "<!-- live:begin -->", "<!-- live:end -->"
DEVICE = cxd.Device(cache_pages=4096, capacity_pages=16_384, eviction="fifo")
CONFIGURED = {3: {"read_us": 3, "transfer_us": 0}, 6.2: {"read_us": 3, "transfer_us": 3.2},
              25: {"read_us": 25, "transfer_us": 0}, 100: {"read_us": 100, "transfer_us": 0}}
LEVELS = [0.5, 0.9, 0.99]


def residual_us(configured: float, compensate: bool, accesses: int, **options) -> tuple[np.ndarray, dict]:
    """P50, P90, P99 of observed less modelled, us, of one thread's sequential walk with clean victims."""
    device = DEVICE.with_(nand={**DEVICE.nand.model_dump(), **CONFIGURED[configured]})
    chase = cxd.Chase(wss=1.5, threads=1, pattern="sequential", node_bytes=512, accesses=accesses)
    result = cxd.run(device, chase, "live", compensate=compensate, **options)
    return percentiles(*_one(result["residual"]), faint=True) / 1000, result.attrs


def _one(histogram) -> tuple[np.ndarray, list[float], np.ndarray]:
    counts, values = signed_counts(histogram)
    return counts, LEVELS, values


def residuals(rounds: int) -> list[str]:
    lines = ["| configured | compensated, P50 / P90 / P99 | late | raw, P50 / P90 / P99 | bare wait late by, P50 / P99 / P99.9 |",
             "|---|---|---|---|---|"]
    for configured in CONFIGURED:
        accesses = 200_000 if configured < 50 else 60_000
        both = [[residual_us(configured, compensate, accesses) for _ in range(rounds)] for compensate in (True, False)]
        ours, raw = (np.median([values for values, _ in runs], axis=0) for runs in both)
        late = np.median([attrs["late_share"] for _, attrs in both[0]])
        noise = [json.loads(attrs["noise_floor_ns"]) for runs in both for _, attrs in runs]
        floor = [np.median([one[name] for one in noise]) / 1000 for name in ("p50", "p99", "p999")]
        lines.append(f"| {configured} us | {_signed(ours)} | {100 * late:.0f} % | {_signed(raw)} | "
                     + " / ".join(f"{v:.2f}" for v in floor) + " |")
    return lines


def _signed(values) -> str:
    return " / ".join(f"{v:+.2f}" for v in values)


def modes(rounds: int) -> list[str]:
    lines = ["| a miss caught by | raw, over 6.2 us, P50 / P90 / P99 |", "|---|---|"]
    for mode in ORDER:
        if why := probe(mode):
            lines.append(f"| {mode} | not here: {why} |")
            continue
        runs = [residual_us(6.2, False, 80_000, mode=mode)[0] for _ in range(rounds)]
        lines.append(f"| {mode} | {_signed(np.median(runs, axis=0))} |")
    return lines


@numba.njit(nogil=True)
def chase(links, steps):
    at = 0
    for _ in range(steps):
        at = links[at]
    return at


def link(links: np.ndarray) -> None:
    """One random cycle through the array's cache lines."""
    order = np.random.default_rng(1).permutation(len(links) // 8) * 8
    links[order] = np.roll(order, -1)


def hit_ratios(megabytes: int, rounds: int = 9) -> tuple[float, float]:
    """Time of a random walk and of a streaming sum over plain mapping / over the live region; medians, interleaved."""
    size = megabytes << 17
    device = DEVICE.with_(cache_pages=2 * size // 512, capacity_pages=4 * size // 512)
    with cxd.open_device(device, compensate=False) as memory:
        live = memory.array(size, "i8")
        link(live)
        plain = np.frombuffer(memory.alias(live, write=True), "i8")
        steps = 2_000_000
        walks, sums = [], []
        passes = max(1, 256 // megabytes)
        for i in range(rounds):
            # each warm from itself, and now one first, now the other
            for taken, work in ((walks, lambda a: chase(a, steps)), (sums, lambda a: [a.sum() for _ in range(passes)])):
                pair = {}
                for name in ("live", "plain") if i % 2 else ("plain", "live"):
                    array = live if name == "live" else plain
                    work(array)
                    pair[name] = timed(lambda array=array, work=work: work(array))
                taken.append((pair["live"], pair["plain"]))
    return tuple(float(np.median([there / here for here, there in pairs])) for pairs in (walks, sums))


def timed(work: Callable) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@numba.njit(nogil=True)
def touch(pages):
    total = 0
    for i in range(0, pages.size, 512):
        total += pages[i]
    return total


def keep_touching(pages: np.ndarray, stop: threading.Event) -> None:
    while not stop.is_set():
        touch(pages)


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def unmap_us(pages: int, crowd: bool, how: str, rounds: int = 200) -> float:
    """us a page to take away mappings that another core has seen (crowd) or not: one call a page, one call for a run of
    neighbours, or process_madvise over pages that are not neighbours. The median; the cost of an empty call is off."""
    libc = ctypes.CDLL(None, use_errno=True)
    file = os.memfd_create("bench")
    os.ftruncate(file, 4096 * 512)
    region = mmap.mmap(file, 4096 * 512)
    words = np.frombuffer(region, "i8")
    words[::512] = 1
    base, stop = words.ctypes.data, threading.Event()
    touch(words)
    other = threading.Thread(target=keep_touching, args=(words, stop))
    if crowd:
        other.start()
        time.sleep(0.01)
    stride = 4 if how == "process_madvise" else 1
    vector = (Iovec * pages)(*[Iovec(base + 4096 * stride * i, 4096) for i in range(pages)])
    own = libc.syscall(434, os.getpid(), 0)  # pidfd_open
    taken, empty = [], []
    for _ in range(rounds):
        words[::512].sum()
        empty.append(timed(lambda: libc.madvise(ctypes.c_void_p(base), ctypes.c_size_t(0), 4)))
        if how == "process_madvise":
            taken.append(timed(lambda: libc.syscall(440, own, vector, pages, 4, 0)))
        elif how == "together":
            taken.append(timed(lambda: libc.madvise(ctypes.c_void_p(base), ctypes.c_size_t(4096 * pages), 4)))
        else:
            taken.append(timed(lambda: [libc.madvise(ctypes.c_void_p(base + 4096 * i), ctypes.c_size_t(4096), 4)
                                        for i in range(pages)]) - (pages - 1) * np.median(empty))
    stop.set()
    if crowd:
        other.join()
    os.close(own)
    os.close(file)
    return 1e6 * max(0.0, float(np.median(taken) - np.median(empty))) / pages


def shootdowns() -> list[str]:
    lines = ["| a page's mapping taken away | alone | another core uses the memory |", "|---|---|---|"]
    ways = [("one call a page", 16, "each"), ("16 neighbours in one call", 16, "together"),
            ("64 neighbours in one call", 64, "together"), ("16 scattered pages, process_madvise", 16, "process_madvise")]
    for name, pages, how in ways:
        lines.append(f"| {name} | {unmap_us(pages, False, how):.2f} us | {unmap_us(pages, True, how):.2f} us |")
    return lines


def behind(rounds: int) -> str:
    """What evicting in the background does to a miss, with two threads: raw excess with and without the drain."""
    chase_ = cxd.Chase(wss=2, threads=2, pattern="cycle", accesses=100_000)
    drained = DEVICE.with_(drain={"pages": 64, "period_us": 100, "high": 0.95, "low": 0.9})
    found = {}
    for name, device in (("foreground", DEVICE), ("background", drained)):
        runs = [cxd.run(device, chase_, "live", compensate=False) for _ in range(rounds)]
        found[name] = [np.median([cxd.summary(r)[f"residual_{p}_ns"] / 1000 for r in runs]) for p in ("p50", "p90", "p99")]
        share = np.median([float(r["evictions"].sel(by="background").sum() / max(1, r["evictions"].sum())) for r in runs])
        found[name + " share"] = share
    return (f"Two threads, raw, over 6.2 us: evicting in the fault {_signed(found['foreground'])} us (P50 / P90 / P99); "
            f"{100 * found['background share']:.0f} % evicted by a drain thread instead {_signed(found['background'])} us.")


def report(rounds: int) -> str:
    """The README's part, measured now."""
    walk = {mb: hit_ratios(mb) for mb in (1, 16, 64)}
    hits = ", ".join(f"{mb} MiB {random:.2f} and {stream:.2f}" for mb, (random, stream) in walk.items())
    return "\n".join([
        "Observed less modelled latency of a miss, us, one thread:", "", *residuals(rounds), "", *modes(rounds), "",
        f"Speed of hits over that of the same memory mapped without userfaultfd, random walk and streaming sum: {hits}.", "",
        "What an eviction costs, in TLB shoot-downs:", "", *shootdowns(), "", behind(rounds), "",
        f"Measured by `make bench` on {datetime.date.today()}, {len(os.sched_getaffinity(0))} cores of a shared "
        f"{cpu_name()}, Linux {os.uname().release.split('-')[0]}."])


if __name__ == "__main__":
    command("tests.bench.live", __doc__, report, 5, BEGIN, END)
