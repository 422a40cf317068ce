"""What is left of a program's accesses once a CPU cache has answered most of them: what a memory device sees.

One set-associative cache, write-back, write-allocate, least recently used, indexed by the line number; no
prefetcher, no second level, all threads share it. A miss fetches its line (a read of the device); a line
that was written is written back when it is pushed out (a write). Lines are numbers: address //
line_bytes.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cxdbench.jit import kernel


@dataclass(frozen=True)
class CpuCache:
    """Size and shape; the default is the filter of the trace in data/: 1 MiB, 16 ways, lines of 64 B."""

    bytes: int = 1 << 20
    ways: int = 16
    line_bytes: int = 64

    def __post_init__(self) -> None:
        for name in ("bytes", "ways", "line_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"CpuCache.{name} is {getattr(self, name)}: it must be at least 1")
        if self.bytes % (self.ways * self.line_bytes):
            raise ValueError(f"CpuCache.bytes is {self.bytes}: it must be a multiple of ways x line_bytes = "
                             f"{self.ways * self.line_bytes}")

    @property
    def sets(self) -> int:
        return self.bytes // (self.ways * self.line_bytes)


@dataclass(eq=False)
class Filter:
    """A CPU cache that keeps its contents between calls: a long recording passes through in parts."""

    cache: CpuCache = CpuCache()
    accesses: int = 0
    hits: int = 0
    left: int = 0

    def __post_init__(self) -> None:
        shape = (self.cache.sets, self.cache.ways)
        self._lines = np.zeros(shape, np.uint64)          # each set's lines, most recently used first
        self._flags = np.zeros(shape, np.uint8)           # 0 empty, 1 clean, 3 dirty

    def pass_through(self, lines: np.ndarray,
                     writes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Line numbers uint64[n] and writes bool[n] -> what leaves, in order: line, is_write, cause.

        `cause` is the access, 0 to n-1, that sent it. A dirty victim leaves before the line that takes its
        place comes in.
        """
        lines = np.ascontiguousarray(lines, np.uint64)
        writes = np.ascontiguousarray(writes, np.bool_)
        if lines.shape != writes.shape or lines.ndim != 1:
            raise ValueError(f"lines has shape {lines.shape} and writes {writes.shape}: they must be flat "
                             "and of one length")
        out, is_write = np.empty(2 * len(lines), np.uint64), np.empty(2 * len(lines), np.bool_)
        cause = np.empty(2 * len(lines), np.int64)
        hits, left = _filter(lines, writes, self._lines, self._flags, out, is_write, cause)
        self.accesses += len(lines)
        self.hits += hits
        self.left += left
        return out[:left].copy(), is_write[:left].copy(), cause[:left].copy()

    @property
    def hit_ratio(self) -> float:
        """Accesses that the CPU cache answered, of all."""
        return self.hits / self.accesses if self.accesses else float("nan")

    @property
    def left_ratio(self) -> float:
        """What leaves (fetches and write-backs), of all accesses."""
        return self.left / self.accesses if self.accesses else float("nan")


@kernel
def _filter(lines, writes, cached, flags, out, is_write, cause):
    """Pass accesses through; `cached` and `flags` change in place. Returns (hits, entries of `out`)."""
    sets, ways = np.uint64(cached.shape[0]), cached.shape[1]
    hits = np.int64(0)
    left = np.int64(0)
    for n in range(len(lines)):
        line = lines[n]
        row = np.int64(line % sets)
        way = 0
        while way < ways and not (flags[row, way] and cached[row, way] == line):
            way += 1
        if way < ways:
            hits += 1
            flag = flags[row, way]
        else:
            way = ways - 1
            if flags[row, way] == 3:
                out[left] = cached[row, way]
                is_write[left] = True
                cause[left] = n
                left += 1
            out[left] = line
            is_write[left] = False
            cause[left] = n
            left += 1
            flag = np.uint8(1)
        if writes[n]:
            flag = np.uint8(3)
        while way > 0:                                     # the others move down by one, this one comes first
            cached[row, way] = cached[row, way - 1]
            flags[row, way] = flags[row, way - 1]
            way -= 1
        cached[row, 0] = line
        flags[row, 0] = flag
    return hits, left
