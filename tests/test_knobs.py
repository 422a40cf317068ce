"""Every knob moves something, or is refused by name; and whatever is set, the identities hold."""
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cxdbench as cxd
from cxdbench.device import CxdvirtPath, CylonPath, IdealPath
from cxdbench.settings import Settings

BASE = cxd.Device(cache_pages=64, capacity_pages=1024, nand={"channels": 2, "ways": 2})
BUSY = cxd.Chase(wss=3, threads=4, pattern="random", write_share=0.3, accesses=6000)
LIFO = {"eviction": {"kind": "lifo", "protect": 8}}
CYLON = {"fault_path": "cylon"}
# dotted field: (what must be set for it to matter, its other value)
DEVICE_KNOBS = {
    "cache_pages": ({}, 48), "capacity_pages": ({"prefetch": 8}, 192), "hit_ns": ({}, 500), "scale": ({}, 2.0),
    "eviction.kind": ({}, "lru"), "eviction.protect": (LIFO, 40),
    "prefetch.kind": ({"prefetch": 2}, None), "prefetch.pages": ({}, 4),
    "prefetch.start_delay_us": ({"prefetch": 4}, 0), "prefetch.push_ns": ({"prefetch": 4}, 3000),
    "prefetch.queue_pages": ({"prefetch": 8}, 1),
    "drain.pages": ({}, 8), "drain.high": ({"drain": {"pages": 8, "period_us": 50}}, 0.9),
    "drain.low": ({"drain": {"pages": 64, "period_us": 200, "low": 0.2}}, 0.6),
    "drain.stop": ({"drain": {"pages": 64, "period_us": 200, "low": 0.2}}, 5),
    "drain.period_us": ({"drain": {"pages": 8, "period_us": 50}}, 500),
    "fault_path.kind": ({}, "cxdvirt"), "fault_path.overhead_us": ({"fault_path": "cxdvirt"}, (1, 2, 3, 4, 5)),
    "fault_path.serial_us": ({"fault_path": "cxdvirt"}, 0),
    "fault_path.exit_us": (CYLON, 9), "fault_path.rest_us": (CYLON, (1, 2, 3, 4, 5)),
    "fault_path.refault_probability": (CYLON, 0.5),
    "fault_path.refault_gap_us": ({"fault_path": {"kind": "cylon", "refault_probability": 0.5}}, 60),
    "fault_path.handover_mean": (CYLON, 0.1), "fault_path.handover_spread": (CYLON, 0.0),
    "fault_path.handover_us": (CYLON, 40), "fault_path.second_exit_us": (CYLON, 0),
    "semantics.unwritten_read": ({}, "free"), "semantics.writeback": ({}, "free"), "semantics.write_miss": ({}, "none"),
    "semantics.prefetch_timing": ({"prefetch": 4}, "free"),
    "semantics.policy_sees": ({"eviction": "lru"}, "faults"),
    "nand.read_us": ({}, 25), "nand.program_us": ({}, 400), "nand.erase_us": ({"nand": {"pages_per_block": 4}}, 9000),
    "nand.channels": ({}, 1), "nand.ways": ({}, 1), "nand.transfer_us": ({}, 8), "nand.channel_model": ({}, "none"),
    "nand.pages_per_block": ({}, 4),
}
WORKLOAD_KNOBS = {
    "Chase": {"wss": 2, "threads": 8, "pattern": "cycle", "node_bytes": 64, "accesses": 7000, "shared": True,
              "warmup": 10, "start": "cold", "prepare": "clean", "think_ns": 5000, "write_share": 0.9, "seed": 2},
    "Zipf": {"wss": 2, "threads": 8, "skew": 0.2, "scramble": False, "accesses": 7000, "shared": False, "warmup": 10,
             "start": "cold", "prepare": "clean", "think_ns": 5000, "write_share": 0.9, "seed": 2},
    "Trace": {"pages": [1, 2, 3] * 50, "thread": [0, 1] * 100, "writes": [True] * 200, "path": None, "accesses": 37,
              "warmup": 3, "start": "cold", "prepare": "written", "think_ns": 5000, "write_share": None, "seed": None},
}


def fields(model: type[Settings], prefix: str = "") -> set[str]:
    found = set()
    for name, info in model.model_fields.items():
        inner = info.annotation
        if isinstance(inner, type) and issubclass(inner, Settings):
            found |= fields(inner, f"{prefix}{name}.")
        elif name == "fault_path":
            for path in (IdealPath, CxdvirtPath, CylonPath):
                found |= fields(path, "fault_path.")
        else:
            found.add(prefix + name)
    return found


def numbers(result) -> str:
    """All of a result's numbers, and its scale, as text to compare."""
    return json.dumps([result.attrs["scale"], {name: result[name].values.tolist() for name in result.data_vars}])


def test_no_field_is_left_out():
    assert set(DEVICE_KNOBS) == fields(cxd.Device)
    for name, knobs in WORKLOAD_KNOBS.items():
        assert set(knobs) == set(getattr(cxd, name).model_fields), name


@pytest.mark.parametrize("name", DEVICE_KNOBS)
def test_device_knobs(name):
    setting, other = DEVICE_KNOBS[name]
    device = BASE.with_(setting)
    workload = BUSY
    if name == "semantics.unwritten_read":
        workload = BUSY.with_(prepare="clean", write_share=0)
    if name.endswith("second_exit_us"):
        workload = BUSY.with_(pattern="sequential")
    if other is None:  # one value only, so far: anything else is refused
        with pytest.raises(cxd.ConfigError, match="prefetch"):
            device.with_({name: "stride"})
        return
    changed = device.with_(fault_path=other) if name == "fault_path.kind" else device.with_({name: other})
    assert numbers(cxd.run(device, workload)) != numbers(cxd.run(changed, workload))


@pytest.mark.parametrize("kind, name", [(kind, name) for kind, knobs in WORKLOAD_KNOBS.items() for name in knobs])
def test_workload_knobs(kind, name, tmp_path):
    other = WORKLOAD_KNOBS[kind][name]
    if kind == "Trace":
        pages = np.tile(np.arange(200), 1)
        base = cxd.Trace(pages=pages)
        if name == "path":
            path = tmp_path / "trace.csv"
            path.write_text("thread,page,is_write\n0,5,1\n0,6,0\n")
            assert numbers(cxd.run(BASE, base)) != numbers(cxd.run(BASE, cxd.Trace(path=path)))
            return
        if name == "write_share":
            with pytest.raises(cxd.ConfigError, match="write_share"):
                base.with_(write_share=0.5)
            return
        if name == "seed":  # decides the fault path's draws
            device = BASE.with_(fault_path="cxdvirt")
            assert numbers(cxd.run(device, base)) != numbers(cxd.run(device, base.with_(seed=2)))
            return
        device = BASE.with_({"semantics.unwritten_read": "free"}) if name == "prepare" else BASE
        assert numbers(cxd.run(device, base)) != numbers(cxd.run(device, base.with_({name: other})))
        return
    base = BUSY if kind == "Chase" else cxd.Zipf(wss=3, threads=4, write_share=0.3, accesses=6000)
    device = BASE
    if name == "node_bytes":
        base = base.with_(pattern="cycle")
    if name == "prepare":
        device = BASE.with_({"semantics.unwritten_read": "free"})
    assert numbers(cxd.run(device, base)) != numbers(cxd.run(device, base.with_({name: other})))


us = st.sampled_from([0, 0.5, 3, 20])


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_identities_hold_over_the_configuration_space(data):
    pick = data.draw
    cache = pick(st.integers(1, 40))
    device = cxd.Device(
        cache_pages=cache, capacity_pages=cache * 6, hit_ns=pick(st.integers(1, 300)),
        eviction={"kind": pick(st.sampled_from(["fifo", "lifo", "clock", "lru"])), "protect": pick(st.integers(0, cache - 1))},
        prefetch={"pages": pick(st.integers(0, 5)), "start_delay_us": pick(us), "queue_pages": pick(st.integers(1, 9))},
        drain={"pages": pick(st.sampled_from([0, 1, 7])), "period_us": pick(st.sampled_from([1, 30])), "high": 0.8, "low": 0.3},
        fault_path=pick(st.sampled_from(["ideal", "cxdvirt", "cylon"])),
        semantics={"unwritten_read": pick(st.sampled_from(["charge", "free", "program"])),
                   "writeback": pick(st.sampled_from(["charged", "free"])),
                   "write_miss": pick(st.sampled_from(["fetch", "none"])),
                   "prefetch_timing": pick(st.sampled_from(["charged", "free"])),
                   "policy_sees": pick(st.sampled_from(["all", "faults"]))},
        nand={"read_us": pick(us), "program_us": pick(us), "erase_us": pick(us), "transfer_us": pick(us),
              "channels": pick(st.integers(1, 3)), "ways": pick(st.integers(1, 3)), "pages_per_block": pick(st.integers(1, 5)),
              "channel_model": pick(st.sampled_from(["event", "none"]))})
    threads = pick(st.integers(1, 64))
    workload = cxd.Chase(
        wss=max(threads / cache, pick(st.floats(0.2, 5))) if threads <= 5 * cache else 5, shared=threads > cache,
        threads=threads, pattern=pick(st.sampled_from(["sequential", "cycle", "random"])), node_bytes=4096,
        write_share=pick(st.sampled_from([0, 0.4, 1])), accesses=pick(st.integers(1, 400)),
        start=pick(st.sampled_from(["warm", "cold"])), prepare=pick(st.sampled_from(["clean", "written"])),
        think_ns=pick(st.sampled_from([0, 700])), seed=pick(st.integers(0, 99)))
    result = cxd.run(device, workload)  # raises IdentityError if one is broken
    assert all(identity.holds for identity in cxd.check(result))
    assert int(result["count"].sum()) == workload.accesses
