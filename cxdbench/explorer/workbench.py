"""The explorer put together: panels around one state and one runner."""
from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import ipywidgets as W
from IPython.display import display

from cxdbench.explorer import numbers, style
from cxdbench.explorer.bar import Bar
from cxdbench.explorer.controls import Controls
from cxdbench.explorer.curves import Curves
from cxdbench.explorer.exports import export
from cxdbench.explorer.foot import Foot
from cxdbench.explorer.keeping import bundle
from cxdbench.explorer.loop import MainLoop
from cxdbench.explorer.readout import Readout
from cxdbench.explorer.runner import Outcome, Runner, execute
from cxdbench.explorer.setting import Setting
from cxdbench.explorer.state import BESIDE, Pin, State
from cxdbench.explorer.sweeping import Sweeping
from cxdbench.plot.base import load_bokehjs
from cxdbench.plot.shape import Curve

log = logging.getLogger(__name__)
POLL_S = 0.2


class Workbench:
    """The explorer. Shows itself at a notebook cell's end. All of it is touched in the main loop only."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.loop = MainLoop()
        self.kept: dict[str, Any] = {}
        self._kept: Any = None
        self.curves_by_setting: dict[Setting, Curve] = {
            pin.setting: execute(pin.setting).curve for pin in state.view.pins}
        self.outcome = execute(state.setting, state.view.repeats)
        self.table = numbers.table(self.outcome)
        self.runner = Runner(self._ran, lambda message: self.loop.do(self._failed, message))
        self.foot = Foot()
        self.bar = Bar(self._later(self.act), self._later(lambda e: self.change("engine", e)), self._later(self.export))
        self.controls = Controls(state, self._later(self.change))
        self.sweeping = Sweeping(self.loop, lambda: self.state.setting, lambda text: self.foot.say(text, wrong=True))
        self.curves = Curves(self.outcome, self._pinned(), {"sweep": ("sweep", self.sweeping.widget)},
                             self._later(lambda tab: self.curves.choose(tab)))
        self.readout = Readout(self._later(self.unpin))
        main = W.HBox([self.controls.widget, self.curves.widget, self.readout.widget])
        main.add_class("cxd-main")
        self.widget = W.VBox([W.HTML(style.CSS), self.bar.widget, main, self.foot.widget])
        self.widget.add_class("cxd")
        self.readout.show_pins(state.view.pins)
        self._describe(self.outcome, self.table, numbers.identities(self.outcome.result))

    def _ipython_display_(self) -> None:
        load_bokehjs(again=True)
        display(self.widget)
        # what is kept replaces this empty output of the same cell, and is saved with it
        self._kept = display({"text/plain": ""}, raw=True, display_id=True)

    def _later(self, work: Callable[..., None]) -> Callable[..., None]:
        """A widget's callback that does its work in the main loop and lets no error out of it."""
        def safe(*args: Any) -> None:
            try:
                work(*args)
            except Exception as error:
                log.exception("explorer")
                self.foot.say(f"{type(error).__name__}: {error}", wrong=True)
        return lambda *args: self.loop.do(safe, *args)

    def change(self, name: str, value: Any) -> None:
        """A control was moved."""
        if self.state.change(name, value):
            self._run()
        self._reflect()

    def act(self, action: str) -> None:
        """A button of the bar was pressed."""
        getattr(self, action)()

    def pin(self) -> None:
        pin = self.state.pin()
        if pin and self.outcome.setting == pin.setting:
            self.curves_by_setting[pin.setting] = self.outcome.curve.named(pin.name)
        self._redraw()

    def unpin(self, pin: Pin) -> None:
        self.state.unpin(pin)
        self._redraw()

    def repeat(self) -> None:
        self.state.repeat()
        self._run()
        self._reflect()

    def undo(self) -> None:
        if self.state.undo():
            self._run()
        self._redraw()

    def reset(self) -> None:
        self.state.reset()
        self._run()
        self._redraw()

    def export(self, kind: str) -> None:
        curves = [self.outcome.curve, *(curve for curve, _ in self._pinned())]
        path = export(kind, self.state, self.outcome, curves, self.table)
        self.foot.say(f"wrote {path}")

    def keep(self) -> None:
        """Write what is seen into the cell's saved output."""
        self.kept = bundle(self.state, self.table, self.outcome.curve, self._pinned())
        self.curves.freeze()
        if self._kept is not None:
            self._kept.update(self.kept, raw=True)
        self.foot.say("kept: save the notebook, and what is seen now goes with it")

    def settle(self, timeout_s: float = 60) -> bool:
        """Wait, outside a kernel, until all that was asked has been drawn."""
        return self.runner.settle(timeout_s)

    def close(self) -> None:
        """End the workers and the widgets."""
        self.sweeping.cancel()
        self.runner.close()
        self.widget.close()

    def _pinned(self) -> list[tuple[Curve, int]]:
        beside = [(self.outcome.beside, BESIDE)] if self.outcome.beside else []
        return [*beside, *((self.curves_by_setting[pin.setting].named(pin.name), pin.colour)
                           for pin in self.state.view.pins if pin.setting in self.curves_by_setting)]

    def _run(self) -> None:
        if (self.outcome.setting, self.outcome.repeats) == (self.state.setting, self.state.view.repeats):
            self.runner.cancel()
            return
        self.runner.ask(self.state.setting, self.state.view.repeats)
        self.loop.later(POLL_S, self._poll)

    def _poll(self) -> None:
        now = self.runner.progress
        if now:
            self.foot.say(f"{now[0] or 'preparing'}: {100 * now[1]:.0f} %")
            self.loop.later(POLL_S, self._poll)

    def _ran(self, outcome: Outcome) -> None:
        self.loop.do(self._draw, outcome)
        if not self.runner.overtaken:
            self.loop.do(self._describe, outcome, numbers.table(outcome), numbers.identities(outcome.result))

    def _draw(self, outcome: Outcome) -> None:
        self.outcome = outcome
        for pin in self.state.view.pins:
            if pin.setting == outcome.setting:
                self.curves_by_setting.setdefault(pin.setting, outcome.curve)
        self.curves.show(outcome, self._pinned())

    def _describe(self, outcome: Outcome, table: numbers.Table, identities: str) -> None:
        self.table = table
        self.readout.show(table)
        self.foot.facts(numbers.foot(outcome) | {"identities": identities}, numbers.fitted(outcome))
        self._reflect()

    def _failed(self, message: str) -> None:
        self.foot.say(message, wrong=True)

    def _redraw(self) -> None:
        self.curves.show(self.outcome, self._pinned())
        self.readout.show_pins(self.state.view.pins)
        self._reflect()

    def _reflect(self) -> None:
        """Put controls and message where the state is."""
        self.controls.show(self.state)
        self.bar.show(self.state.value("engine"))
        warnings = "; ".join(numbers.warnings(self.outcome))
        self.foot.say(self.state.error or warnings, wrong=bool(self.state.error))
