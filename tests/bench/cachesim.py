"""The page cache alone against libcachesim (PyPI, a bench extra): the same accesses from a file, end to end.

Each reads its native format: libcachesim oracleGeneral records, we Parquet. It counts hits and misses only, we time
every access besides; so it is the lighter job of the two.
"""
from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import cxdbench as cxd

ACCESSES = 10_000_000
ROUNDS = 3


@dataclass(frozen=True)
class Row:
    name: str
    ours_s: float
    theirs_s: float
    ours: float
    theirs: float


def traces() -> Iterator[tuple[str, np.ndarray, int]]:
    """(name, pages, pages of cache): Zipf 1.0 over a million pages at 10 %, and a cyclic scan of 1.5 caches."""
    rng = np.random.default_rng(1)
    share = np.cumsum(1 / np.arange(1, 1_000_001))
    draws = np.searchsorted(share / share[-1], rng.random(ACCESSES))
    yield "zipf 1.0", rng.permutation(1_000_000)[draws].astype(np.uint32), 100_000
    yield "scan 1.5x", (np.arange(ACCESSES) % 150_000).astype(np.uint32), 100_000


def write_files(pages: np.ndarray, folder: Path) -> tuple[Path, Path]:
    """(Parquet, oracleGeneral) of the same accesses."""
    import pandas as pd
    parquet, oracle = folder / "trace.parquet", folder / "trace.oracleGeneral"
    pd.DataFrame({"page": pages}).to_parquet(parquet, compression=None)
    records = np.zeros(len(pages), np.dtype([("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")]))
    records["object"], records["size"], records["next"] = pages, 1, -2
    records.tofile(oracle)
    return parquet, oracle


def ours(parquet: Path, kind: str, cache_pages: int) -> float:
    """Our miss ratio, from an empty cache."""
    device = cxd.Device(cache_pages=cache_pages, capacity_pages=1_000_000, eviction=kind)
    return 1 - cxd.summary(cxd.run(device, cxd.Trace(path=parquet, start="cold")))["hit_ratio"]


def theirs(oracle: Path, kind: str, cache_pages: int) -> float:
    """libcachesim's miss ratio."""
    import libcachesim
    settings = libcachesim.ReaderInitParam(ignore_obj_size=True)
    reader = libcachesim.TraceReader(str(oracle), libcachesim.TraceType.ORACLE_GENERAL_TRACE, settings)
    cache = {"fifo": libcachesim.FIFO, "clock": libcachesim.Clock, "lru": libcachesim.LRU}[kind](cache_pages)
    return cache.process_trace(reader)[0]


def timed(work, *arguments) -> tuple[float, float]:
    began = time.perf_counter()
    value = work(*arguments)
    return time.perf_counter() - began, value


def rows(folder: Path) -> Iterator[Row]:
    """Medians of interleaved rounds; SystemExit where the miss ratios differ in the fourth digit."""
    try:
        import libcachesim  # noqa: F401
    except ImportError:
        raise SystemExit("bench: libcachesim is not installed: make setup EXTRAS=dev,bench") from None
    for name, pages, cache_pages in traces():
        files = write_files(pages, folder)
        for kind in ("fifo", "clock", "lru"):
            pairs = [(timed(ours, files[0], kind, cache_pages), timed(theirs, files[1], kind, cache_pages))
                     for _ in range(ROUNDS)]
            (_, our_ratio), (_, their_ratio) = pairs[0]
            if abs(our_ratio - their_ratio) >= 5e-5:
                raise SystemExit(f"bench: {name}, {kind}: miss ratio {our_ratio:.5f} here, {their_ratio:.5f} in libcachesim")
            yield Row(f"{name}, {kind}", float(np.median([a[0] for a, _ in pairs])),
                      float(np.median([b[0] for _, b in pairs])), our_ratio, their_ratio)
