"""Scalars by name from a result's histograms: percentiles, means, ratios; a point, a sweep or several seeds."""
from __future__ import annotations

import numpy as np
import xarray as xr

from cxdbench.bins import N_BINS, lower_edges, middles, widths
from cxdbench.settings import ConfigError

MIN_BEYOND = 20  # samples that must lie beyond a percentile for it to be quoted
LEVELS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}


def samples_beyond(count: np.ndarray | int, level: float) -> np.ndarray | float:
    """How many of `count` samples lie beyond the percentile `level` (0 to 1)."""
    return np.asarray(count) * (1 - level)


def percentiles(counts: np.ndarray, levels: list[float], values: np.ndarray | None = None, *,
                faint: bool = False) -> np.ndarray:
    """Percentiles of histograms, shape (…, bins) → (…, levels), in the units of `values` (default: bins' middles, ns).

    NaN where fewer than MIN_BEYOND samples lie beyond, unless `faint`; NaN for an empty histogram.
    """
    counts = np.asarray(counts)
    values = middles() if values is None else values
    total = counts.sum(-1)
    running = counts.cumsum(-1)
    out = np.full((*counts.shape[:-1], len(levels)), np.nan)
    for where in np.ndindex(*counts.shape[:-1]):
        if total[where] == 0:
            continue
        at = np.searchsorted(running[where], np.maximum(1, np.ceil(np.asarray(levels) * total[where] - 1e-9)))
        out[where] = values[at]
        if not faint:
            few = samples_beyond(total[where], np.asarray(levels)) < MIN_BEYOND - 1e-6
            out[where][few] = np.nan
    return out


def signed_counts(histogram: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """excess or residual (sign, bin) as one histogram from the most negative value up: (counts (…, 2 bins), ns)."""
    pair = histogram.transpose(..., "sign", "bin").values
    counts = np.concatenate([pair[..., 0, ::-1], pair[..., 1, :]], axis=-1)
    return counts, np.concatenate([-middles()[::-1], middles()])


def cdf(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(ns, share at or below) at the upper end of each occupied bin of one histogram, shape (bins,)."""
    counts = np.asarray(counts)
    occupied = np.flatnonzero(counts)
    upper = lower_edges()[occupied] + widths()[occupied] - 1
    return upper, counts.cumsum()[occupied] / max(1, counts.sum())


def _clamped(points: np.ndarray, low: xr.DataArray, high: xr.DataArray) -> np.ndarray:
    return np.clip(points, low.values[..., None], high.values[..., None])


def must_be_result(result: object) -> None:
    """Raise ConfigError unless this is what `run` or `sweep` returns."""
    if not isinstance(result, xr.Dataset) or "latency" not in result:
        raise ConfigError(f"result is {type(result).__name__}: must be what `run` or `sweep` returns")


def must_be_no_sweep(result: object) -> None:
    """Raise ConfigError unless this is what `run` returns, of one seed or several."""
    must_be_result(result)
    if "finished" in result and result["finished"].ndim:
        raise ConfigError("result is a sweep: take one point out of it, as `grid.sel(…)` does")


def summary(result: xr.Dataset) -> dict[str, float] | xr.Dataset:
    """hit_ratio, means, and percentiles by name (…_ns), of all accesses, misses, excess and residual; counters too.

    For a single run a dict of floats; for a sweep a Dataset over its dimensions. With several seeds each value is the
    mean over seeds, and `<name>_low` / `<name>_high` bound it (smallest and largest seed).
    """
    must_be_result(result)
    r = result
    count = r["count"].astype(float)
    accesses = count.sum("outcome")
    out: dict[str, xr.DataArray] = {
        "accesses": accesses,
        "hits": count.sel(outcome="hit", drop=True), "misses": count.sel(outcome="miss", drop=True),
        "waits": count.sel(outcome="wait", drop=True),
    }
    out["hit_ratio"] = out["hits"] / accesses
    out["mean_ns"] = r["sum_ns"].sum("outcome") / accesses
    out["run_ns"] = r["run_ns"].astype(float)
    out["accesses_per_s"] = accesses / out["run_ns"] * 1e9
    for outcome in ("miss", "wait"):
        n = count.sel(outcome=outcome, drop=True)
        out[f"{outcome}_mean_ns"] = (r["sum_ns"].sel(outcome=outcome, drop=True) / n).where(n > 0)
        out[f"{outcome}_max_ns"] = r["max_ns"].sel(outcome=outcome, drop=True).astype(float).where(n > 0)
    shape = accesses

    def add(prefix: str, points: np.ndarray) -> None:
        for i, name in enumerate(LEVELS):
            out[f"{prefix}{name}_ns"] = xr.DataArray(points[..., i], shape.coords, shape.dims)

    levels = list(LEVELS.values())
    latency = r["latency"].transpose(..., "outcome", "bin")
    add("", percentiles(latency.sum("outcome").values, levels))
    miss = percentiles(latency.sel(outcome="miss").values, levels)
    add("miss_", _clamped(miss, r["min_ns"].sel(outcome="miss"), r["max_ns"].sel(outcome="miss")))
    for name in ("excess", "residual"):
        counts, values = signed_counts(r[name])
        add(f"{name}_", percentiles(counts, levels, values))
    evictions = r["evictions"].astype(float)
    for kind in ("clean", "dirty"):
        for by in ("foreground", "background"):
            out[f"evictions_{kind}_{by}"] = evictions.sel(kind=kind, by=by, drop=True)
    for name in ("charged", "nand_reads", "nand_programs", "nand_erases", "prefetch_issued", "prefetch_useful",
                 "prefetch_late", "prefetch_wasted"):
        out[name] = r[name].astype(float)
    # a sweep over accesses has that name as its coordinate already
    table = xr.Dataset({name: value for name, value in out.items() if name not in accesses.dims})
    if "seed" in table.dims:
        low, high = table.min("seed"), table.max("seed")
        table = table.mean("seed")
        for name in list(table):
            table[f"{name}_low"], table[f"{name}_high"] = low[name], high[name]
    if table.sizes:
        return table
    return {name: float(value) for name, value in table.items()}


def excess_mean_ns(result: xr.Dataset) -> float:
    """Mean of observed - configured over the charged misses of one run, from bins (<= 0.8 % of each value)."""
    counts, values = signed_counts(result["excess"])
    return float((counts * values).sum() / counts.sum()) if counts.sum() else float("nan")


assert len(middles()) == N_BINS
