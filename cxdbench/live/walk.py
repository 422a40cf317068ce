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
from cxdbench.model.inputs import KINDS, MAX_WARMUP_PASSES, Inputs
from cxdbench.workload import Workload

SEQUENTIAL = KINDS["sequential"]
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
        self.phase = Phase(
            threads=self.threads, node_bytes=getattr(workload, "node_bytes", 64), think_ns=workload.think_ns,
            entries=inputs.entries.ctypes.data, zipf_keep=inputs.zipf_keep.ctypes.data,
            zipf_alias=inputs.zipf_alias.ctypes.data, streams=self.streams)

    def addresses(self, kind: int, shift: int, first: np.ndarray, length: np.ndarray, position: np.ndarray,
                  write_below: int) -> None:
        self.phase.kind, self.phase.shift, self.phase.write_below = kind, shift, write_below
        for stream, a, n, at in zip(self.streams, first, length, position, strict=True):
            stream.first, stream.length, stream.position = int(a), int(n), int(at)

    def run(self, quota: np.ndarray, control: Control, name: str, timed: bool = False) -> None:
        """Let each thread do `quota[t]` accesses. Raises Cancelled, LiveError."""
        control.begin(name, int(quota.sum()))
        for t, stream in enumerate(self.streams):
            stream.quota = int(quota[t])
            for row, array in self.rows.items():
                setattr(stream, row, array[t].ctypes.data if timed else None)
        self.phase.control = control.cells.ctypes.data
        text = ctypes.create_string_buffer(ERROR_BYTES)
        failed = library().cxd_run(self.device, self.base, self.phase, text)
        if control.cancelled:
            raise Cancelled(f"cancelled in the {name}")
        if failed:
            raise LiveError(text.value.decode(errors="replace"))
        control.cells[0] = control.total

    def warm_up(self, control: Control, cache_pages: int, evictions: Callable[[], int],
                mark_written: Callable[[int], None]) -> tuple[int, bool]:
        """Everything before the timed part, in the model's order: the untimed accesses and whether its aim was reached."""
        inputs, cold, before = self.inputs, self.workload.start == "cold", 0
        if inputs.write_pass and cold:
            mark_written(inputs.extent_pages)
        elif inputs.write_pass:
            nothing = np.zeros(self.threads, np.int64)
            self.addresses(SEQUENTIAL, 0, inputs.write_first, inputs.write_length, nothing, 2**32)
            self.run(inputs.write_length, control, "write pass")
            before += int(inputs.write_length.sum())
        self.addresses(KINDS[inputs.kind], inputs.shift, inputs.first, inputs.length, inputs.start, inputs.write_threshold)
        if cold:
            return before, True
        if not isinstance(inputs.warmup, str):
            self.run(inputs.warmup, control, "warm-up")
            return before + int(inputs.warmup.sum()), True
        began = evictions()
        for _ in range(MAX_WARMUP_PASSES):
            self.run(inputs.pass_accesses, control, "warm-up")
            before += int(inputs.pass_accesses.sum())
            if evictions() - began >= cache_pages or inputs.working_set_pages <= cache_pages:
                return before, True
        return before, False

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
