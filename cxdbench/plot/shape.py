"""What is drawn from a result, as numbers: curves, their labels, stages, windows, threads. No figure in here."""
from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import xarray as xr

from cxdbench.bins import lower_edges, widths
from cxdbench.result import STAGES
from cxdbench.summary import MIN_BEYOND, percentiles

MAX_POINTS = 600
STAGE_LEVELS = {"P1": 0.01, "P10": 0.1, "P25": 0.25, "P50": 0.5, "P75": 0.75, "P90": 0.9, "P99": 0.99,
                "P99.9": 0.999, "P99.99": 0.9999}

_LOWER = lower_edges()
_UPPER = _LOWER + widths() - 1


class Hump(NamedTuple):
    """A label and the place on the CDF it belongs to."""

    ns: float
    share: float
    text: str


@dataclass(frozen=True, eq=False)
class Curve:
    """One latency distribution, ready to draw.

    ns, share: the CDF as a polyline of at most MAX_POINTS points, rising across each occupied bin. low, high: its
    bounds over seeds at the same ns, None for one seed. count: accesses. humps: labels. configured_ns: t_R +
    transfer of an idle device.
    """

    name: str
    ns: np.ndarray
    share: np.ndarray
    count: int
    humps: tuple[Hump, ...]
    configured_ns: float
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    def named(self, name: str) -> Curve:
        return replace(self, name=name)

    @property
    def beyond(self) -> np.ndarray:
        """Share of the accesses that took longer, at each ns."""
        return 1.0 - self.share

    @property
    def last_solid(self) -> int:
        """Index of the last point beyond which at least MIN_BEYOND samples lie."""
        solid = np.flatnonzero(self.beyond * self.count >= MIN_BEYOND - 1e-6)
        return int(solid[-1]) if len(solid) else 0


def outcome_counts(result: xr.Dataset) -> np.ndarray:
    """Histograms by outcome, shape (3, bins), summed over seeds where there are several."""
    counts = result["latency"]
    if "seed" in counts.dims:
        counts = counts.sum("seed")
    return counts.transpose("outcome", "bin").values


def polyline(counts: np.ndarray, most: int = MAX_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """(ns, share at or below) of one histogram, shape (bins,): at most `most` points, the steep parts kept.

    Neighbouring bins are merged until few enough are left; each is drawn from its first occupied value to its last.
    """
    occupied = np.flatnonzero(counts)
    if not len(occupied):
        return np.zeros(0, np.int64), np.zeros(0)
    merge = 1
    while len(starts := np.flatnonzero(np.diff(occupied // merge, prepend=-1))) > most // 2:
        merge *= 2
    ends = np.append(starts[1:], len(occupied)) - 1
    running = counts.cumsum()
    before, after = running[occupied[starts]] - counts[occupied[starts]], running[occupied[ends]]
    ns = np.stack([_LOWER[occupied[starts]], _UPPER[occupied[ends]]], -1).ravel()
    return ns, np.stack([before, after], -1).ravel() / running[-1]


def share_at(counts: np.ndarray, ns: np.ndarray) -> np.ndarray:
    """The CDF of histograms, shape (…, bins), at ns, shape (n,): (…, n), linear within a bin."""
    running = np.concatenate([np.zeros_like(counts[..., :1]), counts.cumsum(-1)], -1)
    bins = np.searchsorted(_LOWER, ns, side="right") - 1
    part = (np.minimum(ns, _UPPER[bins]) - _LOWER[bins] + 1) / (_UPPER[bins] - _LOWER[bins] + 1)
    return (running[..., bins] + part * counts[..., bins]) / np.maximum(1, running[..., -1:])


def time_text(ns: float) -> str:
    """A time as people read it: "139 ns", "8.4 us", "1.2 ms"."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.{0 if ns / size >= 99.95 else 1}f} {unit}"
    return f"{ns:.0f} ns"


def latency_curve(result: xr.Dataset, name: str = "") -> Curve:
    """The CDF of all accesses of one run, or of several seeds together with their bounds."""
    by_outcome = outcome_counts(result)
    total = by_outcome.sum(0)
    ns, share = polyline(total)
    low = high = None
    if result.sizes.get("seed", 1) > 1:
        each = share_at(result["latency"].transpose("seed", "outcome", "bin").values.sum(1), ns)
        low, high = each.min(0), each.max(0)
    return Curve(name, ns, share, int(total.sum()), humps(by_outcome), float(result.attrs["configured_ns"]), low, high)


def humps(by_outcome: np.ndarray) -> tuple[Hump, ...]:
    """The hits' label ("hit 38 %") and the misses' ("miss P50 8.4 us"), at their medians, where there are any."""
    total = by_outcome.sum(0)
    hit, miss = by_outcome[0], by_outcome[1]
    found = []
    if hit.any():
        found.append(Hump(float(percentiles(hit, [0.5], faint=True)[0]), float(hit.sum() / total.sum()),
                          f"hit {100 * hit.sum() / total.sum():.0f} %"))
    if miss.any():
        middle = float(percentiles(miss, [0.5], faint=True)[0])
        found.append(Hump(middle, float(share_at(total, np.array([middle]))[0]), f"miss P50 {time_text(middle)}"))
    return tuple(found)


def stage_rows(result: xr.Dataset) -> dict[str, list]:
    """Where the misses and waits at each percentile of theirs spent their time.

    `level` names the percentile, `total_us` is the latency there, `text` the same to read, `faint` 0.35 where fewer
    than MIN_BEYOND samples lie beyond, else 1; then a list a stage: its share of the time, in %. All are empty where
    nothing missed.
    """
    counts = outcome_counts(result)[1:].sum(0)
    stages = result["stage_sum_ns"]
    if "seed" in stages.dims:
        stages = stages.sum("seed")
    stages = stages.transpose("stage", "bin").values
    rows: dict[str, list] = {name: [] for name in ("level", "total_us", "text", "faint", *STAGES)}
    if not counts.any():
        return rows
    at = percentiles(counts, list(STAGE_LEVELS.values()), np.arange(len(counts)), faint=True).astype(int)
    for (name, level), b in zip(STAGE_LEVELS.items(), at, strict=True):
        spent = stages[:, b].sum()
        rows["level"].append(name)
        rows["total_us"].append(float(spent / counts[b] / 1000))
        rows["text"].append(time_text(spent / counts[b]))
        rows["faint"].append(1.0 if counts.sum() * (1 - level) >= MIN_BEYOND - 1e-6 else 0.35)
        for stage, total in zip(STAGES, stages[:, b], strict=True):
            rows[stage].append(float(100 * total / max(1, spent)))
    return rows


def window_rows(result: xr.Dataset) -> dict[str, np.ndarray]:
    """Over the timed part in 64 windows: `at` (middle of the window, % of the accesses), `hit_ratio`, `evictions`
    per access, `resident` (share of the cache's frames at the window's end). Windows without accesses are left out."""
    if "seed" in result["window_hits"].dims:
        result = result.mean("seed", keep_attrs=True)
    hits = result["window_hits"].values
    accesses = hits + result["window_misses"].values + result["window_waits"].values
    some = accesses > 0
    cache = json.loads(result.attrs["device"])["cache_pages"]
    at = (np.arange(len(hits)) + 0.5) / len(hits) * 100
    return {"at": at[some], "hit_ratio": (hits[some] / accesses[some]),
            "evictions": result["window_evictions"].values[some] / accesses[some],
            "resident": result["window_resident"].values[some] / cache}


def thread_rows(result: xr.Dataset) -> dict[str, np.ndarray]:
    """By thread: `thread` (its number), `hit_ratio`, `mean_us` of all its accesses, `run_ms`."""
    if "seed" in result["thread_hits"].dims:
        result = result.mean("seed", keep_attrs=True)
    hits = result["thread_hits"].values
    accesses = np.maximum(1, hits + result["thread_misses"].values + result["thread_waits"].values)
    return {"thread": np.arange(len(hits)), "hit_ratio": hits / accesses,
            "mean_us": result["thread_sum_ns"].values / accesses / 1000, "run_ms": result["thread_run_ns"].values / 1e6}


