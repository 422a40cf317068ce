"""One thread on real faults counts what the model counts, on the same accesses, under each policy."""
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cxdbench as cxd

from .conftest import needs_live

pytestmark = needs_live
COUNTED = ("fills", "charged", "charged_program", "uncharged_unwritten", "uncharged_write", "nand_reads", "nand_programs",
           "nand_erases", "resident_start", "resident_end")
FAST = {"read_us": 0.5, "program_us": 1.0, "erase_us": 2.0, "transfer_us": 0.5, "channels": 2, "ways": 2, "pages_per_block": 16}


@st.composite
def evictions(draw, cache):
    kind = draw(st.sampled_from(["fifo", "clock", "lru", "lifo"]))
    return {"kind": kind, "protect": draw(st.integers(0, cache - 1))} if kind == "lifo" else kind


@st.composite
def cases(draw):
    cache = draw(st.integers(2, 64))
    device = cxd.Device(
        cache_pages=cache, capacity_pages=4 * cache, eviction=draw(evictions(cache)), nand=FAST,
        semantics={"policy_sees": "faults", "unwritten_read": draw(st.sampled_from(["charge", "free", "program"])),
                   "writeback": draw(st.sampled_from(["charged", "free"])),
                   "write_miss": draw(st.sampled_from(["fetch", "none"]))})
    common = {"start": draw(st.sampled_from(["warm", "cold"])), "prepare": draw(st.sampled_from(["clean", "written"])),
              "seed": draw(st.integers(0, 2**63 - 1))}
    kind = draw(st.sampled_from(["chase", "zipf", "trace"]))
    if kind == "trace":
        n = draw(st.integers(1, 300))
        return device, cxd.Trace(pages=draw(st.lists(st.integers(0, 4 * cache - 1), min_size=n, max_size=n)),
                                 writes=draw(st.lists(st.booleans(), min_size=n, max_size=n)), **common)
    common |= {"threads": 1, "wss": draw(st.integers(1, 3 * cache)) / cache, "accesses": draw(st.integers(1, 2000)),
               "write_share": draw(st.sampled_from([0, 0.2, 1]))}
    if kind == "zipf":
        return device, cxd.Zipf(**common)
    return device, cxd.Chase(pattern=draw(st.sampled_from(["sequential", "cycle", "random"])),
                             node_bytes=draw(st.sampled_from([512, 4096])), **common)


def same_counts(device, workload, **options) -> None:
    model, live = cxd.run(device, workload), cxd.run(device, workload, "live", compensate=False, **options)
    assert live["count"].values.tolist() == model["count"].values.tolist()
    assert live["evictions"].values.tolist() == model["evictions"].values.tolist()
    assert {n: int(live[n]) for n in COUNTED} == {n: int(model[n]) for n in COUNTED}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_it_counts_what_the_model_counts(case):
    same_counts(*case)


@pytest.mark.parametrize("mode", ["thread", "guard", "mprotect"])
@pytest.mark.parametrize("eviction", ["fifo", "clock", "lru", {"kind": "lifo", "protect": 100}], ids=str)
def test_in_each_mode(mode, eviction):
    device = cxd.Device(cache_pages=512, capacity_pages=2048, eviction=eviction, nand=FAST,
                        semantics={"policy_sees": "faults"})
    same_counts(device, cxd.Chase(wss=1.7, threads=1, accesses=20_000, write_share=0.3), mode=mode)
