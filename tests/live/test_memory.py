"""The memory of an open device, as a program uses it."""
import json
import os
import threading

import numba
import numpy as np
import pytest

import cxdbench as cxd

from .conftest import SMALL, needs_live

pytestmark = needs_live
PAGES = 4096 // 8


def test_an_array_is_zeros_and_keeps_what_is_written(memory):
    a = memory.array((1000, 300))
    assert a.shape == (1000, 300) and a.dtype == np.float64 and not a.any()
    pages = -(-a.nbytes // 4096)
    memory.reset_counters()
    a[:] = np.arange(a.size).reshape(a.shape)
    a.sum()
    counters = memory.counters()
    assert counters["claims"] == counters["fills"] == 2 * pages and counters["resident"] == SMALL.cache_pages
    assert counters["evictions_clean_foreground"] + counters["evictions_dirty_foreground"] == 2 * pages
    assert counters["evictions_dirty_foreground"] == pages
    np.testing.assert_array_equal(a.ravel(), np.arange(a.size))


def test_arrays_do_not_overlap(memory):
    one, two, three = memory.array(3, "u1"), memory.array((2, PAGES)), memory.array((), "i4")
    one[:], two[:], three[()] = 1, 2.0, 3
    assert one.sum() == 3 and (two == 2).all() and int(three) == 3 and memory.array((0, 4)).shape == (0, 4)


@pytest.mark.parametrize("shape, dtype, text", [
    ((1025, PAGES), "f8", "needs 1025 pages, and 1024"), ((-1,), "f8", "shape is"), ((2.5,), "f8", "shape is"),
    ((3,), object, "Python objects"), ((True,), "f8", "shape is")])
def test_what_does_not_fit_says_why(memory, shape, dtype, text):
    with pytest.raises(cxd.ConfigError, match=text):
        memory.array(shape, dtype)


@numba.njit(parallel=True, nogil=True)
def double(a):
    for i in numba.prange(a.shape[0]):
        a[i] *= 2


def test_numba_threads_work_on_it(memory):
    a = memory.array(300 * PAGES)
    a[:] = np.arange(a.size)
    double(a)
    np.testing.assert_array_equal(a, 2.0 * np.arange(a.size))


def test_python_threads_work_on_it(memory):
    a = memory.array((8, 100 * PAGES), "i8")

    def add(row):
        for _ in range(20):
            a[row] += row

    threads = [threading.Thread(target=add, args=(t,)) for t in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(a, np.repeat(20 * np.arange(8), 100 * PAGES).reshape(a.shape))


def test_files_go_through_the_alias(memory, tmp_path):
    a = memory.array(300 * PAGES)
    a[:] = np.arange(a.size)
    with open(tmp_path / "out", "wb", buffering=0) as file:
        assert memory.write(file, a) == a.nbytes
    np.testing.assert_array_equal(np.fromfile(tmp_path / "out"), a)
    b, before = memory.array(300 * PAGES), memory.counters()
    with open(tmp_path / "out", "rb", buffering=0) as file:
        assert memory.readinto(file, b) == b.nbytes
    np.testing.assert_array_equal(a, b)
    assert memory.counters()["claims"] - before["claims"] >= 300
    with pytest.raises(cxd.ConfigError, match="does not lie on this device"):
        memory.alias(np.zeros(4))
    with pytest.raises(cxd.ConfigError, match="not contiguous"):
        memory.alias(a[::2])


def test_arrays_outlive_the_device():
    memory = cxd.open_device(SMALL, compensate=False)
    a = memory.array(500 * PAGES)
    a[:] = np.arange(a.size)
    memory.close()
    memory.close()
    np.testing.assert_array_equal(a, np.arange(a.size))
    a += 1
    assert a[-1] == a.size
    for use in (memory.counters, lambda: memory.array(3), memory.settle):
        with pytest.raises(cxd.LiveError, match="closed"):
            use()


def test_several_devices_at_once():
    with cxd.open_device(SMALL, compensate=False) as one, cxd.open_device(SMALL, mode="mprotect", compensate=False) as two:
        a, b = one.array(400 * PAGES), two.array(400 * PAGES)
        a[:], b[:] = 1, 2
        a += b
        assert (a == 3).all() and one.counters()["claims"] > 800 and two.counters()["claims"] == 800


def test_change_while_open(memory):
    a = memory.array(256 * PAGES)
    a[::PAGES] = 1
    memory.reset_counters()
    memory.change(**{"nand.read_us": 3000, "semantics.writeback": "free"})
    import time
    began = time.perf_counter()
    for page in range(10):
        a[page * PAGES]
    assert time.perf_counter() - began >= 10 * 3e-3
    with pytest.raises(cxd.ConfigError, match="cache_pages"):
        memory.change(cache_pages=64)
    with pytest.raises(cxd.ConfigError, match="fault_path"):
        memory.change(fault_path="cylon")
    assert memory.device.cache_pages == 128


def test_prefetch_and_drain_run_behind():
    device = SMALL.with_(prefetch=4, drain={"pages": 16, "period_us": 1000, "high": 0.5, "low": 0.25})
    with cxd.open_device(device, compensate=False) as memory:
        a = memory.array(1000 * PAGES)
        for page in range(1000):
            a[page * PAGES] = page
        memory.settle()
        counters = memory.counters()
        assert counters["prefetch_issued"] > 100 and counters["evictions_dirty_background"] > 0
        assert counters["prefetch_asked"] == sum(counters[f"prefetch_{w}"] for w in ("dropped", "already", "issued"))
        np.testing.assert_array_equal(a[::PAGES], np.arange(1000))


def test_opens_leak_nothing(python):
    done = python("""
        import os, gc, cxdbench as cxd
        from pathlib import Path
        device = cxd.Device(cache_pages=8, capacity_pages=64, nand={"read_us": 0, "transfer_us": 0, "program_us": 0})
        def held():
            status = dict(l.split(":", 1) for l in open("/proc/self/status"))
            return (len(os.listdir("/proc/self/fd")), len(open("/proc/self/maps").readlines()), int(status["Threads"]),
                    int(status["VmRSS"].split()[0]))
        def some(n):
            for i in range(n):
                with cxd.open_device(device, compensate=False) as m:
                    a = m.array(64 * 512)
                    a[::512] += 1
                del a
            gc.collect()
        some(20)
        before = held()
        some(980)
        after = held()
        print(before, after)
        assert after[0] == before[0] and after[1] <= before[1] + 4 and after[2] == before[2] and after[3] < before[3] + 8000
        for i in range(20):    # never closed, only forgotten
            cxd.open_device(device, compensate=False).array(512)
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) == before[0]
    """, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_bad_settings_are_refused_by_name():
    for change, text in [({"fault_path": "cxdvirt"}, "fault_path"), ({"eviction": "lru"}, "policy_sees"),
                         ({"semantics.policy_sees": "accessed_bit"}, "accessed_bit"),
                         ({"semantics.write_miss": "sector"}, "sector"), ({"nand.channel_model": "slotted"}, "slotted")]:
        with pytest.raises(cxd.ConfigError, match=text):
            cxd.open_device(SMALL.with_(**change))
    for options, text in [({"mode": "magic"}, "mode is 'magic'"), ({"node": -1}, "node is -1"), ({"backend": "kmod"}, "backend")]:
        with pytest.raises(cxd.ConfigError, match=text):
            cxd.open_device(SMALL, **options)
    with pytest.raises(cxd.LiveError, match="node is 900"):
        cxd.open_device(SMALL, node=900)
    with pytest.raises(cxd.ConfigError, match="device is str"):
        cxd.open_device("cxdvirt")


def test_a_measured_run_describes_itself():
    result = cxd.run(SMALL, cxd.Chase(wss=2, threads=1, accesses=20_000, write_share=0.2), "live", node=0)
    assert all(identity.holds for identity in cxd.check(result)) and result.attrs["backend"] == "live"
    assert set(json.loads(result.attrs["noise_floor_ns"])) == {"p50", "p90", "p99", "p999"}
    assert 0 <= result.attrs["late_share"] <= 1 and json.loads(result.attrs["live"])["compensated"]
    assert result.attrs["oversubscribed"] == 0 and int(result["stage_sum_ns"].sum()) > 0
    crowd = cxd.run(SMALL, cxd.Chase(wss=2, threads=4 * os.cpu_count(), accesses=20_000), "live", compensate=False)
    assert crowd.attrs["oversubscribed"] == 1 and "threads share fewer cores" in crowd.attrs["warnings"]


def test_plain_memory_only_hits():
    result = cxd.run(SMALL, cxd.Chase(wss=2, threads=2, accesses=50_000), "dram")
    assert result["count"].values.tolist() == [50_000, 0, 0] and all(i.holds for i in cxd.check(result))


@pytest.mark.parametrize("options, text", [
    ({"backend": "model", "node": 0}, "node is 0"), ({"backend": "model", "mode": "sigbus"}, "mode"),
    ({"backend": "dram", "compensate": True}, "compensate"), ({"backend": "live", "log": True}, "log is True"),
    ({"backend": "live", "mode": "x"}, "mode is 'x'"), ({"backend": "live", "node": 1.5}, "node is 1.5"),
    ({"backend": "live", "compensate": 3}, "compensate is 3")])
def test_options_of_other_engines_are_refused(options, text):
    with pytest.raises(cxd.ConfigError, match=text):
        cxd.run(SMALL, cxd.Chase(threads=1, accesses=100), **options)


def test_seeds_and_sweeps_go_one_at_a_time():
    result = cxd.run(SMALL, cxd.Chase(threads=1, accesses=2000), "live", seeds=2, compensate=False)
    assert result.sizes["seed"] == 2
    grid = cxd.sweep(SMALL, cxd.Chase(threads=1, accesses=2000), {"wss": [0.5, 2.0]}, backend="live", progress=False)
    assert bool(grid["finished"].all()) and float(grid["count"].sel(outcome="miss", wss=0.5)) == 0


# Found by use
def test_numpy_integers_make_a_shape(memory):
    assert memory.array((np.int64(4), np.int32(2))).shape == (4, 2) and memory.array(np.int64(3)).shape == (3,)
    assert memory.array((2, 3)).sum() == 0 and len(memory.alias(memory.array((0, 4)))) == 0
    for wrong in (3.0, None):
        with pytest.raises(cxd.ConfigError, match="shape is"):
            memory.array(wrong)


@pytest.mark.parametrize("mode", ["sigbus", "guard", "mprotect", "thread"])
def test_arrays_are_plain_memory_after_a_close_under_load(mode, python):
    done = python(f"""
        import cxdbench as cxd, threading
        device = cxd.Device(cache_pages=64, capacity_pages=512, prefetch=2, nand={{"read_us": 1, "transfer_us": 1, "program_us": 1}},
                            drain={{"pages": 64, "period_us": 5, "high": .2, "low": .05}})
        for _ in range(25):
            memory = cxd.open_device(device, mode="{mode}", compensate=False)
            a, stop = memory.array(500 * 512), threading.Event()
            def write():
                while not stop.is_set():
                    a[::512] += 1
            thread = threading.Thread(target=write)
            thread.start()
            memory.close()
            stop.set()
            thread.join()
            a[::512] += 1
        print("done")
    """, timeout=60)
    assert done.stdout == "done\n", done.stdout + done.stderr


def test_a_mapping_taken_away_comes_back(memory):
    import ctypes
    a = memory.array(10 * PAGES)
    a[::PAGES] = 1
    assert ctypes.CDLL(None).madvise(ctypes.c_void_p(a.ctypes.data), ctypes.c_size_t(4096), 4) == 0
    assert a[0] == 1


def test_counters_set_to_zero_amid_evictions_still_settle():
    device = SMALL.with_(**{"nand.program_us": 100})
    with cxd.open_device(device, compensate=False) as memory:
        a, stop = memory.array(500 * PAGES), threading.Event()

        def write():
            while not stop.is_set():
                a[::PAGES] += 1

        thread = threading.Thread(target=write)
        thread.start()
        for _ in range(20):
            memory.reset_counters()
        stop.set()
        thread.join()
        memory.settle()


def test_a_slow_device_opens_soon():
    import time
    began = time.perf_counter()
    with cxd.open_device(SMALL.with_(**{"nand.read_us": 1e6})):
        assert time.perf_counter() - began < 5
