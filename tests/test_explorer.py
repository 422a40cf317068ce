"""The explorer without a browser: its state, and that every control moves the curve."""
import json
import time

import nbformat
import numpy as np
import pytest

import cxdbench as cxd
from cxdbench.explorer.exports import EXPORTS
from cxdbench.explorer.fields import FIELDS, FOLDS
from cxdbench.explorer.keeping import KEPT, read_state
from cxdbench.explorer.runner import execute
from cxdbench.explorer.state import State
from cxdbench.plot.shape import Curve

from .live.conftest import needs_live

SMALL = {"cache_pages": 1024, "accesses": 20_000}


def small(**changes) -> State:
    state = State()
    for name, value in (SMALL | changes).items():
        assert state.change(name, value, now=0.0) or state.value(name) == value
    return state


def same(one: Curve, two: Curve) -> bool:
    return np.array_equal(one.ns, two.ns) and np.array_equal(one.share, two.share)


def test_it_opens_on_the_papers_random_chase():
    state = State()
    workload, device = state.setting.workload, state.setting.device
    assert (workload.pattern, workload.threads, workload.wss, workload.node_bytes) == ("cycle", 8, 2.5, 512)
    assert state.setting.preset == "cxdvirt" and device.cache_pages == 16_384
    assert [pin.name for pin in state.view.pins] == ["ideal", "cylon"]


# a control that matters only beside another: what is set first
FIRST = {"nand.program_us": {"write_share": 0.5}, "nand.erase_us": {"write_share": 0.5}, "drain": {"write_share": 0.5},
         "semantics.writeback": {"write_share": 0.5}, "semantics.write_miss": {"write_share": 0.5},
         "semantics.unwritten_read": {"prepare": "clean"}, "semantics.prefetch_timing": {"prefetch.pages": 4},
         "semantics.policy_sees": {"eviction": "lru"}}
OTHER = {"preset": "ideal", "pattern": "sequential", "eviction": "lru", "fault_path": "cylon", "cache_pages": 4096,
         "drain": "fast", "start": "cold", "node_bytes": 4096, "accesses": 10_000, "seed": 7,
         "semantics.unwritten_read": "program", "semantics.writeback": "free", "semantics.write_miss": "none",
         "semantics.prefetch_timing": "free", "semantics.policy_sees": "all"}


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: f.name)
def test_every_control_moves_the_curve(field):
    first = FIRST.get(field.name, {}) | ({"start": "warm"} if field.name != "start" else {})
    if field.name == "eviction":
        first["semantics.policy_sees"] = "all"
    if field.name == "nand.erase_us":
        first |= {"accesses": 200_000}
    if field.name == "prepare":
        first["prepare"] = "written"
    state = small(**first)
    before = execute(state.setting).curve
    value = OTHER.get(field.name)
    if field.name == "prepare":
        value = "clean"
    elif value is None:
        value = next(v for v in field.sweep if v != state.value(field.name))
    assert state.change(field.name, value, now=100.0), state.error
    assert not same(execute(state.setting).curve, before)


def test_each_has_a_unit_or_needs_none_and_says_where_it_comes_from():
    from cxdbench.explorer.fields import origin
    state = State()
    for field in FIELDS:
        assert field.what and origin(field, state.setting.preset, state.setting.device)
        assert not field.fold or field.fold in FOLDS


def test_what_does_not_fit_is_said_and_waits():
    state = State()
    before = state.setting
    assert not state.change("eviction", "lifo") or state.setting.device.eviction.kind == "lifo"
    state = State()
    state.change("cache_pages", 1024, now=0)
    assert not state.change("eviction", "lifo", now=10)
    assert "protect" in state.error and state.value("eviction") == "lifo"
    assert state.setting.device.eviction.kind == before.device.eviction.kind
    assert state.change("cache_pages", 4096, now=20) and state.error == ""
    assert state.setting.device.eviction.kind == "lifo"


def test_undo_and_reset():
    state = State()
    opening = state.setting
    state.change("wss", 1.0, now=0)
    state.change("wss", 1.1, now=0.1)  # one move of the hand
    state.change("threads", 2, now=5)
    assert state.undo() and state.setting.workload.threads == 8 and state.setting.workload.wss == 1.1
    assert state.undo() and state.setting == opening and not state.undo()
    state.change("wss", 1.0, now=9)
    state.reset()
    assert state.setting == opening and state.undo() and state.setting.workload.wss == 1.0


def test_pins_are_named_by_what_differs():
    state = State()
    state.change("wss", 1.1, now=0)
    state.change("nand.read_us", 25.0, now=5)
    assert state.pin().name == "cxdvirt, WSS 1.1, t_R 25 us"
    assert state.pin() is None and "pinned already" in state.error


def test_state_round_trips_and_refuses_what_is_not_one():
    state = small(wss=1.1)
    state.pin()
    assert read_state(json.loads(state.to_json())).view == state.view == read_state(state.to_json()).view
    for wrong in ("{", "{}", "nowhere.json", {"format": "other"}, json.dumps({**state.to_dict(), "setting": {}})):
        with pytest.raises(cxd.ConfigError, match="state"):
            cxd.explore(state=wrong)


def test_the_code_it_exports_gives_the_same_numbers():
    state = small(wss=1.3, write_share=0.2, fault_path="cylon")
    state.change("prefetch.pages", 2, now=9)
    scope = {}
    exec(state.setting.code(), scope)
    assert scope["result"].equals(execute(state.setting).result)


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    workbench = cxd.explore(state=small().to_dict())
    yield workbench
    workbench.close()


def test_a_slider_redraws_curve_and_table(bench):
    source = bench.curves.plots["cdf"].figure.select_one({"name": "cdf"})
    before, table = dict(source.data), bench.readout.html.value
    bench.controls.widgets["wss"].value = 1.2
    assert bench.settle()
    assert source.data != before and bench.readout.html.value != table and "18 of 18" in bench.foot.html.value


def test_every_export_is_a_file(bench, tmp_path):
    for kind in EXPORTS:
        bench.export(kind)
    files = {path.name.split(".", 1)[1]: path for path in tmp_path.iterdir()}
    assert len(files) == len(EXPORTS)
    assert files["svg"].read_bytes()[:5] == b"<?xml" and files["png"].read_bytes()[1:4] == b"PNG"
    assert cxd.open_result(files["nc"]).identical(execute(bench.state.setting).result)
    assert read_state(files["json"]).setting == bench.state.setting
    header, first = files["curve.csv"].read_text().splitlines()[:2]
    assert header == "name,latency_ns,share_at_or_below" and first.split(",")[0]
    bench.export("svg")
    assert len(list(tmp_path.iterdir())) == len(EXPORTS) + 1  # nothing is overwritten


def test_kept_state_opens_again_from_the_notebook(bench, tmp_path):
    bench.change("wss", 1.4)
    bench.settle()
    bench.pin()
    bench.keep()
    output = nbformat.v4.new_output("display_data", bench.kept)
    cell = nbformat.v4.new_code_cell("cxd.explore()", outputs=[output])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "kept.ipynb")
    again = cxd.explore(state=tmp_path / "kept.ipynb")
    assert again.state.view == bench.state.view
    assert bench.kept[KEPT]["curves"][0]["accesses"] == 20_000
    again.close()


def wait_for(sweeping) -> None:
    while sweeping.control is not None:
        time.sleep(0.01)


def test_a_sweep_draws_and_can_be_cancelled(bench):
    sweeping = bench.sweeping
    sweeping.values[0].value, sweeping.values[1].value = "0.5, 2", "1, 4"
    sweeping.run()
    assert sweeping.start.disabled and not sweeping.stop.disabled
    wait_for(sweeping)
    assert not sweeping.start.disabled and sweeping.stop.disabled
    assert bool(sweeping.grid["finished"].all()) and sweeping.grid.sizes["wss"] == 2
    for metric in ("hit_ratio", "cdf"):
        sweeping.metric.value = metric
    sweeping.fields[1].value = "wss"
    sweeping.run()
    assert sweeping.control is None and "two different fields" in bench.foot.message
    whole = sweeping.grid
    sweeping.fields[1].value = "threads"
    sweeping.run()
    sweeping.cancel()
    wait_for(sweeping)
    assert "cancel" in bench.foot.message.lower() and not sweeping.start.disabled
    assert sweeping.grid is whole or not bool(sweeping.grid["finished"].all())


def test_engines_that_are_not_here_say_why(bench):
    before = bench.state.setting
    bench.change("engine", "kmod")
    assert bench.state.setting == before and "not part of this version" in bench.foot.message


@needs_live
def test_real_memory_runs_beside_the_model(bench):
    bench.change("threads", 1)
    bench.change("engine", "live")
    assert bench.settle() and bench.outcome.result.attrs["backend"] == "live", bench.foot.message
    assert bench.state.value("fault_path") == "ideal" and "live" in bench.state.setting.name()
    assert [name for name, _ in bench.table.notes] == ["residual", "late", "noise floor"]
    assert "residual" in bench.readout.html.value and bench.outcome.beside is not None
    drawn = bench.curves.plots["cdf"].pins.data["name"]
    assert drawn[0] == "the model" and "backend=\"live\"" in bench.state.setting.code()
    bench.change("engine", "dram")
    assert bench.settle() and [name for name, _ in bench.table.notes] == ["noise floor"]
    bench.undo()
    bench.undo()
    assert bench.settle() and bench.state.setting.engine == "model" and bench.state.value("fault_path") == "cxdvirt"
    assert bench.outcome.beside is None and bench.table.notes == ()
