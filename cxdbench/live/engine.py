"""The live engine and the plain-memory baseline: one run on real memory, as the model's `measure` does it."""
from __future__ import annotations

import json

import numpy as np

from cxdbench.control import Control, interruptible
from cxdbench.device import Device
from cxdbench.live.binding import LiveError, library, pointer
from cxdbench.live.host import why_not
from cxdbench.live.memory import LiveMemory, must_fit
from cxdbench.live.settings import refuse
from cxdbench.live.walk import Walk
from cxdbench.model.inputs import Inputs, prepare, warm_up
from cxdbench.result import Measured
from cxdbench.workload import Trace, Workload, working_set_pages

NOISE_WAITS, NOISE_LONGEST_NS = 4000, 1_000_000  # at most, and a tenth of a second in all
UNEVEN = 1.5  # times the fastest thread's run that the slowest may take without a warning
NOISE_LEVELS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
HITS_ARE_REAL = "hits take what this machine's memory takes: hit_ns and prefetch.push_ns are not used"


def noise_floor(wait_ns: float) -> dict[str, int]:
    """How late a bare wait of so long ends here, ns, by percentile: what no emulator on this host can beat."""
    wait = min(round(wait_ns), NOISE_LONGEST_NS)
    waits = min(NOISE_WAITS, max(100, int(0.1e9 / max(1, wait))))
    late = (np.ctypeslib.ctypes.c_uint64 * waits)()
    library().cxd_noise(wait, waits, late)
    values = np.array(late)
    return {name: int(values[min(waits - 1, int(level * waits))]) for name, level in NOISE_LEVELS.items()}


def recognise(device: Device, workload: Workload, backend: str) -> None:
    """ConfigError for what `measure` refuses; LiveError where this host cannot run it."""
    if why := why_not():
        raise LiveError(f"backend is {backend!r}: {why}")
    if backend == "live":
        refuse(device)


def measure(device: Device, workload: Workload, backend: str, *, control: Control | None = None, node: int | None = None,
            mode: str = "auto", compensate: bool = True) -> Measured:
    """One run on real memory. backend: "live", or "dram" for plain 4 KiB pages. Raises ConfigError, LiveError, Cancelled."""
    control = control or Control()
    recognise(device, workload, backend)
    if not isinstance(workload, Trace):
        must_fit(working_set_pages(workload, device))
    if backend == "dram":
        inputs = prepare(Device(cache_pages=device.cache_pages, capacity_pages=device.capacity_pages), workload)
        return interruptible(lambda: _dram(device, workload, inputs, control, node), control.cancel)
    inputs = prepare(device, workload)
    pages = min(device.capacity_pages, inputs.extent_pages + device.prefetch.pages)
    pages = max(pages, device.cache_pages)
    must_fit(inputs.extent_pages)

    def work() -> Measured:
        with LiveMemory(device, mode, compensate, node, pages) as memory:
            memory.take(pages)
            return _live(memory, device, workload, inputs, control)

    return interruptible(work, control.cancel)


def _live(memory: LiveMemory, device: Device, workload: Workload, inputs: Inputs, control: Control) -> Measured:
    lib, walk = library(), Walk(inputs, workload, memory.handle, None)
    noise = noise_floor(device.configured_ns())

    warmup, reached = warm_up(walk, inputs, workload, device.cache_pages, control)
    lib.cxd_set_drain(memory.handle, 0)  # else it would go on between a count and the next
    memory.settle()
    memory.reset_counters()
    resident_start = memory.counters()["resident"]
    lib.cxd_set_drain(memory.handle, device.drain.pages > 0)
    walk.phase(inputs.timed, control, "timed part", timed=True)
    lib.cxd_set_drain(memory.handle, 0)
    memory.settle()
    found = memory.counters()
    census = (np.ctypeslib.ctypes.c_uint64 * 5)()
    lib.cxd_census(lib.cxd_core_of(memory.handle), census)
    misses = int(walk.totals("count")[1])
    counters = {name: found[name] for name in (
        "fills", "charged", "charged_program", "uncharged_unwritten", "uncharged_write", "nand_reads", "nand_programs",
        "nand_erases", "prefetch_asked", "prefetch_dropped", "prefetch_already", "prefetch_issued", "prefetch_charged",
        "prefetch_uncharged", "prefetch_useful", "prefetch_late", "prefetch_wasted")}
    counters |= {"prefetch_unseen": int(census[4]), "resident_start": resident_start, "resident_end": int(census[2]),
                 "unsettled_end": int(census[1] + census[3]), "refills": int(walk.totals("refills")),
                 "refills_charged": int(walk.totals("refills_charged"))}
    if memory.mode == "thread":
        # A server may fill a page for a thread that another one has served meanwhile; no access saw that fill.
        counters["refills"] = found["claims"] - misses
        counters["refills_charged"] = found["charged"] - int(walk.rows["excess"].sum())
    by = ("foreground", "background")
    evictions = [[found[f"evictions_{kind}_{b}"] for b in by] for kind in ("clean", "dirty")]
    attrs = {
        "noise_floor_ns": json.dumps(noise), "late_share": found["late"] / misses if misses else 0.0,
        "oversubscribed": int(walk.oversubscribed), "live": memory.describe(),
        "write_notify": found["write_notify"], "unmap_ns": found["unmap_ns"] / max(1, found["unmaps"]),
        "background_late_ns": found["background_late_ns"] / max(1, found["background"]),
        "cycles_per_ns": lib.cxd_cycles_per_ns(),
    }
    note = HITS_ARE_REAL
    if device.prefetch.pages:
        note += ("; the first touch of a prefetched page that is there faults nowhere, so useful and wasted prefetches "
                 "count as unseen unless a store or an eviction showed them")
    return _measured(walk, inputs, counters, evictions, warmup, reached, attrs, note,
                     transitions=[found["claims"] + found["prefetch_issued"], found["fills"], found["evict_begun"],
                                  found["evict_ended"]])


def _dram(device: Device, workload: Workload, inputs: Inputs, control: Control, node: int | None) -> Measured:
    must_fit(inputs.extent_pages)
    lib = library()
    pages = inputs.extent_pages
    base = pointer("cxd_plain", pages, -1 if node is None else node)
    try:
        walk = Walk(inputs, workload, None, base)
        warmup, reached = warm_up(walk, inputs, workload, pages, control)
        walk.phase(inputs.timed, control, "timed part", timed=True)
    finally:
        lib.cxd_forget(base, pages)
    attrs = {"noise_floor_ns": json.dumps(noise_floor(device.configured_ns())), "oversubscribed": int(walk.oversubscribed),
             "cycles_per_ns": lib.cxd_cycles_per_ns()}
    return _measured(walk, inputs, {}, [[0, 0], [0, 0]], warmup, reached, attrs,
                     "plain memory: every access is a hit, and of the device only the working set's size is used",
                     transitions=[0, 0, 0, 0])


def _measured(walk: Walk, inputs: Inputs, counters: dict, evictions: list, warmup: int, reached: bool, attrs: dict,
              note: str, transitions: list[int]) -> Measured:
    summed = {name: rows.sum(0) for name, rows in walk.rows.items()}
    windows = walk.windows()
    begun = np.minimum.accumulate(np.array(walk.struct.evictions, np.int64)[::-1])[::-1]
    begun[-1] = np.sum(evictions)  # the last window holds what came after thread 0's last access
    streams = walk.streams
    return Measured(
        latency=summed["latency"], count=walk.totals("count").tolist(), sum_ns=walk.totals("sum_ns").tolist(),
        min_ns=walk.ends("min_ns", min), max_ns=walk.ends("max_ns", max), stage_sum_ns=summed["stage"],
        excess=summed["excess"], residual=summed["residual"],
        thread={"hits": [s.count[0] for s in streams], "misses": [s.count[1] for s in streams],
                "waits": [s.count[2] for s in streams], "run_ns": [s.run_ns for s in streams],
                "sum_ns": [sum(s.sum_ns) for s in streams]},
        window={"hits": windows[:, 0], "misses": windows[:, 1], "waits": windows[:, 2],
                "evictions": np.diff(begun, prepend=0), "resident": np.array(walk.struct.resident, np.int64)},
        evictions=np.array(evictions, np.int64), transitions=transitions, counters=counters, warmup_accesses=warmup,
        warmup_reached=reached, working_set_pages=inputs.working_set_pages, note="; ".join(filter(None, [inputs.note, note])),
        attrs=attrs, warnings=_warnings(walk))


def _warnings(walk: Walk) -> list[str]:
    """What makes a run's times, or its order, this machine's and not the device's."""
    if walk.oversubscribed:
        return [f"{walk.threads} threads share fewer cores: read counts and shares, not times"]
    took = [stream.run_ns for stream in walk.streams if stream.quota]
    if took and max(took) > UNEVEN * min(took):
        return [f"the threads ran unevenly (the slowest took {max(took) / max(1, min(took)):.1f} times the fastest): one that "
                "is alone for a while has the whole cache, so the hit ratio is that of the order they got here"]
    return []
