"""The measured workloads in C: the model's own addresses (`model.inputs`) as phases that real threads run."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

import numpy as np

from cxdbench.bins import N_BINS
from cxdbench.control import Cancelled, Control
from cxdbench.live.binding import ERROR_BYTES, N_STAGES, WINDOWS, LiveError, Phase, Stream, library
from cxdbench.live.settings import cores
from cxdbench.model.engine import stream_seed
from cxdbench.model.inputs import Inputs
from cxdbench.workload import Workload

UNPINNED = 2**64 - 1
ROWS = {"latency": 3, "stage": N_STAGES, "excess": 2, "residual": 2}


class Walk:
    """The threads of one run, phase after phase. device: the library's handle, or None for plain memory at `base`."""

    def __init__(self, inputs: Inputs, workload: Workload, device: int | None, base: int | None) -> None:
        self.inputs, self.workload, self.device, self.base = inputs, workload, device, base
        self.threads = inputs.threads
        cpus = sorted(os.sched_getaffinity(0))
        self.streams = (Stream * self.threads)()
        for t, stream in enumerate(self.streams):
            stream.rng_address, stream.rng_write = (stream_seed(workload.seed, t, k) for k in (0, 1))
            # with fewer cores than threads the kernel places them better than a fixed share would
            stream.cpu = cpus[t] if self.threads <= len(cpus) else UNPINNED
        self.rows = {name: np.zeros((self.threads, rows, N_BINS), np.uint64) for name, rows in ROWS.items()}
        self.struct = Phase(
            threads=self.threads, node_bytes=getattr(workload, "node_bytes", 64), think_ns=workload.think_ns,
            entries=inputs.entries.ctypes.data, zipf_keep=inputs.zipf_keep.ctypes.data,
            zipf_alias=inputs.zipf_alias.ctypes.data, streams=self.streams)

    def addresses(self, kind: int, shift: int, first: np.ndarray, length: np.ndarray, position: np.ndarray,
                  write_below: int) -> None:
        self.struct.kind, self.struct.shift, self.struct.write_below = kind, shift, write_below
        for stream, a, n, at in zip(self.streams, first, length, position, strict=True):
            stream.first, stream.length, stream.position = int(a), int(n), int(at)

    def phase(self, quota: np.ndarray, control: Control, name: str, timed: bool = False) -> None:
        """Let each thread do `quota[t]` accesses. Raises Cancelled, LiveError."""
        control.begin(name, int(quota.sum()))
        for t, stream in enumerate(self.streams):
            stream.quota = int(quota[t])
            for row, array in self.rows.items():
                setattr(stream, row, array[t].ctypes.data if timed else None)
        self.struct.control = control.cells.ctypes.data
        text = ctypes.create_string_buffer(ERROR_BYTES)
        failed = library().cxd_run(self.device, self.base, self.struct, text)
        if control.cancelled:
            raise Cancelled(f"cancelled in the {name}")
        if failed:
            raise LiveError(text.value.decode(errors="replace"))
        control.cells[0] = control.total

    def evictions(self) -> int:
        """Evictions begun since the counters were last zeroed; none on plain memory."""
        lib = library()
        return int(lib.cxd_counters(lib.cxd_core_of(self.device)).contents.evict_begun) if self.device else 0

    def mark_written(self, pages: int) -> None:
        """The first `pages` pages have content."""
        if self.device:
            library().cxd_mark_written(self.device, 0, pages)

    def totals(self, name: str) -> np.ndarray:
        """An out field of the streams, summed over threads: shape () or (3,)."""
        return np.sum([np.array(getattr(stream, name)[:] if name in ("count", "sum_ns") else getattr(stream, name), np.int64)
                       for stream in self.streams], axis=0)

    def ends(self, name: str, pick: Callable) -> list[int]:
        """min_ns or max_ns over the threads, by outcome."""
        return [int(pick(getattr(stream, name)[k] for stream in self.streams)) for k in range(3)]

    def windows(self) -> np.ndarray:
        """Hits, misses, waits by window: shape (WINDOWS, 3)."""
        return np.sum([np.array([list(row) for row in stream.window], np.int64) for stream in self.streams], axis=0)

    @property
    def oversubscribed(self) -> bool:
        return self.threads > cores()


assert WINDOWS == 64
