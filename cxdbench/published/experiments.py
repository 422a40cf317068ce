"""The runs behind the published rows, each made once a process, and what is read from them.

Scaled to 16,384 cache pages: hit ratios and miss latencies do not move with the scale. The results are shared: read
them only.
"""
from __future__ import annotations

from functools import cache

import numpy as np
import xarray as xr

from cxdbench.device import Device
from cxdbench.result import event_log
from cxdbench.run import run
from cxdbench.summary import percentiles
from cxdbench.workload import Chase, working_set_pages

CACHE_PAGES = 16_384
PATTERNS = ("sequential", "cycle")
WSS = {1: 1.7, 8: 2.5}  # Fig. 5's working set by threads


def device(system: str) -> Device:
    """A preset, scaled."""
    return Device.named(system).scaled(CACHE_PAGES)


@cache
def fig5(system: str, pattern: str, threads: int) -> xr.Dataset:
    """Fig. 5: one pass over 512 B nodes that had been written, every access timed, clean victims.

    The paper does not print how many passes its runs made. With one, an untimed pass before it, a CXDVirt thread at
    full size takes the printed 33 s; with two it would take 66.
    """
    chase = Chase(wss=WSS[threads], threads=threads, pattern=pattern, node_bytes=512, prepare="written")
    one_pass = working_set_pages(chase, device(system)) * chase.nodes_per_page
    return run(device(system), chase.with_(accesses=one_pass))


@cache
def fig6(system: str) -> xr.Dataset:
    """Fig. 6 (and 1): one thread, sequential, 1.5x, a read pass after a write pass and a first read pass."""
    return run(device(system), Chase(wss=1.5, threads=1, pattern="sequential", node_bytes=512, prepare="written",
                                     accesses=16_000_000))


@cache
def served(system: str) -> tuple[np.ndarray, np.ndarray]:
    """Fig. 5(b), 8 threads: (thread, latency to the install in ns) of each demand miss in the order installed.

    Only while every thread still runs: one that has left no longer waits for the lock.
    """
    chase = Chase(wss=WSS[8], threads=8, pattern="cycle", node_bytes=512, prepare="written", accesses=327_680)
    log = event_log(run(device(system), chase, log=True))
    until = log[log["thread"] >= 0].groupby("thread")["t_ns"].max().min()
    log = log[(log["thread"] >= 0) & (log["t_ns"] <= until)]
    began: dict[int, int] = {}
    threads, latencies = [], []
    for t_ns, thread, kind in zip(log["t_ns"], log["thread"], log["kind"], strict=True):
        if kind == "fill":
            began[thread] = t_ns
        elif kind == "install" and thread in began:
            threads.append(thread)
            latencies.append(t_ns - began.pop(thread))
    return np.array(threads), np.array(latencies)


def miss_us(result: xr.Dataset, *levels: float) -> np.ndarray:
    """Percentiles (levels 0 to 1) of the misses' latency, us; NaN beyond the samples."""
    return percentiles(result["latency"].sel(outcome="miss").values, list(levels)) / 1000


def access_us(result: xr.Dataset, *levels: float) -> np.ndarray:
    """Percentiles of all accesses' latency, us; NaN beyond the samples."""
    return percentiles(result["latency"].sum("outcome").values, list(levels)) / 1000


def miss_mean_us(result: xr.Dataset) -> float:
    return float(result["sum_ns"].sel(outcome="miss") / result["count"].sel(outcome="miss")) / 1000


def hit_ratio(result: xr.Dataset) -> float:
    return float(result["count"].sel(outcome="hit") / result["count"].sum())


def thread_seconds(result: xr.Dataset) -> tuple[float, float]:
    """Shortest and longest run time of a thread at full size: time goes with the number of nodes."""
    seconds = result["thread_run_ns"].values / 1e9 * result.attrs["scale"]
    return float(seconds.min()), float(seconds.max())


def share_within(result: xr.Dataset, us: float) -> float:
    """Share of the accesses that took at most so long (to the bin's width, 0.8 %)."""
    latency = result["latency"].sum("outcome")
    return float(latency.where(latency["bin"] <= us * 1000, 0).sum() / latency.sum())


def reach(values) -> tuple[float, float]:
    """Lowest and highest."""
    values = np.asarray(list(values), float)
    return float(values.min()), float(values.max())
