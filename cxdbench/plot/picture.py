"""The latency CDF as a still picture, for papers and for viewers without scripts."""
from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from cxdbench.plot.base import CURRENT, NEUTRAL, PINNED
from cxdbench.plot.shape import Curve

_STYLES = ("--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (1, 1)))
_UNITS = ("ns", "us", "ms", "s")


def _tick(ns: float, _position: int | None = None) -> str:
    power = 0
    while ns >= 1000 and power < 3:
        ns, power = ns / 1000, power + 1
    return f"{ns:g} {_UNITS[power]}"


def picture(curves: Sequence[Curve], form: Literal["svg", "png"] = "svg", colours: Sequence[int] | None = None,
            title: str = "") -> bytes:
    """The curves' CDFs as SVG or PNG, the first in front. colours: palette index of each pinned one, in order."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    front, *pinned = curves
    for i, (curve, colour) in enumerate(zip(pinned, colours or range(len(pinned)), strict=True)):
        axes.plot(curve.ns, curve.share, color=PINNED[colour % len(PINNED)], linestyle=_STYLES[i % len(_STYLES)],
                  linewidth=1.5, label=curve.name)
    if front.low is not None:
        axes.fill_between(front.ns, front.low, front.high, color=CURRENT, alpha=0.25, linewidth=0)
    axes.plot(front.ns, front.share, color=CURRENT, linewidth=2.2, label=front.name)
    for hump in front.humps:
        axes.annotate(hump.text, (hump.ns, hump.share), (6, 4), textcoords="offset points", color=CURRENT, fontsize=9)
    axes.axvline(front.configured_ns, color=NEUTRAL, linestyle=":", linewidth=1)
    axes.annotate("configured", (front.configured_ns, 0.01), (-3, 0), textcoords="offset points", color=NEUTRAL,
                  fontsize=8, ha="right", rotation=90)
    axes.set(xscale="log", ylim=(0, 1.01), xlabel="latency of an access", ylabel="share at or below", title=title)
    axes.xaxis.set_major_locator(LogLocator(numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(_tick))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    axes.grid(color=NEUTRAL, alpha=0.3, linewidth=0.6)
    axes.title.set_fontsize(9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if any(curve.name for curve in curves):
        axes.legend(fontsize=8, frameon=False, loc="lower right")
    (FigureCanvasSVG if form == "svg" else FigureCanvasAgg)(figure)
    out = io.BytesIO()
    # no date in the file: the same curves give the same bytes
    figure.savefig(out, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
    return out.getvalue()
