"""The explorer's table and foot as numbers and words: nothing here knows of widgets."""
from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import xarray as xr

from cxdbench.bands import Band, held
from cxdbench.explorer.runner import Outcome
from cxdbench.result import check
from cxdbench.summary import LEVELS, MIN_BEYOND, percentiles, signed_counts

LEVEL_NAMES = {"p50": "P50", "p90": "P90", "p99": "P99", "p999": "P99.9", "p9999": "P99.99"}
COLUMNS = ("all", "miss", "excess")


@dataclass(frozen=True)
class Cell:
    """A number, its lowest and highest over seeds (all equal for one), and whether too few samples bear it out."""

    value: float
    low: float
    high: float
    faint: bool = False


@dataclass(frozen=True)
class Row:
    """One line: its name, microseconds by column, and how many misses lie beyond (None for the mean)."""

    name: str
    cells: dict[str, Cell]
    beyond: float | None


@dataclass(frozen=True)
class Table:
    """What stands right of the curve. Shares of the accesses by outcome; rows in us; published rows beside ours; notes
    on how far a measured run is to be trusted, (name, text) each."""

    shares: dict[str, Cell]
    rows: tuple[Row, ...]
    bands: tuple[Band, ...]
    notes: tuple[tuple[str, str], ...] = ()


def _cell(values: np.ndarray, faint: bool = False) -> Cell:
    if np.isnan(values).all():
        return Cell(float("nan"), float("nan"), float("nan"), faint)
    return Cell(float(np.nanmean(values)), float(np.nanmin(values)), float(np.nanmax(values)), faint)


def _by_seed(variable: xr.DataArray, *dims: str) -> np.ndarray:
    values = variable.transpose(..., *dims).values
    return values if "seed" in variable.dims else values[None]


def table(outcome: Outcome) -> Table:
    """The table of an outcome; several seeds give each number its lowest and highest."""
    r = outcome.result
    latency = _by_seed(r["latency"], "outcome", "bin")
    count, sums = _by_seed(r["count"], "outcome"), _by_seed(r["sum_ns"], "outcome")
    least, most = (_by_seed(r[name], "outcome")[:, 1:2] for name in ("min_ns", "max_ns"))
    excess, excess_ns = signed_counts(r["excess"])
    excess = excess if "seed" in r["excess"].dims else excess[None]
    levels = list(LEVELS.values())
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = {name: _cell(count[:, i] / count.sum(1)) for i, name in enumerate(("hit", "miss", "wait"))}
        means = {"all": sums.sum(1) / count.sum(1), "miss": sums[:, 1] / count[:, 1],
                 "excess": (excess * excess_ns).sum(1) / excess.sum(1)}
    points = {"all": percentiles(latency.sum(1), levels, faint=True),
              "miss": np.clip(percentiles(latency[:, 1], levels, faint=True), least, most),
              "excess": percentiles(excess, levels, excess_ns, faint=True)}
    samples = {"all": count.sum(1), "miss": count[:, 1], "excess": excess.sum(1)}
    rows = [Row("mean", {name: _cell(mean / 1000) for name, mean in means.items()}, None)]
    for i, (key, level) in enumerate(LEVELS.items()):
        beyond = {name: samples[name].min() * (1 - level) for name in COLUMNS}
        rows.append(Row(LEVEL_NAMES[key], {
            name: _cell(points[name][:, i] / 1000, bool(beyond[name] < MIN_BEYOND - 1e-6)) for name in COLUMNS},
            float(beyond["miss"])))
    return Table(shares, tuple(rows), tuple(held(outcome.setting.device, outcome.setting.workload, r)), measured(r))


def measured(result: xr.Dataset) -> tuple[tuple[str, str], ...]:
    """How true a run on real memory is: its residual, late misses and this machine's noise floor. Empty for the model."""
    if result.attrs["backend"] == "model":
        return ()
    noise = {name: value / 1000 for name, value in json.loads(result.attrs["noise_floor_ns"]).items()}
    notes = [("noise floor", f"P50 {number(noise['p50'])}, P99 {number(noise['p99'])}, P99.9 {number(noise['p999'])} us")]
    if result.attrs["backend"] == "live":
        counts, values = signed_counts(result["residual"])
        points = percentiles(counts if counts.ndim == 1 else counts.sum(0), [0.5, 0.9, 0.99], values, faint=True) / 1000
        residual = ", ".join(f"{name} {number(v)}" for name, v in zip(("P50", "P90", "P99"), points, strict=True))
        notes = [("residual", f"{residual} us"), ("late", f"{100 * result.attrs['late_share']:.1f} % of misses"), *notes]
    return tuple(notes)


def number(value: float) -> str:
    """Microseconds to three digits, "–" for none."""
    if np.isnan(value):
        return "–"
    size = abs(round(value, 3))
    return f"{value:,.{0 if size >= 99.95 else 1 if size >= 9.995 else 2 if size >= 1 else 3}f}" if size else "0"


def identities(result: xr.Dataset) -> str:
    """"18 of 18": how many of a result's identities hold, over all its seeds."""
    runs = [result.isel(seed=i) for i in range(result.sizes["seed"])] if "seed" in result.dims else [result]
    found = [identity.holds for one in runs for identity in check(one)]
    return f"{sum(found)} of {len(found)}"


def foot(outcome: Outcome) -> dict[str, str]:
    """What the foot says of a run, by name; all but the identities, which take a few ms to count."""
    r, workload = outcome.result, outcome.setting.workload
    warm = int(r.attrs["warmup_accesses"])
    ran = float(r["run_ns"].mean()) / 1e9
    seeds = f"{workload.seed}-{workload.seed + outcome.repeats - 1}" if outcome.repeats > 1 else f"{workload.seed}"
    scale = float(r.attrs["scale"])
    return {
        "engine": str(r.attrs["backend"]), "scale": f"1/{scale:.3g}" if scale > 1 else f"{1 / scale:.3g}",
        "seed": seeds, "accesses": f"{workload.accesses:,} after {warm:,} of warm-up",
        "run": f"{ran:.3g} s of the device in {outcome.seconds:.2f} s",
    }


def fitted(outcome: Outcome) -> dict[str, str]:
    """Fitted constants in use: dotted name to value and to what it was fitted."""
    return json.loads(outcome.result.attrs["fitted_constants"])


def warnings(outcome: Outcome) -> list[str]:
    return json.loads(outcome.result.attrs["warnings"])
