"""Runs behind the explorer: one worker thread, the newest request wins, stale runs are cut short."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import xarray as xr

from cxdbench.control import Cancelled, Control
from cxdbench.device import ConfigError
from cxdbench.explorer.setting import Setting
from cxdbench.plot.shape import Curve, latency_curve
from cxdbench.run import run

# A run that a newer request has made stale may still end if that is soon: under a slider that does not rest, the
# curve then follows it, and does not wait for the hand to stop.
PATIENCE_S = 0.25


@dataclass(frozen=True)
class Outcome:
    """A finished run: what was asked, its result, the curve to draw, and how long it took. beside: the model's curve
    at the same setting, where another engine ran."""

    setting: Setting
    repeats: int
    result: xr.Dataset = field(compare=False)
    curve: Curve = field(compare=False)
    seconds: float = field(compare=False)
    beside: Curve | None = field(compare=False, default=None)


def execute(setting: Setting, repeats: int = 1, control: Control | None = None) -> Outcome:
    """Run a setting. Raises what `cxdbench.run` raises."""
    began = time.perf_counter()
    result = run(setting.device, setting.workload, setting.engine, seeds=repeats if repeats > 1 else None,
                 control=control)
    seconds = time.perf_counter() - began
    beside = None
    if setting.engine != "model":
        model = run(setting.device, setting.workload, "model", control=control)
        beside = latency_curve(model, "the model")
    return Outcome(setting, repeats, result, latency_curve(result, setting.name()), seconds, beside)


class Runner:
    """`ask` from any thread; `done(outcome)` and `failed(message)` are called in the worker's, for the newest only
    unless a stale run ended in time."""

    def __init__(self, done: Callable[[Outcome], None], failed: Callable[[str], None]) -> None:
        self._done, self._failed = done, failed
        self._changed = threading.Condition()
        self._next: tuple[Setting, int] | None = None
        self._control: Control | None = None
        self._began, self._overtaken = 0.0, False
        self._closed = False
        self._thread: threading.Thread | None = None

    def ask(self, setting: Setting, repeats: int = 1) -> None:
        """Run this next, in place of anything not yet begun."""
        with self._changed:
            self._next = (setting, repeats)
            if self._control is not None and not self._overtaken:
                self._overtaken = True
                timer = threading.Timer(max(0.0, self._began + PATIENCE_S - time.monotonic()), self._control.cancel)
                timer.daemon = True
                timer.start()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="cxdbench-explorer", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    @property
    def busy(self) -> bool:
        return self._control is not None or self._next is not None

    @property
    def overtaken(self) -> bool:
        """Whether something newer is asked than the run at hand."""
        return self._next is not None

    @property
    def progress(self) -> tuple[str, float] | None:
        """(phase, share of it done) of the present run, or None."""
        control = self._control
        return (control.phase, control.progress) if control is not None else None

    def settle(self, timeout_s: float = 60) -> bool:
        """Wait until nothing is asked or running."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.busy, timeout_s)

    def cancel(self) -> None:
        """Stop the present run and forget what was asked."""
        with self._changed:
            self._next = None
            if self._control is not None:
                self._control.cancel()

    def close(self) -> None:
        """End the worker."""
        self.cancel()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._next is not None or self._closed)
                if self._closed:
                    return
                (setting, repeats), self._next = self._next, None
                self._control = control = Control()
                self._began, self._overtaken = time.monotonic(), False
            try:
                self._done(execute(setting, repeats, control))
            except Cancelled:
                pass
            except ConfigError as error:
                self._failed(str(error))
            except Exception as error:  # told to the user, who must not lose the explorer over it
                self._failed(f"{type(error).__name__}: {error}")
            finally:
                with self._changed:
                    self._control = None
                    self._changed.notify_all()
