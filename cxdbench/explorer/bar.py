"""Top: the engine, and what is done with a curve: pin, repeat, undo, reset, export, keep."""
from __future__ import annotations

from collections.abc import Callable

import ipywidgets as W

from cxdbench.explorer.exports import EXPORTS
from cxdbench.explorer.state import REPEATS
from cxdbench.run import BACKENDS, unavailable

ACTIONS = {
    "pin": ("Pin", "Keep this curve behind the next ones"),
    "repeat": (f"{REPEATS} seeds", f"Repeat with {REPEATS} seeds: the interval of each number, a band on the curve"),
    "undo": ("Undo", "Back one step"),
    "reset": ("Reset", "Back to how it opened"),
    "keep": ("Keep in notebook", "Write state, curves, numbers and a picture into this cell's saved output"),
}


def engine_text(engine: str) -> str:
    """The engine as the menu has it: those not here with their reason."""
    why = unavailable(engine)
    return f"{engine}: {why}" if why else engine


class Bar:
    """`act(name)` for the buttons, `engine(name)` for the menu, `export(kind)` for the exports."""

    def __init__(self, act: Callable[[str], None], engine: Callable[[str], None], export: Callable[[str], None]) -> None:
        self._showing = False
        self.engine = W.Dropdown(options=[(engine_text(e), e) for e in BACKENDS], value="model", description="engine",
                                 tooltip="; ".join(map(engine_text, BACKENDS)), layout=W.Layout(width="178px"))
        self.engine.add_class("cxd-engine")
        self.engine.observe(lambda change: None if self._showing else engine(change["new"]), "value")
        self.buttons = {}
        for name, (text, tooltip) in ACTIONS.items():
            self.buttons[name] = W.Button(description=text, tooltip=tooltip)
            self.buttons[name].on_click(lambda _, name=name: act(name))
        self.export = W.Dropdown(options=[("Export …", ""), *((text, kind) for kind, text in EXPORTS.items())], value="",
                                 tooltip="Write a file beside the notebook", layout=W.Layout(width="130px"))
        self.export.observe(lambda change: self._exported(change["new"], export), "value")
        buttons = [self.buttons[name] for name in ("pin", "repeat", "undo", "reset")]
        self.widget = W.HBox([self.engine, *buttons, self.export, self.buttons["keep"]])
        self.widget.add_class("cxd-bar")

    def _exported(self, kind: str, export: Callable[[str], None]) -> None:
        if kind:
            export(kind)
            self.export.value = ""

    def show(self, engine: str) -> None:
        """Put the menu where the state has it."""
        self._showing = True
        try:
            self.engine.value = engine
        finally:
            self._showing = False
