"""Device, Nand and workloads: what can be set, how it is changed, and how it comes back from JSON."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cxdbench as cxd
from cxdbench.device import CylonPath, fitted_constants, names
from cxdbench.workload import from_json, to_json


@pytest.mark.parametrize("name", names("devices.toml"))
def test_presets_load_scale_and_come_back(name):
    device = cxd.Device.named(name).scaled(cache_pages=16_384)
    assert device.cache_pages == 16_384
    assert device.scale == pytest.approx(1_258_291 / 16_384)
    assert device.capacity_pages / device.cache_pages == pytest.approx(25_165_824 / 1_258_291, rel=1e-3)
    assert cxd.Device.from_json(device.model_dump_json()) == device


def test_scaling_twice_multiplies():
    once = cxd.Device.named("cxdvirt").scaled(cache_pages=4096)
    assert cxd.Device.named("cxdvirt").scaled(cache_pages=16_384).scaled(cache_pages=4096).scale == pytest.approx(once.scale)


def test_with_takes_dotted_names_bare_words_and_numbers():
    device = cxd.Device(cache_pages=64, capacity_pages=256)
    changed = device.with_(eviction="lru", prefetch=2, drain="fast", fault_path="cylon", **{"nand.read_us": 25})
    assert (changed.eviction.kind, changed.prefetch.pages, changed.drain.pages) == ("lru", 2, 1024)
    assert isinstance(changed.fault_path, CylonPath) and changed.nand.read_us == 25
    assert changed.nand.program_us == device.nand.program_us and device.eviction.kind == "fifo"
    assert changed.with_({"fault_path.exit_us": 1}).fault_path.exit_us == 1


def test_frozen():
    device = cxd.Device(cache_pages=64, capacity_pages=256)
    with pytest.raises(Exception, match="frozen"):
        device.cache_pages = 3
    with pytest.raises(Exception, match="frozen"):
        cxd.Chase().wss = 3


@given(wss=st.floats(0.01, 100), threads=st.integers(1, 64), pattern=st.sampled_from(["sequential", "cycle", "random"]),
       seed=st.integers(0, 2**63 - 1), share=st.floats(0, 1), warmup=st.just("auto") | st.integers(0, 10**6))
def test_workloads_come_back_from_json(wss, threads, pattern, seed, share, warmup):
    for workload in (cxd.Chase(wss=wss, threads=threads, pattern=pattern, seed=seed, write_share=share, warmup=warmup),
                     cxd.Zipf(wss=wss, threads=threads, seed=seed, warmup=warmup)):
        assert from_json(to_json(workload)) == workload


def test_configured_latency_is_the_papers():
    assert cxd.Device.named("cxdvirt").configured_ns() == 6200


def test_fitted_constants_are_named_only_where_they_are_in_use():
    cxdvirt = cxd.Device.named("cxdvirt")
    assert set(fitted_constants(cxdvirt)) == {"fault_path.overhead_us", "fault_path.serial_us"}
    assert set(fitted_constants(cxdvirt.with_({"fault_path.serial_us": 0}))) == {"fault_path.overhead_us"}
    assert "prefetch.push_ns" in fitted_constants(cxdvirt.with_(prefetch=4))
    assert fitted_constants(cxd.Device.named("ideal")) == {}
