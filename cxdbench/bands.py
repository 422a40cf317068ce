"""Which published figures a run can be held against, and what the run has to say to each.

The rows are those of data/published.csv that speak of one system and one run; ratios between systems and sweeps need
more than a run and are the published command's.
"""
from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import xarray as xr

from cxdbench._data import data_path
from cxdbench.device import Device
from cxdbench.summary import percentiles, signed_counts
from cxdbench.workload import Chase, Workload

CYLON_TRANSFER_US = 3.2  # that the paper's configured latency has and Cylon does not charge (data/devices.toml)


class Band(NamedTuple):
    """A published row beside a run. low, high: as published; band_low, band_high: within which we call it equal; all
    in `unit`. what: ours to read. ours: (lowest, highest) of it in the run, in `unit`; equal for a single number."""

    id: str
    source: str
    metric: str
    low: float
    high: float
    unit: str
    band_low: float
    band_high: float
    what: str
    ours: tuple[float, float] = (float("nan"), float("nan"))

    @property
    def within(self) -> bool:
        return self.band_low <= self.ours[0] and self.ours[1] <= self.band_high


Measure = Callable[[xr.Dataset], tuple[float, float]]


def _counts(result: xr.Dataset, outcome: str) -> np.ndarray:
    counts = result["latency"].sel(outcome=outcome)
    return (counts.sum("seed") if "seed" in counts.dims else counts).values


def _hit_ratio(result: xr.Dataset) -> tuple[float, float]:
    count = result["count"].sum("seed") if "seed" in result["count"].dims else result["count"]
    ratio = float(count.sel(outcome="hit") / count.sum())
    return ratio, ratio


def _hit_ratio_by_thread(result: xr.Dataset) -> tuple[float, float]:
    accesses = result["thread_hits"] + result["thread_misses"] + result["thread_waits"]
    ratio = (result["thread_hits"] / accesses).values
    return float(ratio.min()), float(ratio.max())


def _misses_us(low: float, high: float) -> Measure:
    def measure(result: xr.Dataset) -> tuple[float, float]:
        a, b = percentiles(_counts(result, "miss"), [low, high]) / 1000
        return float(a), float(b)
    return measure


def _miss_width_us(result: xr.Dataset) -> tuple[float, float]:
    low, high = _misses_us(0.01, 0.99)(result)
    return high - low, high - low


def _excess_us(low: float, high: float, less: float = 0.0) -> Measure:
    def measure(result: xr.Dataset) -> tuple[float, float]:
        counts, values = signed_counts(result["excess"])
        counts = counts.sum(0) if counts.ndim > 1 else counts
        a, b = percentiles(counts, [low, high], values) / 1000 - less
        return float(a), float(b)
    return measure


# (preset, pattern or None for both, threads, wss): id -> (what, measure)
_RUNS: dict[tuple[str, str | None, int, float], dict[str, tuple[str, Measure]]] = {
    ("cxdvirt", "cycle", 8, 2.5): {"f5.hit.cxdvirt": ("hit ratio", _hit_ratio)},
    ("cxdvirt", None, 8, 2.5): {"f5.miss.8t.cxdvirt": ("misses P0.1-P99.9", _misses_us(0.001, 0.999))},
    ("cylon", "cycle", 8, 2.5): {"f5.hit.cylon": ("hit ratio", _hit_ratio),
                                 "f5.hit.thread": ("hit ratio by thread", _hit_ratio_by_thread)},
    ("cylon", None, 8, 2.5): {"f5.miss.8t.cylon": ("misses P0.1-P99.99", _misses_us(0.001, 0.9999))},
    ("cxdvirt", None, 1, 1.7): {"f5.miss.1t.cxdvirt": ("misses P1-P99", _misses_us(0.01, 0.99)),
                                "f5.width": ("misses P99 - P1", _miss_width_us)},
    ("cylon", "sequential", 1, 1.7): {"f5.miss.1t.cylon": ("misses P1-P99", _misses_us(0.01, 0.99))},
    ("cxdvirt", "sequential", 1, 1.5): {"f6.over.p99.cxdvirt": ("excess P1-P99", _excess_us(0.01, 0.99)),
                                        "f6.over.p999.cxdvirt": ("excess P99.9", _excess_us(0.999, 0.999))},
    ("cylon", "sequential", 1, 1.5): {
        "f6.over.p99.cylon": ("excess over 6.2 us, P1-P99", _excess_us(0.01, 0.99, CYLON_TRANSFER_US)),
        "f6.over.p999.cylon": ("excess over 6.2 us, P99.9", _excess_us(0.999, 0.999, CYLON_TRANSFER_US))},
}


@cache
def _published() -> dict[str, dict[str, str]]:
    with data_path("published.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def _is(device: Device, preset: str) -> bool:
    named = Device.named(preset)
    return device == named.with_(cache_pages=device.cache_pages, capacity_pages=device.capacity_pages,
                                 scale=device.scale)


def _measures(device: Device, workload: Workload) -> dict[str, tuple[str, Measure]]:
    if not isinstance(workload, Chase):
        return {}
    found: dict[str, tuple[str, Measure]] = {}
    for (preset, pattern, threads, wss), measures in _RUNS.items():
        as_published = Chase(pattern=workload.pattern, threads=threads, wss=wss, accesses=workload.accesses,
                             seed=workload.seed, warmup=workload.warmup)
        patterns = ("sequential", "cycle") if pattern is None else (pattern,)
        if workload == as_published and workload.pattern in patterns and _is(device, preset):
            found |= measures
    return found


def published_bands(device: Device, workload: Workload) -> list[Band]:
    """The published rows that speak of exactly this run: a preset at any scale, and the chase that was published."""
    bands = []
    for id_, (what, _) in _measures(device, workload).items():
        row = _published()[id_]
        low, high, band_low, band_high = (float(row[name] or "nan") for name in ("low", "high", "band_low", "band_high"))
        bands.append(Band(id_, row["source"], row["metric"], low, high, row["unit"], band_low, band_high, what))
    return bands


def held(device: Device, workload: Workload, result: xr.Dataset) -> list[Band]:
    """The same rows with what the run's result (one seed or several) has to say to each."""
    measures = _measures(device, workload)
    return [band._replace(ours=measures[band.id][1](result)) for band in published_bands(device, workload)]
