"""A Device as the core's settings, with what real faults cannot honour refused by name."""
from __future__ import annotations

import os
from numbers import Integral
from typing import Any

from cxdbench.device import ConfigError, Device, ns, program_types_ns, read_types_ns
from cxdbench.live.binding import MODES, Config, Setup

POLICIES = {"fifo": 0, "lifo": 1, "clock": 2, "lru": 3}
UNWRITTEN = {"charge": 0, "free": 1, "program": 2}


def refuse(device: Device) -> None:
    """ConfigError for each setting that this engine does not have."""
    path, sem = device.fault_path.kind, device.semantics
    if path != "ideal":
        raise ConfigError(f"Device.fault_path is {path!r}: the live engine's fault path is this machine's own; "
                          "use fault_path='ideal'")
    if sem.policy_sees == "all" and device.eviction.kind in ("clock", "lru"):
        raise ConfigError(f"Device.semantics.policy_sees is 'all': real hits fault nowhere, so under "
                          f"{device.eviction.kind} the live engine sees faults only; use policy_sees='faults'")
    if sem.policy_sees == "accessed_bit":
        raise ConfigError("Device.semantics.policy_sees is 'accessed_bit': user space cannot read that bit; "
                          "use policy_sees='faults'")
    if sem.write_miss == "sector":
        raise ConfigError("Device.semantics.write_miss is 'sector': the live engine does not have it")
    if device.nand.channel_model == "slotted":
        raise ConfigError("Device.nand.channel_model is 'slotted': the live engine does not have it")


def config(device: Device, capacity_pages: int | None = None) -> Config:
    """The core's settings. capacity_pages: of the part that is there, the device's own by default."""
    nand, sem, drain, ahead = device.nand, device.semantics, device.drain, device.prefetch
    high, low = int(drain.high * device.cache_pages), int(drain.low * device.cache_pages)
    reads, programs = read_types_ns(nand), program_types_ns(nand)
    made = Config(
        cache_pages=device.cache_pages, capacity_pages=capacity_pages or device.capacity_pages,
        policy=POLICIES[device.eviction.kind],
        protect=device.eviction.protect if device.eviction.kind == "lifo" else 0,
        sees_hits=0, unwritten=UNWRITTEN[sem.unwritten_read], writeback_free=sem.writeback == "free",
        write_miss_none=sem.write_miss == "none", prefetch_free=sem.prefetch_timing == "free",
        prefetch_pages=ahead.pages, prefetch_queue=ahead.queue_pages, prefetch_delay_ns=ns(ahead.start_delay_us),
        drain_pages=drain.pages, drain_high=high, drain_stop=low if drain.stop is None else max(low, high - drain.stop),
        drain_period_ns=ns(drain.period_us), channels=nand.channels, ways=nand.ways,
        channel_model=0 if nand.channel_model == "event" else 1, block_pages=nand.pages_per_block,
        transfer_ns=ns(nand.transfer_us), erase_ns=ns(nand.erase_us), read_types=len(reads), program_types=len(programs))
    made.read_ns[:len(reads)], made.program_ns[:len(programs)] = reads, programs
    return made


def check_options(**given: Any) -> None:
    """ConfigError for what `open_device` and `run` cannot take as node, mode or compensate, of those that are given."""
    if "node" in given and (isinstance(given["node"], bool) or not isinstance(given["node"], Integral) or given["node"] < 0):
        raise ConfigError(f"node is {given['node']!r}: must be a NUMA node's number")
    if "mode" in given and given["mode"] not in ("auto", *MODES):
        raise ConfigError(f"mode is {given['mode']!r}: allowed: auto, {', '.join(MODES)}")
    if "compensate" in given and not isinstance(given["compensate"], bool):
        raise ConfigError(f"compensate is {given['compensate']!r}: must be True or False")


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0))


def setup(device: Device, mode: int, compensate: bool, node: int | None, capacity_pages: int | None = None) -> Setup:
    """What cxd_open takes."""
    return Setup(core=config(device, capacity_pages), mode=mode, compensate=bool(compensate),
                 node=-1 if node is None else node, cores=cores())
