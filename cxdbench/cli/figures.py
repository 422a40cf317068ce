"""Results as the command prints them: aligned tables with units for people, plain dictionaries for JSON."""
from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from cxdbench.published import Answer, Holds
from cxdbench.summary import summary

LINES = {"accesses": "accesses", "hit_ratio": "hit ratio", "misses": "misses", "waits": "waits", "mean_ns": "mean latency",
         "p50_ns": "P50", "p90_ns": "P90", "p99_ns": "P99", "p999_ns": "P99.9", "p9999_ns": "P99.99",
         "miss_mean_ns": "mean miss", "miss_p50_ns": "miss P50", "miss_p90_ns": "miss P90", "miss_p99_ns": "miss P99",
         "miss_p999_ns": "miss P99.9", "miss_p9999_ns": "miss P99.99", "excess_p50_ns": "excess P50",
         "excess_p99_ns": "excess P99", "residual_p50_ns": "residual P50", "residual_p99_ns": "residual P99",
         "nand_reads": "NAND reads", "nand_programs": "NAND programs", "run_ns": "run time"}
COLUMNS = ("hit_ratio", "mean_ns", "miss_mean_ns", "miss_p50_ns", "miss_p99_ns", "miss_p999_ns")
FEW = "fewer than 20 samples beyond"


def table(rows: Sequence[Sequence[str]], right: frozenset[int] | set[int] = frozenset()) -> str:
    """Rows of cells in aligned columns; those of `right` end together."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.rjust(width) if i in right else cell.ljust(width)
                       for i, (cell, width) in enumerate(zip(row, widths, strict=True))) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def amount(name: str, value: float) -> str:
    """A value of `summary` with its unit."""
    if math.isnan(value):
        return "-"
    if not name.endswith("_ns"):
        return f"{value:.4f}" if name.endswith("ratio") else f"{value:,.0f}"
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if abs(value) >= size:
            return f"{value / size:.2f} {unit}"
    return f"{value:.0f} ns"


def summary_table(result: xr.Dataset) -> str:
    values, rows = summary(result), []
    for name, text in LINES.items():
        row = [text, amount(name, float(values[name]))]
        if f"{name}_low" in values:
            row.append(f"{amount(name, float(values[f'{name}_low']))} to {amount(name, float(values[f'{name}_high']))}")
        rows.append(row)
    device, workload = (json.loads(result.attrs[name]) for name in ("device", "workload"))
    head = [f"device: {device['cache_pages']:,} cache pages (1/{result.attrs['scale']:.3g} of the full size), "
            f"{device['eviction']['kind']}, fault path {device['fault_path']['kind']}, "
            f"configured miss {result.attrs['configured_ns'] / 1000:g} us",
            f"workload: {workload.pop('kind')}, " + ", ".join(f"{k}={v}" for k, v in workload.items() if v is not None)]
    if "seed" in result.dims:
        head.append(f"means over {result.sizes['seed']} seeds, lowest to highest")
    foot = [f"-: {FEW}"] if any(row[1] == "-" for row in rows) else []
    return "\n".join([*head, "", table(rows, {1}), *foot])


def summary_json(result: xr.Dataset) -> dict[str, float | None]:
    values = summary(result)
    return {name: _plain(values[name]) for name in values}


def _points(grid: xr.Dataset) -> list[tuple[dict[str, Any], xr.Dataset]]:
    """(the place, the summary) of each finished point; with seeds, of those finished with all seeds."""
    axes = [name for name in json.loads(grid.attrs["axes"]) if name != "seed" or "seed" not in grid.dims]
    finished = grid["finished"].all("seed") if "seed" in grid.dims else grid["finished"]
    values = summary(grid)
    if not axes:
        return [({}, xr.Dataset(values))] if finished else []
    where = [dict(zip(axes, index, strict=True)) for index in np.argwhere(finished.values)]
    return [({name: _plain(grid[name].values[i]) for name, i in at.items()}, values.isel(at)) for at in where]


def sweep_json(grid: xr.Dataset) -> list[dict[str, Any]]:
    return [{**{name: _plain(values[name]) for name in values.data_vars}, **at} for at, values in _points(grid)]


def sweep_table(grid: xr.Dataset) -> str:
    points = _points(grid)
    if not points:
        return "no point is finished"
    axes = list(points[0][0])
    units = {name: grid[name].attrs.get("units", "1") for name in axes}
    head = [*(name if units[name] == "1" else f"{name} [{units[name]}]" for name in axes), "hit ratio",
            *(f"{LINES[name]} [us]" for name in COLUMNS[1:])]
    rows = [[*map(str, at.values()), f"{float(values['hit_ratio']):.4f}",
             *("-" if math.isnan(values[name]) else f"{float(values[name]) / 1000:.2f}" for name in COLUMNS[1:])]
            for at, values in points]
    foot = [f"-: {FEW}, or no miss"] if any("-" in row for row in rows) else []
    if "seed" in grid.dims:
        foot.append(f"means over {grid.sizes['seed']} seeds; --json has the lowest and highest")
    return "\n".join([table([head, *rows], set(range(len(axes), len(head)))), *foot])


def published_json(answers: list[Answer]) -> list[dict[str, Any]]:
    return [{name: _plain(value) for name, value in one.as_dict().items()} for one in answers]


def published_table(answers: list[Answer]) -> str:
    """The numbers, then for each row why it comes out so, with the numbers behind a relation."""
    rows = [("row", "published", "band", "ours", "verdict")]
    whys = []
    for a in answers:
        relation = a.row.band_low is None and a.row.band_high is None
        ours = ("holds" if a.ours.holds else "does not hold") if isinstance(a.ours, Holds) else a.ours_text
        rows.append((a.row.id, a.row.published_text, "holds" if relation else a.row.band_text, ours, a.verdict))
        whys.append(f"{a.row.id}: {a.why}" + (f" ({a.ours.detail})" if isinstance(a.ours, Holds) else ""))
    counts = Counter(a.verdict for a in answers)
    return "\n".join([table(rows), "", *whys, "", ", ".join(f"{n} {verdict}" for verdict, n in counts.items())])


def _plain(value: Any) -> Any:
    """For JSON: Python's own types, None for NaN."""
    value = value.item() if isinstance(value, np.generic | np.ndarray | xr.DataArray) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
