"""The explorer's state, without a widget: where it stands, what is pinned, what was before, what does not fit."""
from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import Any

from cxdbench.device import ConfigError
from cxdbench.explorer.fields import BY_NAME, read
from cxdbench.explorer.setting import Setting

FORMAT = "cxdbench-explorer-1"
REPEATS = 5
ONE_STEP_S = 1.0    # moves of one control closer together than this are one step to undo
MAX_STEPS = 200
MAX_PINS = 5        # as many colours as are told apart, less the one for the model beside another engine
BESIDE = MAX_PINS   # that colour


@dataclass(frozen=True)
class Pin:
    """A setting whose curve stays. colour: index into the palette."""

    name: str
    setting: Setting
    colour: int


@dataclass(frozen=True)
class View:
    """All that undo brings back. repeats: runs with as many seeds, from the workload's on."""

    setting: Setting
    pins: tuple[Pin, ...] = ()
    repeats: int = 1


def opening() -> View:
    """The paper's random chase at 8 threads and 2.5x on cxdvirt, the device itself and Cylon pinned."""
    pins = tuple(Pin(name, Setting.opening(name), i) for i, name in enumerate(("ideal", "cylon")))
    return View(Setting.opening("cxdvirt"), pins)


class State:
    """What the user has set. `view` always fits and runs; `asked` holds the controls' values that do not fit yet,
    and `error` why."""

    def __init__(self, view: View | None = None) -> None:
        self.start = view or opening()
        self.view = self.start
        self.asked: dict[str, Any] = {}
        self.error = ""
        self._steps: list[View] = []
        self._last: tuple[str, float] = ("", 0.0)

    @property
    def setting(self) -> Setting:
        return self.view.setting

    def value(self, name: str) -> Any:
        """What the control of this name shows: what was asked for, whether or not it fits."""
        if name in self.asked:
            return self.asked[name]
        if name == "engine":
            return self.setting.engine
        return read(BY_NAME[name], self.setting.preset, self.setting.device, self.setting.workload)

    def change(self, name: str, value: Any, now: float | None = None) -> bool:
        """Set one control; True if the setting is another now. What does not fit waits, with `error`, for the next."""
        now = time.monotonic() if now is None else now
        if value == self.value(name):
            return False
        self.asked[name] = value
        try:
            setting = self.setting.with_(self.asked)
        except ConfigError as error:
            self.error = str(error)
            return False
        self.asked, self.error = {}, ""
        same_move = self._last[0] == name and now - self._last[1] < ONE_STEP_S
        self._last = (name, now)
        if setting == self.setting:
            return False
        self._go(replace(self.view, setting=setting, repeats=1), remember=not same_move)
        return True

    def pin(self) -> Pin | None:
        """Keep the present curve, named by what differs; None where it is pinned already or no colour is left."""
        taken = {pin.colour for pin in self.view.pins}
        free = [i for i in range(MAX_PINS) if i not in taken]
        if any(pin.setting == self.setting for pin in self.view.pins):
            self.error = f"{self.setting.name()} is pinned already"
            return None
        if not free:
            self.error = f"{MAX_PINS} curves are pinned, which is as many as colours are told apart: unpin one first"
            return None
        pin = Pin(self.setting.name(), self.setting, free[0])
        self._go(replace(self.view, pins=(*self.view.pins, pin)))
        return pin

    def unpin(self, pin: Pin) -> None:
        """Let a pinned curve go."""
        self._go(replace(self.view, pins=tuple(p for p in self.view.pins if p != pin)))

    def repeat(self) -> None:
        """Run the present setting with REPEATS seeds, for an interval."""
        self._go(replace(self.view, repeats=REPEATS))

    def undo(self) -> bool:
        """Back to before the last step; what does not fit is forgotten first. False where there is nothing to undo."""
        self.error = ""
        if self.asked:
            self.asked = {}
            return True
        if not self._steps:
            return False
        self.view, self._last = self._steps.pop(), ("", 0.0)
        return True

    def reset(self) -> None:
        """Back to how it opened; this too can be undone."""
        self.asked, self.error = {}, ""
        self._go(self.start)

    def _go(self, view: View, remember: bool = True) -> None:
        self.error = ""
        if view == self.view:
            return
        if remember:
            self._steps = [*self._steps, self.view][-MAX_STEPS:]
        self.view = view

    def to_dict(self) -> dict[str, Any]:
        """The state as plain data; `from_dict` and `cxd.explore(state=…)` read it."""
        return {"format": FORMAT, "setting": self.setting.to_dict(), "repeats": self.view.repeats,
                "pins": [{"name": p.name, "colour": p.colour, "setting": p.setting.to_dict()} for p in self.view.pins]}

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, data: Any) -> State:
        """Read what `to_dict` wrote; ConfigError names what does not fit."""
        try:
            return cls._read(data)
        except (TypeError, AttributeError, KeyError, OverflowError) as error:
            raise ConfigError(f"state: not what the explorer exported ({type(error).__name__}: {error})") from None

    @classmethod
    def _read(cls, data: Any) -> State:
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ConfigError(f"state: must be what the explorer exported, of format {FORMAT!r}")
        pins = data.get("pins", [])
        if not isinstance(pins, list) or len(pins) > MAX_PINS:
            raise ConfigError(f"state: pins must be a list of at most {MAX_PINS}")
        kept = []
        for i, pin in enumerate(pins):
            if not isinstance(pin, dict):
                raise ConfigError("state: a pin must have name, colour and setting")
            setting, colour = Setting.from_dict(pin.get("setting")), pin.get("colour", i)
            if isinstance(colour, bool) or not isinstance(colour, int):
                raise ConfigError(f"state: a pin's colour is {colour!r}: must be a whole number")
            kept.append(Pin(str(pin.get("name") or setting.name()), setting, colour % MAX_PINS))
        repeats = data.get("repeats", 1)
        if isinstance(repeats, bool) or repeats not in (1, REPEATS):
            raise ConfigError(f"state: repeats is {repeats!r}: allowed: 1, {REPEATS}")
        return cls(View(Setting.from_dict(data.get("setting")), tuple(kept), repeats))
