"""Right: the table of percentiles, the published figures beside ours, and the pinned curves."""
from __future__ import annotations

from collections.abc import Callable
from html import escape

import ipywidgets as W

from cxdbench.bands import Band
from cxdbench.explorer.numbers import COLUMNS, Cell, Table, number
from cxdbench.explorer.state import Pin
from cxdbench.plot.base import PINNED


def _td(cell: Cell) -> str:
    faint = ' class="cxd-faint" title="fewer than 20 samples lie beyond"' if cell.faint else ""
    between = f' title="{number(cell.low)} to {number(cell.high)} over the seeds"' if cell.low != cell.high else ""
    return f"<td{faint or between}>{number(cell.value)}{_interval(cell)}</td>"


def _interval(cell: Cell) -> str:
    if cell.low == cell.high or cell.value != cell.value:
        return ""
    return f'<br><span class="cxd-small">{number(cell.low)}–{number(cell.high)}</span>'


def _share(cell: Cell) -> str:
    text = f"{100 * cell.value:.1f} %"
    return text if cell.low == cell.high else f"{text} ({100 * cell.low:.1f}–{100 * cell.high:.1f})"


def table_html(table: Table) -> str:
    """The table as HTML: shares of the outcomes, then latency in us by column."""
    shares = " · ".join(f"{name} {_share(cell)}" for name, cell in table.shares.items()
                        if cell.high > 0 and name != "hit")
    rows = "".join(
        f"<tr><td>{row.name}</td>{''.join(_td(row.cells[c]) for c in COLUMNS)}"
        f"<td class='cxd-small'>{'' if row.beyond is None else f'{row.beyond:,.0f}'}</td></tr>" for row in table.rows)
    return (f"<div><b>hit ratio {_share(table.shares['hit'])}</b> <span class='cxd-small'>{shares}</span></div>"
            "<table><thead><tr><th>us</th><th>all</th><th>misses</th>"
            "<th title='observed - configured latency of a miss'>excess</th>"
            "<th title='misses beyond the percentile; faint below 20'>beyond</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>{notes_html(table.notes)}{bands_html(table.bands)}")


def notes_html(notes: tuple[tuple[str, str], ...]) -> str:
    """What is to be known of a measured run, a line each."""
    return "".join(f"<div class='cxd-small'><b>{escape(name)}</b> {escape(text)}</div>" for name, text in notes)


def _span(low: float, high: float, unit: str) -> str:
    if unit == "fraction":
        low, high, unit = 100 * low, 100 * high, "%"
    ends = [f"{v:.3g}" for v in (low, high) if v == v]
    return f"{'–'.join(dict.fromkeys(ends))} {unit}"


def bands_html(bands: tuple[Band, ...]) -> str:
    """The published rows beside ours, or nothing where none speaks of this run."""
    if not bands:
        return ""
    rows = "".join(
        f"<tr title='{escape(b.source)}: {escape(b.metric)}; equal within "
        f"{escape(_span(b.band_low, b.band_high, b.unit))}'><td>{escape(b.what)}</td>"
        f"<td>{_span(b.low, b.high, b.unit)}</td><td>{_span(*b.ours, b.unit)} {'✓' if b.within else '✗'}</td></tr>"
        for b in bands)
    sources = ", ".join(dict.fromkeys(b.source for b in bands))
    return (f"<table style='margin-top:8px'><thead><tr><th>{escape(sources)}</th><th>paper</th><th>ours</th></tr>"
            f"</thead><tbody>{rows}</tbody></table>")


class Readout:
    """The right panel. `unpin(pin)` is called when the user lets a curve go."""

    def __init__(self, unpin: Callable[[Pin], None]) -> None:
        self._unpin = unpin
        self.html = W.HTML()
        self.pins = W.VBox()
        self.widget = W.VBox([self.html, self.pins])
        self.widget.add_class("cxd-right")
        self._pinned: tuple[Pin, ...] | None = None

    def show(self, table: Table) -> None:
        """Another outcome's numbers."""
        self.html.value = table_html(table)

    def show_pins(self, pins: tuple[Pin, ...]) -> None:
        """The pinned curves, each with a button that lets it go."""
        if pins == self._pinned:
            return
        self._pinned = pins
        rows = []
        for pin in pins:
            button = W.Button(description="✕", tooltip=f"Unpin {pin.name}")
            button.add_class("cxd-pin")
            button.on_click(lambda _, pin=pin: self._unpin(pin))
            colour = PINNED[pin.colour % len(PINNED)]
            rows.append(W.HBox([button, W.HTML(
                f"<span style='color:{colour};font-weight:600' title='{escape(pin.name)}'>{escape(pin.name)}</span>")]))
        self.pins.children = rows
