"""Many threads on real faults: whatever the order turns out to be, the counts keep their identities."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cxdbench as cxd

from .conftest import needs_live

pytestmark = needs_live


@st.composite
def cases(draw):
    cache = draw(st.integers(1, 64))
    kind = draw(st.sampled_from(["fifo", "clock", "lru", "lifo"]))
    device = cxd.Device(
        cache_pages=cache, capacity_pages=4 * cache + 64,
        eviction={"kind": kind, "protect": draw(st.integers(0, cache - 1))} if kind == "lifo" else kind,
        prefetch={"pages": draw(st.sampled_from([0, 0, 1, 4])), "start_delay_us": draw(st.sampled_from([0, 5, 50])),
                  "queue_pages": draw(st.sampled_from([1, 64]))},
        drain=draw(st.sampled_from([None, {"pages": 4, "period_us": 50, "high": 0.5, "low": 0.2}])),
        nand={"read_us": draw(st.sampled_from([0, 0.5, 5])), "program_us": draw(st.sampled_from([0, 5])), "erase_us": 5,
              "transfer_us": 0.5, "channels": 2, "ways": 2, "pages_per_block": 16},
        semantics={"policy_sees": "faults", "unwritten_read": draw(st.sampled_from(["charge", "free", "program"])),
                   "writeback": draw(st.sampled_from(["charged", "free"])),
                   "write_miss": draw(st.sampled_from(["fetch", "none"])),
                   "prefetch_timing": draw(st.sampled_from(["charged", "free"]))})
    threads = draw(st.integers(2, 8))
    pages = draw(st.integers(threads, max(threads, 3 * cache)))
    workload = cxd.Chase(wss=pages / cache, threads=threads, shared=draw(st.booleans()), accesses=draw(st.integers(1, 5000)),
                         pattern=draw(st.sampled_from(["sequential", "cycle", "random"])),
                         write_share=draw(st.sampled_from([0, 0.3, 1])), start=draw(st.sampled_from(["warm", "cold"])),
                         prepare=draw(st.sampled_from(["clean", "written"])), seed=draw(st.integers(0, 1000)),
                         warmup=draw(st.sampled_from(["auto", 100])))
    return device, workload, draw(st.sampled_from(["sigbus", "sigbus", "thread", "guard", "mprotect"]))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_the_identities_hold(case):
    device, workload, mode = case
    result = cxd.run(device, workload, "live", mode=mode, compensate=False)  # raises IdentityError otherwise
    assert int(result["count"].sum()) == workload.accesses
    assert int(result["resident_end"]) <= device.cache_pages


def test_a_page_lost_before_its_access_is_filled_again():
    """Two frames and eight threads: evicted pages before the access could be repeated are counted apart."""
    device = cxd.Device(cache_pages=2, capacity_pages=64, nand={"read_us": 1, "transfer_us": 1})
    result = cxd.run(device, cxd.Chase(wss=16, threads=8, pattern="random", accesses=20_000), "live", compensate=False)
    assert int(result["fills"]) == int(result["count"].sel(outcome="miss")) + int(result["refills"])
    assert all(identity.holds for identity in cxd.check(result))


