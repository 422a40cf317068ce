"""Device and workload as the arrays that an engine (and the oracle) takes: addresses, quotas, settings; and the order of
its phases before the timed one.

`prepare` raises ConfigError for what this engine cannot honour, by name, before any work.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from cxdbench.control import Control
from cxdbench.device import ConfigError, Device
from cxdbench.model.layout import STREAM_ARRAY, STREAM_RANDOM, STREAM_SEQUENTIAL, STREAM_ZIPF
from cxdbench.model.rng import fill_alias
from cxdbench.workload import Chase, Trace, Workload, Zipf, working_set_pages

KINDS = {"array": STREAM_ARRAY, "sequential": STREAM_SEQUENTIAL, "random": STREAM_RANDOM, "zipf": STREAM_ZIPF}
MAX_WARMUP_PASSES = 16
_NONE = np.zeros(0, np.uint32)


@dataclass(frozen=True)
class Inputs:
    """Where each thread's addresses come from and how many it does. Arrays over threads are int64, shape (threads,).

    kind "array": `entries[first + position]` (page | write << 31), a ring of `length`. "sequential": page =
    first + (position >> shift), a ring of `length` nodes. "random": first + one of `length` pages. "zipf": an alias
    table over `length` items: item k is kept if a 32-bit draw is below `zipf_keep[k]`, else it is `zipf_alias[k]`.
    working_set_pages: different pages that are touched; extent_pages: the last of them, plus 1.
    """

    threads: int
    kind: str
    first: np.ndarray
    length: np.ndarray
    start: np.ndarray
    timed: np.ndarray
    pass_accesses: np.ndarray
    warmup: str | np.ndarray
    working_set_pages: int
    extent_pages: int
    write_threshold: int
    shift: int = 0
    entries: np.ndarray = field(default_factory=lambda: _NONE)
    zipf_keep: np.ndarray = field(default_factory=lambda: _NONE)
    zipf_alias: np.ndarray = field(default_factory=lambda: _NONE)
    write_pass: bool = False
    write_first: np.ndarray = field(default_factory=lambda: _NONE)
    write_length: np.ndarray = field(default_factory=lambda: _NONE)
    note: str = ""


class Phases(Protocol):
    """What can run the phases of a run: the model's arrays, or real threads."""

    def addresses(self, kind: int, shift: int, first: np.ndarray, length: np.ndarray, position: np.ndarray,
                  write_below: int) -> None: ...
    def phase(self, quota: np.ndarray, control: Control, name: str) -> None: ...
    def evictions(self) -> int: ...
    def mark_written(self, pages: int) -> None: ...


def warm_up(on: Phases, inputs: Inputs, workload: Workload, cache_pages: int, control: Control) -> tuple[int, bool]:
    """Everything before the timed part. Returns the untimed accesses and whether the warm-up's aim was reached."""
    cold, before = workload.start == "cold", 0
    if inputs.write_pass and cold:
        on.mark_written(inputs.extent_pages)
    elif inputs.write_pass:
        nothing = np.zeros(inputs.threads, np.int64)
        on.addresses(STREAM_SEQUENTIAL, 0, inputs.write_first, inputs.write_length, nothing, 2**32)
        on.phase(inputs.write_length, control, "write pass")
        before += int(inputs.write_length.sum())
    on.addresses(KINDS[inputs.kind], inputs.shift, inputs.first, inputs.length, inputs.start, inputs.write_threshold)
    if cold:
        return before, True
    if not isinstance(inputs.warmup, str):
        on.phase(inputs.warmup, control, "warm-up")
        return before + int(inputs.warmup.sum()), True
    began, one_pass = on.evictions(), int(inputs.pass_accesses.sum())
    for _ in range(MAX_WARMUP_PASSES):
        on.phase(inputs.pass_accesses, control, "warm-up")
        before += one_pass
        if on.evictions() - began >= cache_pages or inputs.working_set_pages <= cache_pages:
            return before, True
    return before, False


def threshold(share: float) -> int:
    """A share as the 32-bit draw's threshold."""
    return round(share * 2**32)


def shares(total: int, threads: int) -> np.ndarray:
    """`total` in whole equal parts, the first ones larger by one where it does not divide."""
    part, rest = divmod(total, threads)
    return np.array([part + (t < rest) for t in range(threads)], np.int64)


def zipf_table(items: int, skew: float, order: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Walker's alias table for P(rank k) ~ (k + 1)^-skew, in 32-bit thresholds; `order[k]` is where rank k lies."""
    weight = np.arange(1, items + 1, dtype=np.float64) ** -skew
    scaled = np.empty(items)
    scaled[order if order is not None else slice(None)] = weight * (items / weight.sum())
    keep, alias = np.full(items, 2**32 - 1, np.uint32), np.arange(items, dtype=np.uint32)
    fill_alias(scaled, keep, alias, np.empty(items, np.int64), np.empty(items, np.int64))
    return keep, alias


def refuse(device: Device, workload: Workload) -> None:
    """ConfigError for every setting this engine does not have."""
    missing = {
        "semantics.write_miss": (device.semantics.write_miss, ("sector",)),
        "semantics.policy_sees": (device.semantics.policy_sees, ("accessed_bit",)),
        "nand.channel_model": (device.nand.channel_model, ("slotted",)),
    }
    for name, (value, not_here) in missing.items():
        if value in not_here:
            raise ConfigError(f"Device.{name} is {value!r}: the model engine does not have it yet")


def prepare(device: Device, workload: Workload) -> Inputs:
    """The arrays for one run. Deterministic: the same settings and seed give the same bytes."""
    refuse(device, workload)
    common = {"write_threshold": threshold(workload.write_share), "write_pass": workload.prepare == "written"}
    rng = np.random.Generator(np.random.PCG64(workload.seed))
    if isinstance(workload, Trace):
        return _trace(device, workload, common)
    pages, threads = working_set_pages(workload, device), workload.threads
    if workload.shared:
        first, length = np.zeros(threads, np.int64), np.full(threads, pages, np.int64)
    else:
        length = np.full(threads, pages // threads, np.int64)
        first = np.arange(threads, dtype=np.int64) * length
    owned = shares(pages, threads) if workload.shared else length
    common |= {
        "threads": threads, "timed": shares(workload.accesses, threads), "working_set_pages": int(owned.sum()),
        "extent_pages": int(owned.sum()),
        "write_first": np.cumsum(owned) - owned if workload.shared else first, "write_length": owned,
        "warmup": "auto" if workload.warmup == "auto" else shares(workload.warmup, threads),
    }
    zero = np.zeros(threads, np.int64)
    if isinstance(workload, Zipf):
        region = int(length[0])
        keep, alias = zipf_table(region, workload.skew, rng.permutation(region) if workload.scramble else None)
        return Inputs(kind="zipf", first=first, length=length, start=zero, pass_accesses=owned,
                      zipf_keep=keep, zipf_alias=alias, **common)
    return _chase(workload, first, length, owned, rng, common)


def _chase(workload: Chase, first, length, owned, rng, common) -> Inputs:
    threads, per_page = workload.threads, workload.nodes_per_page
    shift = per_page.bit_length() - 1
    nodes = length * per_page
    start = np.arange(threads, dtype=np.int64) * nodes // threads if workload.shared else np.zeros(threads, np.int64)
    one_pass = owned * per_page
    if workload.pattern == "random":
        return Inputs(kind="random", first=first, length=length, start=np.zeros(threads, np.int64),
                      pass_accesses=one_pass, **common)
    if workload.pattern == "sequential":
        return Inputs(kind="sequential", first=first, length=nodes, start=start, shift=shift,
                      pass_accesses=one_pass, **common)
    rings = 1 if workload.shared else threads
    entries = np.empty(rings * int(nodes[0]), np.uint32)
    for t, ring in enumerate(np.split(entries, rings)):
        ring[:] = np.arange(len(ring), dtype=np.uint32) >> shift
        rng.shuffle(ring)
        ring += np.uint32(first[t])
    begins = np.zeros(threads, np.int64) if workload.shared else np.arange(threads, dtype=np.int64) * nodes
    return Inputs(kind="array", first=begins, length=nodes, start=start, pass_accesses=one_pass, entries=entries,
                  **common)


def _trace(device: Device, workload: Trace, common: dict) -> Inputs:
    accesses = workload.load()
    last = int(accesses.pages.max())
    if last >= device.capacity_pages:
        raise ConfigError(f"Trace.pages is {last}: beyond the device's capacity_pages {device.capacity_pages}; if "
                          "these are byte addresses, divide them by 4096 or read the trace from a file")
    if workload.accesses == 0:
        raise ConfigError("Trace.accesses is 0: at least 1")
    pages, writes = accesses.pages, accesses.writes
    if accesses.threads > 1:
        order = np.argsort(accesses.thread, kind="stable")
        pages, writes = pages[order], writes[order]
    entries = pages.astype(np.uint32)
    if writes.any():
        entries |= writes.astype(np.uint32) << np.uint32(31)
    length = np.bincount(accesses.thread, minlength=accesses.threads).astype(np.int64)
    timed = length if workload.accesses is None else _in_proportion(workload.accesses, length)
    footprint = last + 1
    owned = shares(footprint, accesses.threads)
    return Inputs(
        threads=accesses.threads, kind="array", first=np.cumsum(length) - length, length=length,
        start=np.zeros(accesses.threads, np.int64), timed=timed, pass_accesses=length, entries=entries,
        warmup="auto" if workload.warmup == "auto" else _in_proportion(workload.warmup, length),
        working_set_pages=accesses.footprint_pages, extent_pages=footprint, write_first=np.cumsum(owned) - owned, write_length=owned, note=accesses.note,
        **common)


def _in_proportion(total: int, length: np.ndarray) -> np.ndarray:
    """`total` accesses shared out as the trace's threads share it."""
    ends = (np.cumsum(length, dtype=object) * total) // int(length.sum())
    return np.diff(np.concatenate([[0], ends])).astype(np.int64)
