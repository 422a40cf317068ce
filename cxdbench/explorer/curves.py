"""Centre: the figures, one at a time; only what is seen is redrawn at once, the rest when its turn comes."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import ipywidgets as W
from jupyter_bokeh import BokehModel

from cxdbench.explorer.runner import Outcome
from cxdbench.plot.inside import OverTimePlot, StagesPlot, ThreadsPlot
from cxdbench.plot.latency import LatencyPlot
from cxdbench.plot.shape import Curve

TABS = {"cdf": "CDF", "ccdf": "CCDF", "stages": "stages", "time": "over time", "threads": "per thread"}
FILL = {"sizing_mode": "stretch_both"}


class Curves:
    """The figures of one outcome, with pinned curves behind. `extra`: further panes by (name, title)."""

    def __init__(self, outcome: Outcome, pinned: Sequence[tuple[Curve, int]], extra: dict[str, tuple[str, W.Widget]],
                 chosen: Callable[[str], None]) -> None:
        self.plots = {"cdf": LatencyPlot("cdf", **FILL), "ccdf": LatencyPlot("ccdf", **FILL),
                      "stages": StagesPlot(**FILL), "time": OverTimePlot(**FILL), "threads": ThreadsPlot(**FILL)}
        self._outcome, self._pinned = outcome, pinned
        self._stale = set(self.plots)
        for name in self.plots:
            self._redraw(name)
        fill = {"width": "100%", "height": "100%"}
        self.panes: dict[str, W.Widget] = {
            name: BokehModel(plot.figure, layout=W.Layout(**fill), combine_events=True)
            for name, plot in self.plots.items()}
        self.panes |= {name: pane for name, (_, pane) in extra.items()}
        titles = TABS | {name: title for name, (title, _) in extra.items()}
        self.buttons = {name: W.Button(description=title) for name, title in titles.items()}
        for name, button in self.buttons.items():
            button.add_class("cxd-tab")
            button.on_click(lambda _, name=name: chosen(name))
        bar = W.HBox(list(self.buttons.values()))
        bar.add_class("cxd-bar")
        self.widget = W.VBox([bar, *self.panes.values()])
        self.widget.add_class("cxd-centre")
        self.tab = ""
        self.choose("cdf")

    def choose(self, tab: str) -> None:
        """Show one pane."""
        if tab == self.tab:
            return
        self.tab = tab
        if tab in self.plots:
            self._redraw(tab)
        for name, pane in self.panes.items():
            pane.layout.display = None if name == tab else "none"
            (self.buttons[name].add_class if name == tab else self.buttons[name].remove_class)("cxd-on")

    def show(self, outcome: Outcome, pinned: Sequence[tuple[Curve, int]]) -> None:
        """Draw another outcome or other pins."""
        self._outcome, self._pinned = outcome, pinned
        self._stale = set(self.plots)
        if self.tab in self.plots:
            self._redraw(self.tab)

    def all(self) -> None:
        """Draw what is not seen as well."""
        for name in list(self._stale):
            self._redraw(name)

    def _redraw(self, name: str) -> None:
        if name not in self._stale:
            return
        self._stale.discard(name)
        plot = self.plots[name]
        if isinstance(plot, LatencyPlot):
            plot.update(self._outcome.curve, self._pinned)
        else:
            plot.update(self._outcome.result)

    def freeze(self) -> None:
        """Make what is saved with the notebook what is seen: a plot's saved form is that of its creation otherwise."""
        self.all()
        for name, plot in self.plots.items():
            self.panes[name].update_from_model(plot.figure)
