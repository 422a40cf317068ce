"""What a wait, a miss and an unmapping cost on this host: short measurements, the times in ns."""
from __future__ import annotations

import os
import threading
import time
from statistics import median

from cxdbench.device import Device
from cxdbench.live.binding import MODES, library
from cxdbench.live.engine import noise_floor
from cxdbench.live.memory import LiveMemory, calibrate
from cxdbench.live.settings import cores, setup

WAIT_NS = 6200           # the configured miss of the published runs
CALIBRATION_ROUNDS = 1000
SHOOTDOWN_ROUNDS = 9     # of either kind, taking turns
SPIN_NS = 500_000        # a busy thread looks that often whether it is to end
QUICK = Device(cache_pages=128, capacity_pages=1024,
               nand={"read_us": 1, "program_us": 2, "erase_us": 5, "transfer_us": 1, "channels": 2, "ways": 2})


def waits() -> dict[str, int]:
    """How late a bare wait of WAIT_NS ends, ns, by percentile."""
    return noise_floor(WAIT_NS)


def cycles_per_ns() -> float:
    return float(library().cxd_cycles_per_ns())


def miss(mode: str) -> dict[str, int]:
    """Medians, ns, of what a miss in this mode adds to the modelled time: total_ns in all, with nothing taken off for
    it; entry_ns from the access to the handler; exit_ns from the handler's end to the access's, as compensation has it;
    modelled_ns is the configured time. Raises LiveError."""
    device = Device.named("cxdvirt").scaled(1024)
    found = calibrate(setup(device, MODES.index(mode), True, None), CALIBRATION_ROUNDS)
    return {"modelled_ns": round(device.configured_ns()), "total_ns": found["raw_p50_ns"],
            "entry_ns": found["entry_ns"], "exit_ns": found["exit_ns"]}


def shootdown(mode: str) -> dict[str, float] | None:
    """Time to unmap one page, ns: the median of SHOOTDOWN_ROUNDS means over some 900 each, by a thread pinned to one
    core while no other thread of this process runs (alone_ns), and while one spins on another core (beside_ns), which
    the kernel must interrupt to flush its TLB. busy_share: of the time, how much that thread was given its core.
    None on one core. Raises LiveError."""
    if cores() < 2:
        return None
    here, there = sorted(os.sched_getaffinity(0))[:2]
    with LiveMemory(QUICK, mode, compensate=False) as memory:  # its own thread is made before this one is pinned
        memory.take(QUICK.capacity_pages)
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {here})
        try:
            _unmap_ns(memory)
            alone, beside, shares = [], [], []
            for _ in range(SHOOTDOWN_ROUNDS):
                alone.append(_unmap_ns(memory))
                with _Busy(there) as busy:
                    beside.append(_unmap_ns(memory))
                shares.append(busy.share)
        finally:
            os.sched_setaffinity(0, before)
    return {"alone_ns": round(median(alone), 1), "beside_ns": round(median(beside), 1),
            "busy_share": round(median(shares), 3)}


def _unmap_ns(memory: LiveMemory) -> float:
    """One pass over all pages, most of which evict another: the mean time of an unmapping, ns."""
    memory.reset_counters()
    library().cxd_touch(memory.handle, 0, QUICK.capacity_pages, 0)
    counters = memory.counters()
    return counters["unmap_ns"] / max(1, counters["unmaps"])


class _Busy:
    """A thread of this process that spins on one core, without Python's lock, while the block runs."""

    def __init__(self, cpu: int) -> None:
        self.cpu, self.share = cpu, 0.0
        self._runs, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._spin, daemon=True)

    def _spin(self) -> None:
        late = (library().cxd_noise.argtypes[2]._type_ * 1)()
        try:
            os.sched_setaffinity(0, {self.cpu})
        finally:
            self._runs.set()
        began, worked = time.monotonic(), time.thread_time()
        while not self._end.is_set():
            library().cxd_noise(SPIN_NS, 1, late)
        self.share = min(1.0, (time.thread_time() - worked) / max(1e-9, time.monotonic() - began))

    def __enter__(self) -> _Busy:
        self._thread.start()
        self._runs.wait()
        return self

    def __exit__(self, *failure: object) -> None:
        self._end.set()
        self._thread.join()
