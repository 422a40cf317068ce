"""The latency distribution: CDF with its humps named, and CCDF down to the rarest accesses."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from bokeh.models import HoverTool, Legend, LegendItem, Range1d, Span

from cxdbench.plot.base import (
    CURRENT,
    DASHES,
    FAINT,
    NEUTRAL,
    PINNED,
    Plot,
    blank,
    set_range,
    source,
    steps,
    style_legend,
    time_axis,
)
from cxdbench.plot.shape import Curve, latency_curve
from cxdbench.settings import ConfigError, short
from cxdbench.summary import must_be_no_sweep


def curves_of(results: xr.Dataset | Mapping[str, xr.Dataset]) -> list[Curve]:
    """One curve a result; a lone result needs no name."""
    if isinstance(results, xr.Dataset):
        return [_curve(results, "")]
    if not isinstance(results, Mapping) or not results:
        raise ConfigError(f"results is {short(results)}: must be a result, or a dict of name to result")
    return [_curve(result, str(name)) for name, result in results.items()]


def _curve(result: xr.Dataset, name: str) -> Curve:
    must_be_no_sweep(result)
    return latency_curve(result, name)


class LatencyPlot(Plot):
    """One curve in front, others pinned behind it, over log time. Sources: `<kind>`, `<kind>-pins`, `<kind>-labels`.

    kind: "cdf" (share at or below) or "ccdf" (share above, log).
    """

    def __init__(self, kind: str, curves: Sequence[Curve] = (), **size: int) -> None:
        self.kind = kind
        self.figure = plot = blank(
            x_axis_type="log", y_axis_type="log" if kind == "ccdf" else "linear", x_range=Range1d(100, 1e5),
            y_range=Range1d(0, 1) if kind == "cdf" else Range1d(1e-6, 1), **size)
        plot.xaxis.axis_label = "latency of an access"
        plot.yaxis.axis_label = "share at or below" if kind == "cdf" else "share above"
        time_axis(plot.xaxis[0])
        self.current = source(kind, "ns", "share")
        self.faint = source(f"{kind}-faint", "ns", "share")
        self.pins = source(f"{kind}-pins", "ns", "share", "name", "colour", "dash", "alpha")
        self.labels = source(f"{kind}-labels", "ns", "share", "text")
        self.band = source(f"{kind}-band", "ns", "low", "high")
        self.configured = Span(location=1, dimension="height", line_color=NEUTRAL, line_dash="dotted", line_width=1.5)
        plot.add_layout(self.configured)
        plot.varea("ns", "low", "high", source=self.band, fill_color=CURRENT, fill_alpha=0.25)
        self.behind = plot.multi_line("ns", "share", source=self.pins, line_color="colour", line_dash="dash",
                                      line_alpha="alpha", line_width=2)
        self.front = plot.line("ns", "share", source=self.current, line_color=CURRENT, line_width=3)
        plot.line("ns", "share", source=self.faint, line_color=CURRENT, line_width=3, line_alpha=FAINT)
        plot.text("ns", "share", "text", source=self.labels, text_color=CURRENT, text_font_size="12px",
                  text_font_style="bold", x_offset=20, y_offset=-4)
        plot.add_layout(Legend(items=[]))
        style_legend(plot, "bottom_right" if kind == "cdf" else "bottom_left")
        plot.add_tools(HoverTool(renderers=[self.front, self.behind], line_policy="nearest", tooltips=[
            ("latency", "$x{0,0} ns"), (plot.yaxis.axis_label[0], "$y{0.0000}")]))
        self._shown: list[Curve] = []
        if curves:
            self.update(curves[0], list(zip(curves[1:], range(len(curves)), strict=False)))

    def update(self, front: Curve, pinned: Sequence[tuple[Curve, int]] = ()) -> None:
        """Draw `front` and, behind it, (curve, index of its colour) each; what has not changed is left alone."""
        pins = [curve for curve, _ in pinned]
        same = len(pins) == len(self._shown) and all(
            a.name == b.name and a.ns is b.ns for a, b in zip(pins, self._shown, strict=True))
        if not same or not self.figure.legend[0].items:
            self._shown = pins
            self._draw_pins(pinned)
        self._name(front, pinned)
        ns, share = self._line(front)
        solid = len(ns) if self.kind == "cdf" else front.last_solid + 1
        self.current.data = {"ns": ns[:solid].tolist(), "share": share[:solid].tolist()}
        self.faint.data = {"ns": ns[solid - 1:].tolist(), "share": share[solid - 1:].tolist()}
        labels = front.humps if self.kind == "cdf" else ()
        self.labels.data = {"ns": [h.ns for h in labels], "share": [h.share for h in labels],
                            "text": [h.text for h in labels]}
        if self.kind == "cdf" and (front.low is not None or len(self.band.data["ns"])):
            some = front.low is not None
            self.band.data = {"ns": front.ns.tolist() if some else [], "low": front.low.tolist() if some else [],
                              "high": front.high.tolist() if some else []}
        if self.configured.location != front.configured_ns:
            self.configured.location = front.configured_ns
        self._fit([front, *pins])

    def _line(self, curve: Curve) -> tuple[np.ndarray, np.ndarray]:
        if self.kind == "cdf":
            return curve.ns, curve.share
        above = curve.beyond
        some = above > 0
        return curve.ns[some], above[some]

    def _draw_pins(self, pinned: Sequence[tuple[Curve, int]]) -> None:
        lines = [self._line(curve) for curve, _ in pinned]
        self.pins.data = {
            "ns": [ns.tolist() for ns, _ in lines], "share": [share.tolist() for _, share in lines],
            "name": [curve.name for curve, _ in pinned],
            "colour": [PINNED[i % len(PINNED)] for _, i in pinned], "dash": [DASHES[i % len(DASHES)] for _, i in pinned],
            "alpha": [1.0] * len(lines)}

    def _name(self, front: Curve, pinned: Sequence[tuple[Curve, int]]) -> None:
        names = [front.name, *(curve.name for curve, _ in pinned)]
        legend = self.figure.legend[0]
        if [item.label.value for item in legend.items] != names:
            legend.items = [LegendItem(label=names[0], renderers=[self.front])] + [
                LegendItem(label=name, renderers=[self.behind], index=i) for i, name in enumerate(names[1:])]
        legend.visible = any(names)

    def _fit(self, curves: Sequence[Curve]) -> None:
        some = [c for c in curves if len(c.ns)]
        if not some:
            return
        least = min(min(c.ns[0], c.configured_ns or c.ns[0]) for c in some)
        set_range(self.figure.x_range, *steps(max(1, 0.8 * least), 1.1 * max(c.ns[-1] for c in some)))
        if self.kind == "ccdf":
            set_range(self.figure.y_range, steps(1 / max(c.count for c in some), 1)[0], 1)


def cdf(results: xr.Dataset | Mapping[str, xr.Dataset], **size: int) -> LatencyPlot:
    """The latency CDF of a result, or of several by name, the first in front. size: width, height in pixels."""
    return LatencyPlot("cdf", curves_of(results), **size)


def ccdf(results: xr.Dataset | Mapping[str, xr.Dataset], **size: int) -> LatencyPlot:
    """The share of accesses slower than x, log-log; faint where fewer than 20 samples lie beyond."""
    return LatencyPlot("ccdf", curves_of(results), **size)
