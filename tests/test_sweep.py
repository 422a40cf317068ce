"""sweep(): its Dataset against run(), its errors, and what cancelling, killing and resuming leave."""
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import cxdbench as cxd
from cxdbench.axes import units
from cxdbench.sweep import SweepCancelled, SweepControl, point, sweep

DEVICE = cxd.Device.named("cxdvirt").scaled(cache_pages=512)
CHASE = cxd.Chase(accesses=4_000)
LONG = cxd.Chase(accesses=10**11, threads=2)


def quiet(*args, **kwargs):
    return sweep(*args, progress=False, **kwargs)


def test_a_point_is_what_run_gives():
    axes = {"wss": [0.35, 2.2], "threads": [1, 8], "fault_path": ["cylon", "ideal"], "nand.read_us": [3, 25.5]}
    grid = quiet(DEVICE, CHASE, axes)
    assert grid["latency"].dims == ("wss", "threads", "fault_path", "nand.read_us", "outcome", "bin")
    assert grid["finished"].all() and grid.sizes["thread"] == 8
    for wss in axes["wss"]:
        for threads in axes["threads"]:
            for path in axes["fault_path"]:
                for read_us in axes["nand.read_us"]:
                    alone = cxd.run(DEVICE.with_(fault_path=path, **{"nand.read_us": read_us}),
                                    CHASE.with_(wss=wss, threads=threads))
                    one = point(grid, {"nand.read_us": read_us}, wss=wss, threads=threads, fault_path=path)
                    assert one.identical(alone)
                    assert all(one[name].values.tobytes() == alone[name].values.tobytes() for name in alone.data_vars)
                    assert all(identity.holds for identity in cxd.check(one))


def test_coordinates_are_named_and_have_units():
    axes = {"nand.erase_us": [0, 1000], "hit_ns": [100], "node_bytes": np.array([64, 512]), "cache_pages": [256],
            "prefetch": [0, 2], "wss": [1.5], "pattern": ["cycle"]}
    grid = quiet(DEVICE, CHASE, axes)
    assert list(grid["count"].dims[:-1]) == list(axes)
    assert {name: grid[name].attrs.get("units") for name in axes} == {
        "nand.erase_us": "us", "hit_ns": "ns", "node_bytes": "B", "cache_pages": "pages", "prefetch": "pages",
        "wss": "1", "pattern": None}
    assert grid["node_bytes"].values.tolist() == [64, 512]
    assert units("drain.period_us") == "us" and units("drain.pages") == "pages" and units("threads") == "1"


def test_values_that_are_no_numbers_become_words():
    grid = quiet(DEVICE, CHASE, {"nand.read_us": [3, (3, 25)], "drain.stop": [None, 10], "shared": [True, False]})
    assert grid["nand.read_us"].values.tolist() == ["3", "3, 25"]
    assert grid["drain.stop"].values.tolist() == ["None", "10"]
    one = point(grid, {"nand.read_us": (3, 25), "drain.stop": None}, shared=True)
    assert one.identical(cxd.run(DEVICE.with_({"nand.read_us": (3, 25)}), CHASE.with_(shared=True)))


def test_threads_a_point_does_not_have_count_nothing():
    grid = quiet(DEVICE, CHASE, {"threads": [1, 3, 8]})
    done = grid["thread_hits"] + grid["thread_misses"] + grid["thread_waits"]
    assert (done.sum("thread") == 4_000).all()
    assert grid["thread_exists"].sum("thread").values.tolist() == [1, 3, 8]
    assert (grid["thread_run_ns"].max("thread") == grid["run_ns"]).all()
    assert (done.where(~grid["thread_exists"], 0) == 0).all()


def test_seeds_are_a_dimension_as_in_run():
    grid = quiet(DEVICE, CHASE, {"wss": [1.5, 2.5]}, seeds=3)
    alone = cxd.run(DEVICE, CHASE.with_(wss=1.5), seeds=3)
    assert grid["count"].dims == ("wss", "seed", "outcome") and grid["seed"].values.tolist() == [1, 2, 3]
    assert grid["latency"].sel(wss=1.5).values.tobytes() == alone["latency"].values.tobytes()
    spread = cxd.summary(grid)
    assert spread["hit_ratio"].dims == ("wss",) and (spread["hit_ratio_low"] <= spread["hit_ratio"]).all()
    assert point(grid, wss=2.5, seed=2).identical(cxd.run(DEVICE, CHASE.with_(wss=2.5, seed=2)))


def test_a_trace_is_swept_over_devices(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("thread,page\n" + "".join(f"{i % 3},{i * 7 % 90}\n" for i in range(600)))
    device = cxd.Device(cache_pages=32, capacity_pages=640)
    grid = quiet(device, cxd.Trace(path=file), {"eviction": ["fifo", "lru"]}, path=tmp_path / "points")
    assert point(grid, eviction="lru").identical(cxd.run(device.with_(eviction="lru"), cxd.Trace(path=file)))
    file.write_text("thread,page\n0,1\n")  # another trace under the same name is another point
    again = quiet(device, cxd.Trace(path=file), {"eviction": ["fifo", "lru"]}, path=tmp_path / "points")
    assert again["count"].sum("outcome").values.tolist() == [1, 1]


def test_a_grid_is_saved_and_opened(tmp_path):
    grid = quiet(DEVICE, CHASE, {"nand.read_us": [3, 25], "shared": [True, False], "eviction": ["fifo", "clock"]})
    opened = cxd.open_result(cxd.save_result(grid, tmp_path / "grid.nc"))
    assert opened.identical(grid)
    alone = cxd.run(DEVICE.with_(eviction="fifo"), CHASE)
    assert point(opened, {"nand.read_us": 3}, shared=False, eviction="fifo").identical(alone)


@pytest.mark.parametrize("axes, says", [
    ({"wsss": [1]}, "axis 'wsss' is unknown: the closest names are wss"),
    ({"read_us": [1]}, "nand.read_us"),
    ({"nand.raed_us": [1]}, "the closest names are nand.read_us"),
    ({"skew": [1]}, "axis 'skew' is unknown: it is a field of Zipf, and this workload is a Chase"),
    ({"qqqq": [1]}, "a Device has cache_pages"),
    ({"wss": []}, "axis 'wss' is empty"),
    ({"wss": "1.5"}, "axis 'wss' is '1.5': must be a list of values"),
    ({"wss": 1.5}, "axis 'wss' is 1.5: must be a list of values"),
    ({"wss": [1, 1.0]}, "axis 'wss' has the value 1 2 times"),
    ({"eviction": ["fifo"], "eviction.kind": ["lru"]}, "set the same field"),
    ({}, "axes is {}"), (["wss"], "axes is ['wss']"),
    ({"wss": [1.1, 300]}, "point wss=300: Chase.wss is 300"),
    ({"threads": [1, 65], "wss": [2.5]}, "point threads=65, wss=2.5: Chase.threads is 65"),
    ({"wss": [float("nan")]}, "point wss=nan: Chase.wss is nan"),
    ({"eviction": ["fifo", "lifo"]}, "point eviction=lifo: Device.eviction.protect is 1024"),
    ({"nand.channel_model": ["slotted"]}, "point nand.channel_model=slotted: Device.nand.channel_model"),
    ({"wss": [1 + i / 1000 for i in range(200)], "think_ns": list(range(100))}, "axes give 20000 points: at most"),
])
def test_bad_axes_are_one_sentence_before_any_work(axes, says, tmp_path):
    started = []
    with pytest.raises(cxd.ConfigError) as error:
        quiet(DEVICE, LONG, axes, path=tmp_path / "points", control=SweepControl(lambda *at: started.append(at)))
    assert says in str(error.value) and "\n" not in str(error.value)
    assert not started and not (tmp_path / "points").exists()


@pytest.mark.parametrize("arguments, says", [
    ({"seeds": 0}, "seeds is 0"), ({"seeds": 1.5}, "seeds is 1.5"), ({"backend": "kmod"}, "backend is 'kmod'"),
    ({"backend": "abacus"}, "backend is 'abacus'"), ({"path": "no/such/folder"}, "'no/such'"),
    ({"path": __file__}, "must be a folder"),
])
def test_bad_arguments_are_one_sentence(arguments, says):
    with pytest.raises(cxd.ConfigError, match=says):
        quiet(DEVICE, CHASE, {"wss": [1.5]}, **arguments)


def test_arguments_that_do_not_go_together():
    with pytest.raises(cxd.ConfigError, match="not together with an axis 'seed'"):
        quiet(DEVICE, CHASE, {"seed": [1, 2]}, seeds=2)
    with pytest.raises(cxd.ConfigError, match="device is str"):
        quiet("cxdvirt", CHASE, {"wss": [1.5]})


@pytest.mark.parametrize("where, says", [
    ({"wss": 9}, "point wss is 9: the sweep has 1.5, 2.5"), ({}, "must give one value of wss"),
    ({"wss": 1.5, "threads": 8}, "must give one value of wss"),
])
def test_a_point_that_is_not_there(where, says):
    grid = quiet(DEVICE, CHASE, {"wss": [1.5, 2.5]})
    with pytest.raises(cxd.ConfigError, match=says):
        point(grid, where)


def cancel_after(control, points):
    """Cancel once `points` are done; returns a list that will hold when that was."""
    when = []

    def work():
        while control.done < points:
            time.sleep(0.005)
        time.sleep(0.3)  # the long runs are under way
        when.append(time.monotonic())
        control.cancel()

    threading.Thread(target=work).start()
    return when


def test_cancel_stops_within_a_second_and_keeps_what_is_finished(tmp_path):
    seen = []
    control = SweepControl(lambda *at: seen.append(at))
    when = cancel_after(control, 0)
    with pytest.raises(cxd.Cancelled) as stopped:
        quiet(DEVICE, LONG, {"accesses": [10**11, 10**11 + 1, 10**11 + 2]}, control=control)
    assert time.monotonic() - when[0] < 1
    assert stopped.value.partial["finished"].values.tolist() == [False] * 3 and seen == [(0, 3)]

    folder, control = tmp_path / "points", SweepControl()
    quiet(DEVICE, LONG, {"accesses": [3_000]}, path=folder)
    when = cancel_after(control, 0)
    with pytest.raises(SweepCancelled, match=r"cancelled with [01] of 3 points finished; they are kept in"):
        quiet(DEVICE, LONG, {"accesses": [3_000, 10**11, 10**11 + 1]}, control=control, path=folder)
    assert time.monotonic() - when[0] < 1
    with pytest.raises(cxd.Cancelled):  # a control stops one sweep, also one that has not begun
        quiet(DEVICE, CHASE, {"wss": [1.5]}, control=control)


def test_partial_results_hold_the_finished_points_only():
    totals = set()

    def progress(done, total):
        totals.add(total)
        if done == 2:
            control.cancel()

    control = SweepControl(progress)
    with pytest.raises(SweepCancelled) as stopped:
        quiet(DEVICE, CHASE, {"wss": [0.5, 1.1, 1.5, 2.2, 2.5], "threads": list(range(1, 17))}, control=control)
    partial = stopped.value.partial
    finished = int(partial["finished"].sum())
    assert 2 <= finished < 80 and totals == {80}
    assert int(partial["count"].sum()) == finished * 4_000
    ratio = cxd.summary(partial)["hit_ratio"]
    assert (np.isfinite(ratio) == partial["finished"]).all()
    there, gone = ({name: partial[name].values[i].item() for name, i in zip(("wss", "threads"), found[0], strict=True)}
                   for found in map(np.argwhere, (partial["finished"].values, ~partial["finished"].values)))
    assert point(partial, there).identical(cxd.run(DEVICE, CHASE.with_(there)))
    with pytest.raises(cxd.ConfigError, match="did not finish"):
        point(partial, gone)


def stamps(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("*.nc")}


SCRIPT = """
import sys, cxdbench as cxd
cxd.sweep(cxd.Device.named("cxdvirt").scaled(cache_pages=512), cxd.Chase(accesses=500_000),
          {"wss": [1.2, 1.5, 1.8, 2.1], "threads": [1, 2, 4, 8]}, path=sys.argv[1], progress=False)
"""


def test_a_killed_sweep_goes_on_without_redoing(tmp_path):
    folder = tmp_path / "points"
    child = subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder)])
    until = time.monotonic() + 300
    while len(stamps(folder)) < 3 and child.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    kept = stamps(folder)
    assert 3 <= len(kept) < 16
    halves = next(iter(kept))  # as a kill never leaves one, but a full disk may
    os.truncate(folder / halves, 1000)
    axes = {"wss": [1.2, 1.5, 1.8, 2.1], "threads": [1, 2, 4, 8]}
    grid = quiet(DEVICE, CHASE.with_(accesses=500_000), axes, path=folder)
    after = stamps(folder)
    assert len(after) == 16 and grid["finished"].all()
    assert {name for name in kept if after[name] == kept[name]} == set(kept) - {halves}
    assert (grid["count"].sum("outcome") == 500_000).all()
    alone = cxd.run(DEVICE, CHASE.with_(accesses=500_000, wss=1.8, threads=4))
    assert point(grid, wss=1.8, threads=4).identical(alone)
    # a wider sweep takes the same points from there; another device has none
    wider = quiet(DEVICE, CHASE.with_(accesses=500_000), axes | {"wss": [1.2, 1.5, 0.5]}, path=folder)
    assert len(stamps(folder)) == 20 and {n: t for n, t in stamps(folder).items() if n in after} == after
    assert isinstance(wider, xr.Dataset)
    quiet(DEVICE.with_(hit_ns=140), CHASE.with_(accesses=1_000), {"wss": [1.2]}, path=folder)
    assert len(stamps(folder)) == 21


def test_the_bar_counts_points(capfd):
    sweep(DEVICE, CHASE, {"wss": [0.5, 1.5]})
    assert "2/2" in capfd.readouterr().err
    quiet(DEVICE, CHASE, {"wss": [0.5, 1.5]})
    assert capfd.readouterr().err == ""


def test_the_package_offers_it():
    assert cxd.sweep is sweep
