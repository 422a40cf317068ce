"""Foot: which engine, at what scale, how it was run, whether its numbers add up, and what does not fit."""
from __future__ import annotations

from html import escape

import ipywidgets as W


class Foot:
    """Two lines under the panels: the run, and a message where there is one."""

    def __init__(self) -> None:
        self.html = W.HTML()
        self.html.add_class("cxd-foot")
        self.widget = self.html
        self._facts: dict[str, str] = {}
        self._fitted: dict[str, str] = {}
        self._message, self._wrong = "", False

    def facts(self, facts: dict[str, str], fitted: dict[str, str]) -> None:
        """What to say of the run."""
        self._facts, self._fitted = facts, fitted
        self._draw()

    def say(self, message: str, wrong: bool = False) -> None:
        """A message in place of the fitted constants; "" takes it away."""
        if (message, wrong) != (self._message, self._wrong):
            self._message, self._wrong = message, wrong
            self._draw()

    @property
    def message(self) -> str:
        return self._message

    def _draw(self) -> None:
        facts = " · ".join(f"{escape(name)} <b>{escape(text)}</b>" for name, text in self._facts.items())
        if self._message:
            second = f"<span class='{'cxd-wrong' if self._wrong else ''}'>{escape(self._message)}</span>"
        else:
            second = "fitted constants in use: " + (", ".join(
                f"<span title='{escape(why)}'><b>{escape(name)}</b></span>" for name, why in self._fitted.items())
                or "<b>none</b>")
        self.html.value = f"<div>{facts}</div><div>{second}</div>"
