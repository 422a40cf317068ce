"""The one thread in which the explorer's state and widgets are touched.

ipykernel hands widget messages to subshell threads, the runner has its own, and neither traitlets nor a Bokeh document
may be changed from two. Everything is therefore passed on to the kernel's own loop.
"""
from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from IPython import get_ipython


def kernel_loop() -> asyncio.AbstractEventLoop | None:
    """The running kernel's loop; None outside a kernel."""
    io_loop = getattr(getattr(get_ipython(), "kernel", None), "io_loop", None)
    return getattr(io_loop, "asyncio_loop", None)


class MainLoop:
    """`do` and `later` from any thread. Without a kernel: at once in the caller's thread, one caller at a time."""

    def __init__(self) -> None:
        self._loop = kernel_loop()
        self._lock = threading.RLock()

    def do(self, work: Callable[..., None], *args) -> None:
        """Call work(*args) soon."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(work, *args)
        else:
            with self._lock:
                work(*args)

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        """Call work() after a while."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.call_later, seconds, work)
        else:
            timer = threading.Timer(seconds, self.do, (work,))
            timer.daemon = True
            timer.start()
