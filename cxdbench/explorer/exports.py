"""What leaves the explorer as a file: pictures, curves, numbers, the result, the state, the code."""
from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

from cxdbench.explorer.numbers import COLUMNS, Table
from cxdbench.explorer.runner import Outcome
from cxdbench.explorer.state import State
from cxdbench.plot.shape import Curve
from cxdbench.result import save_result

EXPORTS = {"svg": "picture, SVG", "png": "picture, PNG", "curve.csv": "curves, CSV", "table.csv": "table, CSV",
           "nc": "result, netCDF", "json": "state, JSON", "py": "code, Python"}


def curves_csv(curves: Sequence[Curve]) -> str:
    """name, latency_ns, share_at_or_below: the points of every curve shown."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["name", "latency_ns", "share_at_or_below"])
    for curve in curves:
        rows.writerows((curve.name, int(ns), f"{share:.9g}") for ns, share in zip(curve.ns, curve.share, strict=True))
    return out.getvalue()


def table_csv(table: Table) -> str:
    """metric, column, value, low, high, beyond: shares as fractions, latencies in us; low and high over the seeds."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["metric", "column", "unit", "value", "low", "high", "misses_beyond", "enough_samples"])
    for name, cell in table.shares.items():
        rows.writerow([f"{name} share", "all", "1", f"{cell.value:.6g}", f"{cell.low:.6g}", f"{cell.high:.6g}", "", "yes"])
    for row in table.rows:
        beyond = "" if row.beyond is None else f"{row.beyond:.0f}"
        for name in COLUMNS:
            cell = row.cells[name]
            rows.writerow([row.name, name, "us", f"{cell.value:.6g}", f"{cell.low:.6g}", f"{cell.high:.6g}", beyond,
                           "no" if cell.faint else "yes"])
    return out.getvalue()


def free_path(folder: Path, name: str, ending: str) -> Path:
    """A path that no file has yet: NAME.ENDING, else NAME-2.ENDING and so on."""
    stem = "cxdbench-" + re.sub(r"[^\w.]+", "-", name).strip("-")[:60]
    path, n = folder / f"{stem}.{ending}", 1
    while path.exists():
        n += 1
        path = folder / f"{stem}-{n}.{ending}"
    return path


def export(kind: str, state: State, outcome: Outcome, curves: Sequence[Curve], table: Table,
           folder: Path | None = None) -> Path:
    """Write one of EXPORTS into `folder` (the present one) and return its path; nothing is overwritten.

    OSError where the folder cannot be written to.
    """
    path = free_path(folder or Path(), outcome.setting.name(), kind)
    if kind == "nc":
        return save_result(outcome.result, path)
    if kind in ("svg", "png"):
        from cxdbench.plot.picture import picture  # matplotlib takes most of a second to import
        path.write_bytes(picture(curves, kind))
        return path
    text = {"curve.csv": lambda: curves_csv(curves), "table.csv": lambda: table_csv(table),
            "json": lambda: state.to_json() + "\n", "py": lambda: outcome.setting.code(outcome.repeats)}[kind]()
    path.write_text(text, encoding="utf-8")
    return path
