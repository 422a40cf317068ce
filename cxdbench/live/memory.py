"""open_device(): a region of this process's memory that misses like a CXL-SSD."""
from __future__ import annotations

import ctypes
import faulthandler
import json
import mmap
import os
import threading
import weakref
from collections.abc import Sequence
from math import prod
from typing import Any, BinaryIO, Literal

import numpy as np

from cxdbench.device import PAGE_BYTES, ConfigError, Device
from cxdbench.live.binding import Calibration, LiveError, Seen, Setup, call, library, pointer
from cxdbench.live.host import blocked, choose_mode
from cxdbench.live.settings import check_options, config, refuse, setup

CALIBRATION_ROUNDS = 400
SETTLE_NS = 30_000_000_000
NAMES = {"clean_foreground": "evictions_clean_foreground", "clean_background": "evictions_clean_background",
         "dirty_foreground": "evictions_dirty_foreground", "dirty_background": "evictions_dirty_background"}
_open: weakref.WeakSet[LiveMemory] = weakref.WeakSet()


class _Region:
    """The mapping. Arrays hold it, so that after `close` they are plain memory until the last of them is gone."""

    def __init__(self, base: int, pages: int) -> None:
        self.base, self.pages, self.owner, self.released = base, pages, os.getpid(), False

    def __del__(self) -> None:
        if self.released and os.getpid() == self.owner:
            library().cxd_forget(self.base, self.pages)


def available_bytes() -> int:
    """Memory that can be had without swapping; a container's limit counts."""
    lines = dict(line.split(":", 1) for line in open("/proc/meminfo", encoding="utf-8"))
    free = int(lines["MemAvailable"].split()[0]) * 1024
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="utf-8") as most, \
                open("/sys/fs/cgroup/memory.current", encoding="utf-8") as now:
            return min(free, int(most.read()) - int(now.read()))
    except (OSError, ValueError):
        return free


def must_fit(pages: int) -> None:
    """LiveError where so many pages more would not fit in memory."""
    free = available_bytes()
    if pages * PAGE_BYTES > free:
        raise LiveError(f"{pages * PAGE_BYTES / 2**30:.1f} GiB of memory are needed and {free / 2**30:.1f} GiB are "
                        "available: lower cache_pages, wss or the arrays' size")


def calibrate(setup: Setup, rounds: int) -> dict[str, int]:
    """What a fault costs on a small device like this one, ns: entry_ns, exit_ns, raw_p50_ns, map_ns. LiveError."""
    found = Calibration()
    call("cxd_calibrate", setup, rounds, found)
    return {name: int(getattr(found, name)) for name, _ in found._fields_}


class LiveMemory:
    """An open device, as `open_device` returns it; a context manager. Any thread may touch its arrays.

    `mode` is how misses are caught. Processes made by fork do not inherit the memory: touching it there ends the
    child with a message, and each method raises LiveError there.
    """

    def __init__(self, device: Device, mode: str = "auto", compensate: bool = True, node: int | None = None,
                 capacity_pages: int | None = None) -> None:
        refuse(device)
        self._handle: int | None = None
        self.device, self._compensate = device, compensate
        self.mode, index = choose_mode(mode, device.cache_pages)
        self._setup = setup(device, index, compensate, node, capacity_pages)
        self.calibration = self._calibrate(device, self._setup)
        self._handle = pointer("cxd_open", self._setup)
        self._owner, self._next_page, self._taking = os.getpid(), 0, threading.Lock()
        self._region = _Region(library().cxd_base(self._handle), self._setup.core.capacity_pages)
        self._end = weakref.finalize(self, _close, self._handle, self._region)
        self._end.atexit = False  # a thread may still be at work on it then, and the process's end frees all
        self._apply_calibration()
        library().cxd_set_drain(self._handle, device.drain.pages > 0)
        _open.add(self)
        _keep_signals()

    def __enter__(self) -> LiveMemory:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._handle is None else f"{self.mode}, {self._next_page} pages in use"
        return f"<LiveMemory {self._setup.core.capacity_pages} pages, {state}>"

    @property
    def handle(self) -> int:
        """The library's handle. LiveError once closed or in a forked process."""
        if self._handle is None:
            raise LiveError("the device is closed")
        if os.getpid() != self._owner:
            raise LiveError("a forked process has no live device: open one in it, or start it with spawn")
        return self._handle

    def array(self, shape: int | Sequence[int], dtype: Any = "f8") -> np.ndarray:
        """Zeros on the device, C order, from a page of their own on. Each call takes further pages.

        Raises ConfigError if they do not fit in capacity_pages, LiveError if this thread blocks the signal that
        catches misses or memory is short.
        """
        if not isinstance(shape, int | np.integer | Sequence):
            raise ConfigError(f"shape is {shape!r}: must be a whole number or several")
        shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        dtype = np.dtype(dtype)
        if any(not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 0 for n in shape):
            raise ConfigError(f"shape is {shape!r}: must be whole numbers from 0 up")
        shape = tuple(int(n) for n in shape)
        if dtype.hasobject:
            raise ConfigError(f"dtype is {dtype}: Python objects cannot live on a device")
        bytes_ = prod(shape) * dtype.itemsize
        pages, room = -(-bytes_ // PAGE_BYTES), self._setup.core.capacity_pages - self._next_page
        if pages > room:
            raise ConfigError(f"shape is {shape!r} of {dtype}: needs {pages} pages, and {room} of the device's "
                              f"{self._setup.core.capacity_pages} are left")
        self._look_at_signals()
        start = self._region.base + self.take(pages) * PAGE_BYTES
        buffer = (ctypes.c_char * bytes_).from_address(start)
        buffer._region = self._region
        return np.frombuffer(buffer, dtype, count=prod(shape)).reshape(shape) if bytes_ else np.zeros(shape, dtype)

    def take(self, pages: int) -> int:
        """Back the next `pages` pages with memory; the first one's number."""
        must_fit(pages)
        with self._taking:
            first, room = self._next_page, self._setup.core.capacity_pages - self._next_page
            if pages > room:
                raise ConfigError(f"{pages} pages are needed, and {room} of the device's are left")
            call("cxd_populate", self.handle, first, pages)
            self._next_page += pages
        return first

    def _look_at_signals(self) -> None:
        library().cxd_rearm()
        if why := blocked(self.mode):
            raise LiveError(why)

    def counters(self) -> dict[str, int]:
        """The model's counters by the model's names since the last `reset_counters`, and what only live has:
        late, write_notify, spurious, slept, unmaps, unmap_ns, background, background_late_ns.

        Raises LiveError if the device broke or its background thread died.
        """
        call("cxd_health", self.handle)
        counters = library().cxd_counters(library().cxd_core_of(self.handle)).contents
        seen = Seen()
        library().cxd_seen(self.handle, seen)
        found = {NAMES.get(name, name): int(getattr(counters, name)) for name, _ in counters._fields_}
        return found | {name: int(getattr(seen, name)) for name, _ in seen._fields_}

    def reset_counters(self) -> None:
        """All counters but `resident` to 0."""
        library().cxd_zero(self.handle)

    def settle(self) -> None:
        """Wait until no prefetch and no background write-back is unfinished."""
        if library().cxd_settle(self.handle, SETTLE_NS):
            call("cxd_health", self.handle)
            raise LiveError("the background did not come to rest within 30 s")

    def change(self, **changes: Any) -> None:
        """Change NAND times, prefetch, drain or semantics while open, by dotted names as in Device.with_; what waits
        cost is measured again if the configured latency moved. ConfigError for what needs another device."""
        device = self.device.with_(**changes) if changes else self.device
        refuse(device)
        new = Setup.from_buffer_copy(self._setup)
        new.core = config(device, new.core.capacity_pages)
        moved = device.configured_ns() != self.device.configured_ns()
        calibration = self._calibrate(device, new) if moved else self.calibration
        try:
            call("cxd_reconfigure", self.handle, new.core)
        except LiveError as error:
            raise ConfigError(f"{', '.join(changes)}: {error}") from None
        self.device, self._setup, self.calibration = device, new, calibration
        self._apply_calibration()
        library().cxd_set_drain(self.handle, device.drain.pages > 0)

    def _calibrate(self, device: Device, setup: Setup) -> dict[str, int]:
        if not self._compensate:
            return dict.fromkeys((name for name, _ in Calibration._fields_), 0)
        rounds = max(25, min(CALIBRATION_ROUNDS, int(5e7 / max(1.0, device.configured_ns()))))
        return calibrate(setup, rounds)

    def _apply_calibration(self) -> None:
        library().cxd_set_compensation(self.handle, self.calibration["entry_ns"], self.calibration["exit_ns"])

    def _span(self, array: np.ndarray) -> tuple[int, int]:
        """(first byte, bytes) of an array in the region."""
        if array.size == 0:
            return 0, 0
        start, end = np.lib.array_utils.byte_bounds(array)
        first = start - self._region.base
        if not 0 <= first <= end - self._region.base <= self._region.pages * PAGE_BYTES:
            raise ConfigError("array does not lie on this device: make it with mem.array")
        if not array.flags.c_contiguous:
            raise ConfigError("array is not contiguous: copy it first")
        return first, end - start

    def alias(self, array: np.ndarray, write: bool = False) -> memoryview:
        """The same bytes at an address that never faults, for system calls (which fail with EFAULT on a page that is
        not cached). Each page is first accessed as a load, or with write=True a store, would. Valid until `close`."""
        first, count = self._span(array)
        handle = self.handle
        if count:
            library().cxd_touch(handle, first // PAGE_BYTES, (first + count - 1) // PAGE_BYTES - first // PAGE_BYTES + 1, write)
        view = memoryview((ctypes.c_char * count).from_address(library().cxd_alias(handle) + first)).cast("B")
        return view if write else view.toreadonly()

    def readinto(self, file: BinaryIO, array: np.ndarray) -> int:
        """Fill an array from an unbuffered or buffered binary file, up to its end; the bytes read."""
        view, done = self.alias(array, write=True), 0
        while done < len(view) and (got := file.readinto(view[done:])):
            done += got
        return done

    def write(self, file: BinaryIO, array: np.ndarray) -> int:
        """Write an array's bytes to a binary file; the bytes written."""
        view, done = self.alias(array), 0
        while done < len(view):
            done += file.write(view[done:])
        return done

    def describe(self) -> str:
        """How misses are caught and what one costs here, as JSON."""
        return json.dumps({"mode": self.mode, "compensated": bool(self._compensate), **self.calibration})

    def close(self) -> None:
        """Give everything back. Arrays that still exist become plain memory. Raises LiveError if the device had
        broken meanwhile; a second call does nothing."""
        if self._handle is None:
            return
        handle, self._handle = self.handle, None
        _open.discard(self)
        self._end.detach()
        _close(handle, self._region, loud=True)


def _close(handle: int, region: _Region, loud: bool = False) -> None:
    if os.getpid() != region.owner:
        return
    try:
        call("cxd_close", handle)
    except LiveError:
        if loud:
            raise
    finally:
        region.released = True


def _keep_signals() -> None:
    """faulthandler, if enabled while a device is open, would take a miss for a crash: ours goes before it again."""
    if getattr(faulthandler.enable, "_cxdbench", False):
        return
    original = faulthandler.enable

    def enable(*arguments: Any, **options: Any) -> None:
        original(*arguments, **options)
        library().cxd_rearm()

    enable._cxdbench = True
    enable.__doc__ = original.__doc__
    faulthandler.enable = enable


def open_device(device: Device, backend: Literal["live"] = "live", *, mode: str = "auto", compensate: bool = True,
                node: int | None = None) -> LiveMemory:
    """Open a device whose memory is used like any other: `mem.array(shape, dtype)` is a NumPy array.

    mode: "auto" takes the first that works here of sigbus, guard, mprotect, thread (`cxdbench doctor` lists them).
    compensate: take what a fault itself costs out of the modelled wait. node: NUMA node for the pages. Raises
    ConfigError for settings that real faults cannot honour, LiveError for what this machine lacks.
    """
    if not isinstance(device, Device):
        raise ConfigError(f"device is {type(device).__name__}: a cxdbench.Device is needed")
    if backend != "live":
        raise ConfigError(f"backend is {backend!r}: open_device has 'live'")
    check_options(mode=mode, compensate=compensate, **({} if node is None else {"node": node}))
    assert mmap.PAGESIZE == PAGE_BYTES, "libcxd is for pages of 4 KiB"
    return LiveMemory(device, mode, compensate, node)
