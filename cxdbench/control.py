"""Watching and stopping a run: progress and cancel for long runs, and Ctrl-C that a kernel without the GIL obeys."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Cancelled(RuntimeError):
    """The run was stopped before its end; it left no result."""


class Control:
    """Shared with a running kernel. `cells`, int64 (2,): accesses finished in this phase, and cancel if not 0."""

    def __init__(self) -> None:
        self.cells = np.zeros(2, np.int64)
        self.phase, self.total = "", 0

    def begin(self, phase: str, total: int) -> None:
        """A phase of `total` accesses begins."""
        self.phase, self.total = phase, int(total)
        self.cells[0] = 0

    def cancel(self) -> None:
        """Ask the run to stop; it raises Cancelled, within milliseconds."""
        self.cells[1] = 1

    @property
    def cancelled(self) -> bool:
        return bool(self.cells[1])

    @property
    def progress(self) -> float:
        """Share of the present phase that is done, 0 to 1."""
        return float(min(1.0, self.cells[0] / self.total)) if self.total else 0.0


def interruptible(work: Callable[[], T], cancel: Callable[[], None]) -> T:
    """Do `work`; on Ctrl-C call `cancel`, wait for it to stop, and raise KeyboardInterrupt.

    Python delivers Ctrl-C to the main thread between bytecodes only, so there `work` runs in another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    outcome: list = []

    def target() -> None:
        try:
            outcome.append((True, work()))
        except BaseException as error:  # handed to the caller below
            outcome.append((False, error))

    worker = threading.Thread(target=target, name="cxdbench-run", daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(0.2)
    except KeyboardInterrupt:
        cancel()
        worker.join()
        raise
    done, value = outcome[0]
    if done:
        return value
    raise value
