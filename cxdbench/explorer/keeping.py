"""Keep in notebook: state, numbers, curves and a picture as data of the cell's saved output; and reading them back."""
from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cxdbench.device import ConfigError
from cxdbench.explorer.numbers import COLUMNS, Table, number
from cxdbench.explorer.state import State
from cxdbench.plot.shape import Curve

KEPT = "application/vnd.cxdbench.explorer+json"


def bundle(state: State, table: Table, front: Curve, pinned: Sequence[tuple[Curve, int]]) -> dict[str, Any]:
    """What is saved, by MIME type: a picture any viewer shows, its numbers as text, and all of it as data."""
    from cxdbench.plot.picture import picture  # matplotlib takes most of a second to import
    curves = [front, *(curve for curve, _ in pinned)]
    colours = [colour for _, colour in pinned]
    data = {"state": state.to_dict(), "table": _rows(table),
            "curves": [{"name": c.name, "accesses": c.count, "latency_ns": [int(v) for v in c.ns],
                        "share_at_or_below": [round(float(v), 9) for v in c.share]} for c in curves]}
    return {KEPT: data, "image/svg+xml": picture(curves, "svg", colours).decode(), "text/plain": _text(front.name, table)}


def _rows(table: Table) -> list[dict[str, Any]]:
    shares = [{"metric": f"{name} share", "all": cell.value} for name, cell in table.shares.items()]
    return shares + [{"metric": row.name, "unit": "us"} | {
        column: None if row.cells[column].value != row.cells[column].value else round(row.cells[column].value, 4)
        for column in COLUMNS} for row in table.rows]


def _text(name: str, table: Table) -> str:
    lines = [f"{name}: hit ratio {table.shares['hit'].value:.3f}", f"{'us':8}" + "".join(f"{c:>9}" for c in COLUMNS)]
    lines += [f"{row.name:8}" + "".join(f"{number(row.cells[c].value):>9}" for c in COLUMNS) for row in table.rows]
    return "\n".join([*lines, "kept; cxd.explore(state=\"this-notebook.ipynb\") opens here again"])


def read_state(source: dict[str, Any] | str | Path) -> State:
    """A state from its dict or JSON text, from an exported .json file, or from a notebook's last kept output.

    ConfigError names what does not fit.
    """
    if isinstance(source, dict):
        return State.from_dict(source)
    text = str(source)
    if not text.lstrip().startswith("{"):
        path = Path(text)
        if not path.is_file():
            raise ConfigError(f"state is {text!r}: must be a dict, its JSON text, or a .json or .ipynb file; there is no "
                              "such file")
        text = path.read_text(encoding="utf-8", errors="replace")
    try:
        data = json.loads(text)
    except ValueError:
        raise ConfigError(f"state is {str(source)[:60]!r}: not JSON that can be read") from None
    if isinstance(data, dict) and "cells" in data:
        try:
            kept = [output["data"][KEPT] for cell in data["cells"] for output in cell.get("outputs", [])
                    if KEPT in output.get("data", {})]
            data = kept[-1]["state"] if kept else None
        except (TypeError, AttributeError, KeyError):
            raise ConfigError(f"state is {str(source)[:60]!r}: not a notebook that can be read") from None
        if not kept:
            raise ConfigError(f"state is {str(source)!r}: nothing was kept in this notebook")
    return State.from_dict(data)


__all__ = ["KEPT", "bundle", "read_state"]
