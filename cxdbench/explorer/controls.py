"""Left: a control for each field, the seldom ones folded away below."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as W

from cxdbench.explorer.fields import FIELDS, FOLDS, Field, origin
from cxdbench.explorer.state import State


def _label(field: Field) -> str:
    return f"{field.label}, {field.unit}" if field.unit else field.label


def make(field: Field, value: Any) -> W.Widget:
    """The widget of one field."""
    common = {"description": _label(field), "layout": W.Layout(width="100%")}
    if field.kind == "choice":
        return W.Dropdown(options=_options(field, value), value=value, **common)
    if field.kind == "number":
        return W.BoundedIntText(value=value, min=int(field.low), max=int(field.high), **common)
    if field.kind == "whole":
        return W.IntSlider(value=value, min=int(min(field.low, value)), max=int(max(field.high, value)),
                           step=int(field.step), **common)
    if field.kind == "log":
        return W.SelectionSlider(options=_options(field, value), value=value, **common)
    return W.FloatSlider(value=value, min=min(field.low, value), max=max(field.high, value), step=field.step,
                         readout_format=".3g", **common)


def _options(field: Field, value: Any) -> list[tuple[str, Any]]:
    """The field's choices, and the present value among them where it is none of them."""
    known = list(field.choices)
    if value not in [choice for _, choice in known]:
        known.append((str(value), value))
        if field.kind == "log":
            known.sort(key=lambda choice: choice[1])
    return known


def chosen(field: Field, value: Any) -> Any:
    """What a widget's value means: a float slider's without the noise of its steps."""
    return round(value, 6) if field.kind == "slider" else value


class Controls:
    """`changed(name, value)` is called when the user moves one."""

    def __init__(self, state: State, changed: Callable[[str, Any], None]) -> None:
        self._changed = changed
        self._showing = False
        self.widgets = {field.name: make(field, state.value(field.name)) for field in FIELDS}
        for field in FIELDS:
            self.widgets[field.name].observe(lambda change, f=field: self._moved(f, change["new"]), "value")
        self.folds = {fold: W.Button(description="", tooltip=f"Show or hide: {text}") for fold, text in FOLDS.items()}
        self.boxes = {fold: W.VBox([self.widgets[f.name] for f in FIELDS if f.fold == fold]) for fold in FOLDS}
        for fold, button in self.folds.items():
            button.add_class("cxd-fold")
            button.on_click(lambda _, fold=fold: self.open(None if self.opened == fold else fold))
        self.opened: str | None = None
        self.open(None)
        below = [widget for fold in FOLDS for widget in (self.folds[fold], self.boxes[fold])]
        self.widget = W.VBox([*(self.widgets[f.name] for f in FIELDS if not f.fold), *below])
        self.widget.add_class("cxd-left")
        self.show(state)

    def open(self, fold: str | None) -> None:
        """Unfold one group and fold the others, so that all fits."""
        self.opened = fold
        for name, box in self.boxes.items():
            box.layout.display = None if name == fold else "none"
            self.folds[name].description = f"{'▾' if name == fold else '▸'} {FOLDS[name]}"

    def _moved(self, field: Field, value: Any) -> None:
        if not self._showing:
            self._changed(field.name, chosen(field, value))

    def show(self, state: State) -> None:
        """Put every control where the state has it."""
        self._showing = True
        try:
            for field in FIELDS:
                self._put(field, self.widgets[field.name], state.value(field.name))
                tooltip = f"{field.what} From {origin(field, state.setting.preset, state.setting.device)}"
                if self.widgets[field.name].tooltip != tooltip:
                    self.widgets[field.name].tooltip = tooltip
        finally:
            self._showing = False

    @staticmethod
    def _put(field: Field, widget: W.Widget, value: Any) -> None:
        if chosen(field, widget.value) == value:
            return
        if field.kind in ("choice", "log"):
            if value not in [choice for _, choice in widget.options]:
                widget.options = _options(field, value)
        elif field.kind != "number":
            widget.min, widget.max = min(widget.min, value), max(widget.max, value)
        widget.value = value
