"""A sweep over two fields: one number a point as a heat map, or every point's CDF as small multiples."""
from __future__ import annotations

import numpy as np
import xarray as xr
from bokeh.layouts import gridplot
from bokeh.models import BasicTicker, ColorBar, ColumnDataSource, LinearColorMapper, LogColorMapper, Range1d
from bokeh.palettes import Cividis256
from bokeh.plotting import figure

from cxdbench.device import ConfigError
from cxdbench.plot.base import CURRENT, NEUTRAL, THEME, Plot, blank, time_axis
from cxdbench.plot.shape import latency_curve
from cxdbench.summary import summary

METRICS = {
    "hit_ratio": "hit ratio", "mean_ns": "mean latency, us", "miss_mean_ns": "mean miss, us",
    "miss_p50_ns": "miss P50, us", "miss_p99_ns": "miss P99, us", "p99_ns": "P99, us", "p999_ns": "P99.9, us",
    "accesses_per_s": "million accesses a second",
}
_UNIT = {"ns": 1e-3, "_s": 1e-6}


class Sheet(Plot):
    """A figure made once from a finished sweep."""

    def __init__(self, model) -> None:
        self.figure = model


def axes_of(grid: xr.Dataset) -> tuple[str, str | None]:
    """The one or two axes of a sweep. ConfigError for more."""
    names = [str(name) for name in grid["finished"].dims]
    if len(names) > 2:
        raise ConfigError(f"grid has {len(names)} axes ({', '.join(names)}): a picture takes one or two; select the rest")
    return names[0], names[1] if len(names) > 1 else None


def cells(grid: xr.Dataset, metric: str) -> tuple[list[str], list[str], np.ndarray]:
    """(labels along x, labels along y, values (x, y)) of a metric in its shown unit; NaN for unfinished points."""
    if metric not in METRICS:
        raise ConfigError(f"metric is {metric!r}: allowed: {', '.join(METRICS)}")
    x, y = axes_of(grid)
    values = summary(grid)[metric].where(grid["finished"]) * _UNIT.get(metric[-2:], 1.0)
    table = values.values if y else values.values[:, None]
    return [str(v) for v in grid[x].values], [str(v) for v in grid[y].values] if y else [""], table


def heat(grid: xr.Dataset, metric: str = "miss_mean_ns", **size: int) -> Sheet:
    """One number a point of a sweep over one or two fields, each cell with its value. size: width, height, pixels."""
    xs, ys, values = cells(grid, metric)
    x, y = axes_of(grid)
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    wide = low > 0 and high / low > 20
    mapper = (LogColorMapper if wide else LinearColorMapper)(
        palette=Cividis256, low=low, high=high if high > low else low + 1e-9, nan_color="#00000000")
    plot = blank(x_range=xs, y_range=ys, x_axis_label=x, y_axis_label=y or "", title=METRICS[metric], **size)
    plot.title.text_color = NEUTRAL
    data = {"x": [a for a in xs for _ in ys], "y": [b for _ in xs for b in ys], "value": values.ravel(),
            "text": [f"{v:.3g}" if np.isfinite(v) else "" for v in values.ravel()],
            "ink": ["#ffffff" if v < _middle(low, high, wide) else "#000000" for v in values.ravel()]}
    data = ColumnDataSource(data, name="heat-cells")
    plot.rect("x", "y", 1, 1, source=data, fill_color={"field": "value", "transform": mapper}, line_color=None,
              name="heat")
    plot.text("x", "y", text="text", source=data, text_align="center", text_baseline="middle", text_color="ink",
              text_font_size="12px")
    bar = ColorBar(color_mapper=mapper, ticker=BasicTicker(desired_num_ticks=5), background_fill_color=None,
                   major_label_text_color=NEUTRAL, width=10)
    plot.add_layout(bar, "right")
    plot.grid.visible = False
    return Sheet(plot)


def _middle(low: float, high: float, wide: bool) -> float:
    return float(np.sqrt(low * high)) if wide else (low + high) / 2


def multiples(grid: xr.Dataset, width: int = 700, height: int = 420) -> Sheet:
    """Every finished point's latency CDF, one small figure each, all on one scale: columns are the first axis."""
    x, y = axes_of(grid)
    columns, rows = grid.sizes[x], grid.sizes[y] if y else 1
    curves = {}
    for i, j in np.ndindex(columns, rows):
        one = grid.isel({x: i} | ({y: j} if y else {}))
        if bool(one["finished"]):
            curves[i, j] = latency_curve(one, "")
    ends = [ns for curve in curves.values() for ns in (curve.ns[0], curve.ns[-1])] or [100, 10_000]
    bounds = {"x_range": Range1d(min(ends) * 0.8, max(ends) * 1.25), "y_range": Range1d(0, 1.02)}
    return Sheet(gridplot(
        [[_small(curves.get((i, j)), _title(grid, x, i, y, j), bounds, width // columns, height // rows)
          for i in range(columns)] for j in reversed(range(rows))],
        toolbar_location=None, merge_tools=False))


def _title(grid: xr.Dataset, x: str, i: int, y: str | None, j: int) -> str:
    return f"{x} {grid[x].values[i]}" + (f", {y} {grid[y].values[j]}" if y else "")


def _small(curve, title: str, bounds: dict, width: int, height: int) -> figure:
    plot = figure(width=max(90, width), height=max(70, height), x_axis_type="log", title=title, toolbar_location=None,
                  tools="", background_fill_color=None, border_fill_color=None, outline_line_color=NEUTRAL,
                  outline_line_alpha=0.4, stylesheets=[THEME], min_border=2, **bounds)
    plot.title.text_color, plot.title.text_font_size, plot.title.text_font_style = NEUTRAL, "10px", "normal"
    time_axis(plot.xaxis)
    plot.axis.major_label_text_font_size, plot.axis.major_label_text_color = "8px", NEUTRAL
    plot.xaxis.ticker.desired_num_ticks = 3
    plot.grid.grid_line_alpha = 0.2
    if curve is not None:
        plot.line(curve.ns, curve.share, color=CURRENT, line_width=2)
    return plot
