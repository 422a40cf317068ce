"""Bad input gets one clear sentence that names the field, the value and what is allowed, before any work starts."""
import re

import numpy as np
import pytest

import cxdbench as cxd
from cxdbench.live.host import why_not
from cxdbench.workload import Workload

DEVICE = cxd.Device(cache_pages=64, capacity_pages=256)
NAN, INF = float("nan"), float("inf")
BOILERPLATE = re.compile(r"function-|Input should|https?://|pydantic|\bctx\b|validation error|Traceback")


def refused(make, *words):
    """`make` raises one ConfigError whose sentence holds each of `words`."""
    with pytest.raises(cxd.ConfigError) as caught:
        make()
    text = str(caught.value)
    assert "\n" not in text and len(text) < 400, text
    assert not BOILERPLATE.search(text), text
    for word in words:
        assert word in text, (word, text)
    return text


DEVICE_FAULTS = [
    ("cache_pages", 0), ("cache_pages", -5), ("cache_pages", 1 << 24), ("cache_pages", "many"), ("cache_pages", NAN),
    ("capacity_pages", 0), ("hit_ns", 0), ("hit_ns", 10**7), ("hit_ns", 1.5),
    ("eviction", "mru"), ("eviction.protect", -1), ("prefetch", -1), ("prefetch.pages", 257), ("prefetch.kind", "stride"),
    ("prefetch.start_delay_us", -1), ("prefetch.push_ns", -1), ("prefetch.queue_pages", 0),
    ("drain", "sometimes"), ("drain.high", 1.5), ("drain.low", NAN), ("drain.period_us", 0), ("drain.stop", -1),
    ("fault_path", "qemu"), ("fault_path.overhead_us", (1, 2, 3)),
    ("semantics.unwritten_read", "maybe"), ("semantics.writeback", ""), ("semantics.policy_sees", 3),
    ("nand.read_us", -1), ("nand.read_us", NAN), ("nand.read_us", INF), ("nand.read_us", "fast"), ("nand.read_us", ()),
    ("nand.program_us", 1e7), ("nand.erase_us", -1), ("nand.channels", 0), ("nand.channels", 65), ("nand.ways", 0),
    ("nand.transfer_us", -0.1), ("nand.channel_model", "bus"), ("nand.pages_per_block", 0), ("scale", 0),
]


@pytest.mark.parametrize("name, value", DEVICE_FAULTS, ids=lambda v: str(v)[:20])
def test_device_fields(name, value):
    base = DEVICE.with_(fault_path="cxdvirt")
    refused(lambda: base.with_({name: value}), name.split(".")[-1])


CHASE_FAULTS = [
    ("wss", 0), ("wss", -1), ("wss", NAN), ("wss", INF), ("wss", "big"), ("wss", 1001), ("threads", 0), ("threads", 65),
    ("threads", 1.5), ("pattern", "zigzag"), ("node_bytes", 100), ("node_bytes", 32), ("node_bytes", 8192), ("accesses", 0),
    ("accesses", -1), ("accesses", 10**13), ("write_share", 1.1), ("write_share", NAN), ("think_ns", -1), ("warmup", -1),
    ("warmup", "long"), ("start", "hot"), ("prepare", "dirty"), ("seed", -1), ("seed", 2**63),
]


@pytest.mark.parametrize("name, value", CHASE_FAULTS, ids=lambda v: str(v)[:20])
def test_chase_fields(name, value):
    text = refused(lambda: cxd.Chase(**{name: value}), f"Chase.{name}")
    refused(lambda: cxd.Chase().with_({name: value}), name)
    assert str(value)[:6].strip("'") in text


def test_zipf_and_unknown_names():
    refused(lambda: cxd.Zipf(skew=-1), "Zipf.skew", "-1")
    refused(lambda: cxd.Zipf(pattern="cycle"), "pattern")
    refused(lambda: cxd.Device(cache=3), "cache")
    refused(lambda: DEVICE.with_(nope=1), "nope")
    refused(lambda: DEVICE.with_({"nand.nope": 1}), "nope")
    refused(lambda: DEVICE.with_({"nope.read_us": 1}), "nope")
    refused(lambda: cxd.Device.named("cxl9000"), "cxl9000", "cxdvirt")
    refused(lambda: cxd.Nand.named("xl-flash"), "xl-flash", "znand-cxdvirt")
    refused(lambda: cxd.Device.from_json("{"), "Device")
    refused(lambda: cxd.Device.from_json('{"cache_pages": 0}'), "cache_pages", "0")


def test_fields_that_contradict_each_other():
    refused(lambda: cxd.Device(cache_pages=10, capacity_pages=5), "capacity_pages", "5", "10")
    refused(lambda: DEVICE.with_(eviction="lifo"), "protect", "1024", "64")
    refused(lambda: DEVICE.with_({"drain.low": 0.9, "drain.high": 0.5}), "low", "0.9", "0.5")


@pytest.mark.parametrize("kwargs, words", [
    ({}, ["pages", "path"]), ({"pages": [1], "path": "x"}, ["pages", "path"]), ({"pages": []}, ["pages"]),
    ({"pages": [[1]]}, ["pages"]), ({"pages": [1.5]}, ["pages"]), ({"pages": "abc"}, ["pages"]),
    ({"pages": [1], "write_share": 0.5}, ["write_share"]), ({"pages": [1], "accesses": 0}, ["accesses"]),
    ({"path": "x", "thread": [1]}, ["thread"]),
])
def test_trace_settings(kwargs, words):
    refused(lambda: cxd.Trace(**kwargs), *words)


@pytest.mark.parametrize("trace, words", [
    (lambda: cxd.Trace(pages=[256]), ["256", "capacity_pages"]), (lambda: cxd.Trace(pages=[-1]), ["pages", "-1"]),
    (lambda: cxd.Trace(pages=[1, 2], thread=[1]), ["thread"]), (lambda: cxd.Trace(pages=[1], writes=[2]), ["writes"]),
    (lambda: cxd.Trace(pages=np.arange(70), thread=np.arange(70)), ["thread", "64"]),
    (lambda: cxd.Trace(path="/nonexistent/trace.csv"), ["/nonexistent/trace.csv"]),
])
def test_traces_that_do_not_fit(trace, words):
    refused(lambda: cxd.run(DEVICE, trace()), *words)


def test_runs_that_cannot_be():
    refused(lambda: cxd.run(DEVICE, cxd.Chase(wss=5)), "wss", "5", "capacity_pages")
    refused(lambda: cxd.run(DEVICE, cxd.Chase(wss=0.05)), "wss", "0.05", "threads")
    refused(lambda: cxd.run("cxdvirt", cxd.Chase()), "device")
    refused(lambda: cxd.run(DEVICE, 5), "workload")
    refused(lambda: cxd.run(DEVICE, Workload()), "workload")
    refused(lambda: cxd.run(DEVICE, cxd.Chase(), "gpu"), "gpu", "model")
    for backend in ("kmod", "abacus"):
        refused(lambda backend=backend: cxd.run(DEVICE, cxd.Chase(), backend), backend)
    for seeds in (0, -1, True, 1001, "x", 2.5):
        refused(lambda seeds=seeds: cxd.run(DEVICE, cxd.Chase(), seeds=seeds), "seeds")
    refused(lambda: cxd.run(DEVICE, cxd.Chase(), seeds=2, log=True), "log")
    refused(lambda: cxd.run(DEVICE, cxd.Chase(accesses=10**12), log=True), "log", "accesses")


@pytest.mark.parametrize("name, value", [("semantics.write_miss", "sector"), ("semantics.policy_sees", "accessed_bit"),
                                         ("nand.channel_model", "slotted")])
def test_what_the_model_lacks_is_refused_by_name(name, value):
    refused(lambda: cxd.run(DEVICE.with_({name: value}), cxd.Chase()), name, value)


def test_files(tmp_path):
    def broken(text, make=None):
        path = tmp_path / "file.nc"
        if make is not None:
            make(path)
        with pytest.raises(ValueError) as caught:
            cxd.open_result(path)
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)
        assert text in str(caught.value)

    broken("no such file")
    broken("not a netCDF file", lambda path: path.write_bytes(b"\x89PNG\r\n" + bytes(100)))
    whole = tmp_path / "whole.nc"
    cxd.save_result(cxd.run(DEVICE, cxd.Chase(accesses=100)), whole)
    broken("not a netCDF file", lambda path: path.write_bytes(whole.read_bytes()[:5000]))
    import xarray as xr
    broken("not a cxdbench result", lambda path: xr.Dataset({"a": 1}).to_netcdf(path, engine="h5netcdf"))
    with pytest.raises(ValueError, match="folder"):
        cxd.save_result(xr.Dataset(), tmp_path / "nowhere" / "x.nc")


# Found by use: what a newcomer's wrong turn met.
@pytest.mark.parametrize("settings, text", [
    ({"nand.read_us": ["8"]}, "read_us"), ({"nand.read_us": [True, 2]}, "read_us"),
    ({"fault_path": {"kind": "cxdvirt", "overhead_us": (True, 2, 3, 4, 5)}}, "overhead_us"),
    ({"prefetch.kind": 3}, "prefetch.kind is 3"), ({"eviction.kind": {}}, "eviction.kind"),
    ({"cache_pages.kind": 5}, "no group 'cache_pages'"), (5, "changes is 5"), ({5: 5}, "changes is")], ids=str)
def test_devices_that_cannot_be_meant(settings, text):
    refused(lambda: DEVICE.with_(settings), text)


@pytest.mark.parametrize("settings", [{"warmup": True}, {"warmup": "8"}, {"shared": "yes"}, {"shared": 0}], ids=str)
def test_workloads_that_cannot_be_meant(settings):
    refused(lambda: cxd.Chase(**settings), next(iter(settings)))


def test_time_that_does_not_fit_is_refused_and_not_wrapped():
    quiet = cxd.Device(cache_pages=64, capacity_pages=64)
    refused(lambda: cxd.run(quiet, cxd.Chase(wss=0.5, threads=2, accesses=600_000_000, think_ns=10**9)), "four years")


def test_a_device_of_another_size_is_no_scaled_copy():
    scaled = cxd.Device.named("cxdvirt").scaled(1024)
    assert scaled.scale > 1000 and scaled.with_(cache_pages=20).scale == 1 and scaled.with_(eviction="lru").scale > 1000


def test_pictures_and_sums_of_what_is_no_result():
    grid = cxd.sweep(DEVICE, cxd.Chase(accesses=1000), {"threads": [1, 2]}, progress=False)
    for call in (cxd.summary, cxd.check, cxd.plot.cdf):
        for wrong in ("x", None, [], 5):
            refused(lambda call=call, wrong=wrong: call(wrong), "result")
    refused(lambda: cxd.check(grid), "a sweep")
    refused(lambda: cxd.plot.cdf(grid), "a sweep")
    refused(lambda: cxd.check(cxd.run(DEVICE, cxd.Chase(accesses=1000), seeds=2)), "several seeds")


def test_a_traces_pages_are_those_it_touches():
    result = cxd.run(cxd.Device(cache_pages=64, capacity_pages=2048), cxd.Trace(pages=[0, 1000] * 50))
    assert result.attrs["working_set_pages"] == 2 and result.attrs["warnings"] == "[]"


@pytest.mark.parametrize("backend, axis", [("dram", "nand.read_us"), ("live", "hit_ns")])
def test_an_axis_that_changes_nothing_is_refused(backend, axis):
    if not why_not():
        refused(lambda: cxd.sweep(cxd.Device(), cxd.Chase(), {axis: [1, 3]}, backend=backend), axis)


@pytest.mark.parametrize("state", [
    '{"cells": 5}', '{"cells": [5]}', '{"cells": [{"outputs": null}]}',
    '{"cells": [{"outputs": [{"data": {"application/vnd.cxdbench.explorer+json": 5}}]}]}'])
def test_states_that_are_none(state):
    refused(lambda: cxd.explore(state=state), "state")


@pytest.mark.parametrize("change", [{"pins": [{"colour": "x", "setting": 0}]}, {"repeats": True}, {"setting": {"workload": {
    "kind": ["a"]}}}, {"setting": {"workload": {"accesses": 10**12}}}], ids=str)
def test_states_with_a_wrong_part(change):
    from cxdbench.explorer.state import State
    state = State().to_dict()
    for name, value in change.items():
        if isinstance(value, dict):
            state[name]["workload"] |= value["workload"]
        elif name == "pins":
            state[name] = [state[name][0] | {"colour": "x"}]
        else:
            state[name] = value
    refused(lambda: State.from_dict(state), "")
