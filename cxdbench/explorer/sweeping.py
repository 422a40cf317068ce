"""The sweep pane: two fields, their values, a picture of every point, progress and Cancel."""
from __future__ import annotations

import threading
from collections.abc import Callable

import ipywidgets as W
import xarray as xr
from jupyter_bokeh import BokehModel

from cxdbench.device import ConfigError
from cxdbench.explorer.fields import BY_NAME, FIELDS
from cxdbench.explorer.loop import MainLoop
from cxdbench.explorer.setting import Setting
from cxdbench.plot.sweeps import METRICS, heat, multiples
from cxdbench.sweep import SweepCancelled, SweepControl, sweep

NONE = ""
SIZE = {"width": 520, "height": 350}  # of the picture, which then fills its pane
CHOICES = [(field.label, field.name) for field in FIELDS if field.sweep and field.of != "preset"]


def values_of(text: str, field: str) -> list:
    """A field's values from text such as "0.5, 1.1" or "fifo, lru"; ConfigError names what is no value."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise ConfigError(f"{field} has no values to sweep: give some, with commas between")
    like = BY_NAME[field].sweep[0]
    if isinstance(like, str):
        return words
    try:
        return [int(word) if isinstance(like, int) and word.lstrip("-").isdigit() else float(word) for word in words]
    except ValueError:
        raise ConfigError(f"{field} is {text!r}: must be numbers with commas between") from None


class Sweeping:
    """`setting()` gives what to start from; `say(message)` tells the user what does not fit."""

    def __init__(self, loop: MainLoop, setting: Callable[[], Setting], say: Callable[[str], None]) -> None:
        self._loop, self._setting, self._say = loop, setting, say
        self.control: SweepControl | None = None
        self.grid: xr.Dataset | None = None
        wide = W.Layout(width="100%")
        self.fields = [W.Dropdown(options=CHOICES, value="wss", layout=wide, tooltip="Swept along x"),
                       W.Dropdown(options=[("(none)", NONE), *CHOICES], value="threads", layout=wide,
                                  tooltip="Swept along y")]
        self.values = [W.Text(layout=wide, tooltip="Values, with commas between") for _ in self.fields]
        for i, field in enumerate(self.fields):
            field.observe(lambda _, i=i: self._fill(i), "value")
            self._fill(i)
        self.metric = W.Dropdown(options=[("latency CDFs", "cdf"), *((text, name) for name, text in METRICS.items())],
                                 value="miss_mean_ns", layout=W.Layout(flex="1 1 0", min_width="80px"), tooltip="Small multiples, or one number a point")
        self.metric.observe(lambda _: loop.do(self._draw), "value")
        plain = W.Layout(flex="0 0 auto", width="auto")
        self.start = W.Button(description="Sweep", tooltip="Run every point", layout=plain)
        self.stop = W.Button(description="Cancel", disabled=True, layout=plain,
                             tooltip="Stop; finished points are kept")
        self.bar = W.FloatProgress(min=0, max=1, layout=W.Layout(flex="0 0 90px", height="14px"))
        self.count = W.HTML(layout=W.Layout(flex="0 0 64px"))
        self.start.on_click(lambda _: loop.do(self.run))
        self.stop.on_click(lambda _: self.cancel())
        rows = [W.HBox([field, values]) for field, values in zip(self.fields, self.values, strict=True)]
        self.picture = W.VBox([], layout=W.Layout(flex="1 1 0", min_height="0"))
        self.widget = W.VBox([*rows, W.HBox([self.metric, self.start, self.stop, self.bar, self.count]), self.picture],
                             layout=W.Layout(height="100%"))

    def _fill(self, i: int) -> None:
        field = self.fields[i].value
        self.values[i].value = ", ".join(str(v) for v in BY_NAME[field].sweep) if field else ""
        self.values[i].disabled = not field

    def axes(self) -> dict[str, list]:
        """What is asked, by dotted name. ConfigError where it makes no sense."""
        asked = [(field.value, values.value) for field, values in zip(self.fields, self.values, strict=True) if field.value]
        if len({name for name, _ in asked}) < len(asked):
            raise ConfigError(f"{asked[0][0]} is swept along x and y: choose two different fields")
        return {name: values_of(text, name) for name, text in asked}

    def run(self) -> None:
        """Start; a sweep that runs is left alone."""
        if self.control is not None:
            return
        try:
            axes = self.axes()
        except ConfigError as error:
            self._say(str(error))
            return
        self.control = SweepControl(lambda done, total: self._loop.do(self._progress, done, total))
        self.start.disabled, self.stop.disabled = True, False
        self._progress(0, 0)
        threading.Thread(target=self._work, args=(self._setting(), axes, self.control), daemon=True).start()

    def cancel(self) -> None:
        """Stop a running sweep; what is finished is drawn."""
        if self.control is not None:
            self.control.cancel()

    def _work(self, setting: Setting, axes: dict[str, list], control: SweepControl) -> None:
        grid, message = None, ""
        try:
            grid = sweep(setting.device, setting.workload, axes, backend=setting.engine, control=control, progress=False)
        except SweepCancelled as stopped:
            grid, message = stopped.partial, str(stopped)
        except ConfigError as error:
            message = str(error)
        except Exception as error:  # told to the user, who must not lose the explorer over it
            message = f"{type(error).__name__}: {error}"
        self._loop.do(self._done, grid, message)

    def _progress(self, done: int, total: int) -> None:
        self.bar.value = done / total if total else 0
        self.count.value = f"{done} of {total}" if total else ""

    def _done(self, grid: xr.Dataset | None, message: str) -> None:
        self.start.disabled, self.stop.disabled = False, True
        try:
            if message:
                self._say(message)
            if grid is not None and bool(grid["finished"].any()):
                self.grid = grid
                self._draw()
        finally:
            self.control = None  # last: whoever waits for it finds the grid

    def _draw(self) -> None:
        if self.grid is None:
            return
        plot = multiples(self.grid, **SIZE) if self.metric.value == "cdf" else heat(self.grid, self.metric.value, **SIZE)
        plot.figure.sizing_mode = "stretch_both"
        if self.picture.children:
            self.picture.children[0].update_from_model(plot.figure)
        else:
            self.picture.children = [BokehModel(plot.figure, layout=W.Layout(width="100%", height="100%"))]
