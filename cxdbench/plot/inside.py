"""Inside one run: where the misses' time goes by percentile, how the run went over time, how threads differ."""
from __future__ import annotations

from typing import ClassVar

import xarray as xr
from bokeh.layouts import column
from bokeh.models import FactorRange, HoverTool, Range1d

from cxdbench.diagrams import COLOURS
from cxdbench.plot.base import CURRENT, NEUTRAL, PINNED, Plot, blank, set_range, source, steps, style_legend
from cxdbench.plot.shape import STAGE_LEVELS, stage_rows, thread_rows, window_rows
from cxdbench.result import STAGES


class StagesPlot(Plot):
    """The stages' shares of the time, stacked, of the misses and waits at each percentile. Source: `stages`."""

    def __init__(self, result: xr.Dataset | None = None, **size: int) -> None:
        self.figure = plot = blank(x_range=FactorRange(*STAGE_LEVELS), y_range=Range1d(0, 112), tools="save", **size)
        plot.xaxis.axis_label = "percentile of the misses and waits, and its latency"
        plot.yaxis.axis_label = "share of the time, %"
        self.rows = source("stages", *stage_rows_columns())
        bars = plot.vbar_stack(STAGES, x="level", width=0.8, source=self.rows, fill_alpha="faint", line_color=None,
                               color=[COLOURS[s] for s in STAGES], legend_label=list(STAGES))
        plot.text("level", 101, "text", source=self.rows, text_color=NEUTRAL, text_font_size="11px",
                  text_align="center")
        style_legend(plot, "center")
        plot.add_layout(plot.legend[0], "right")
        plot.add_tools(HoverTool(renderers=bars, tooltips=[
            ("at", "@level, @text"), ("stage", "$name"), ("share", "@$name{0.0} %")]))
        if result is not None:
            self.update(result)

    def update(self, result: xr.Dataset) -> None:
        rows = stage_rows(result)
        self.rows.data = rows
        for item, stage in zip(self.figure.legend[0].items, STAGES, strict=True):
            item.visible = any(rows[stage])


def stage_rows_columns() -> tuple[str, ...]:
    return ("level", "total_us", "text", "faint", *STAGES)


class OverTimePlot(Plot):
    """Hit ratio, evictions an access and occupied frames over the timed part. Source: `over-time`."""

    LINES: ClassVar = {"hit_ratio": ("hit ratio", CURRENT, "solid"),
                       "evictions": ("evictions per access", PINNED[0], "dashed"),
                       "resident": ("occupied share of the cache", PINNED[2], "dotdash")}

    def __init__(self, result: xr.Dataset | None = None, **size: int) -> None:
        self.figure = plot = blank(x_range=Range1d(0, 100), y_range=Range1d(0, 1.05), **size)
        plot.xaxis.axis_label = "timed accesses done, %"
        self.rows = source("over-time", "at", *self.LINES)
        lines = [plot.line("at", name, source=self.rows, line_color=colour, line_dash=dash, line_width=2.5,
                           legend_label=text) for name, (text, colour, dash) in self.LINES.items()]
        style_legend(plot, "center_right")
        plot.add_tools(HoverTool(renderers=lines[:1], mode="vline", tooltips=[
            ("at", "@at{0} %"), *((text, f"@{name}{{0.000}}") for name, (text, _, _) in self.LINES.items())]))
        if result is not None:
            self.update(result)

    def update(self, result: xr.Dataset) -> None:
        rows = window_rows(result)
        self.rows.data = {name: values.tolist() for name, values in rows.items()}
        highest = max(max(values, default=0) for name, values in self.rows.data.items() if name != "at")
        set_range(self.figure.y_range, 0, 1.05 if highest <= 1 else 1.05 * highest)


class ThreadsPlot(Plot):
    """Hit ratio, mean latency and run time of each thread, one above the other. Source: `threads`."""

    BARS: ClassVar = {"hit_ratio": "hit ratio", "mean_us": "mean latency, us", "run_ms": "run time, ms"}

    def __init__(self, result: xr.Dataset | None = None, width: int = 760, height: int = 420, **size) -> None:
        self.rows = source("threads", "thread", *self.BARS)
        self.range = Range1d(-0.6, 7.6)
        self.panes = []
        for name, text in self.BARS.items():
            pane = blank(width, height // 3, x_range=self.range, y_range=Range1d(0, 1), tools="save", **size)
            pane.toolbar_location = None
            pane.yaxis.axis_label = text
            bars = pane.vbar("thread", 0.75, name, source=self.rows, fill_color=CURRENT, line_color=None)
            pane.xaxis.ticker.min_interval = 1
            pane.xgrid.visible = False
            pane.add_tools(HoverTool(renderers=[bars], tooltips=[
                ("thread", "@thread"), *((text, f"@{name}{{0.000}}") for name, text in self.BARS.items())]))
            self.panes.append(pane)
        self.panes[-1].xaxis.axis_label = "thread"
        self.figure = column(*self.panes, sizing_mode=size.get("sizing_mode"))
        if result is not None:
            self.update(result)

    def update(self, result: xr.Dataset) -> None:
        rows = thread_rows(result)
        self.rows.data = {name: values.tolist() for name, values in rows.items()}
        set_range(self.range, -0.6, len(rows["thread"]) - 0.4)
        for pane, name in zip(self.panes, self.BARS, strict=True):
            top = 1 if name == "hit_ratio" else steps(1e-3, max(1e-3, 1.02 * max(rows[name])))[1]
            set_range(pane.y_range, 0, top)


def stages(result: xr.Dataset, **size: int) -> StagesPlot:
    """Where misses and waits spend their time, by percentile; faint where fewer than 20 samples lie beyond."""
    return StagesPlot(result, **size)


def over_time(result: xr.Dataset, **size: int) -> OverTimePlot:
    """Hit ratio, evictions and occupied frames over the run's 64 windows."""
    return OverTimePlot(result, **size)


def threads(result: xr.Dataset, **size: int) -> ThreadsPlot:
    """Hit ratio, mean latency and run time by thread."""
    return ThreadsPlot(result, **size)
