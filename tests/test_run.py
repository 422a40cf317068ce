"""run(): what a device does to a workload, and how a run is repeated, watched, stopped and saved."""
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cxdbench as cxd
from cxdbench import bins
from cxdbench.summary import percentiles

IDEAL = cxd.Device(cache_pages=2048, capacity_pages=40_960)


def ratio(device, workload) -> float:
    return cxd.summary(cxd.run(device, workload))["hit_ratio"]


def test_hit_ratios_of_a_random_chase():
    cycle = ratio(IDEAL, cxd.Chase(wss=2.5, accesses=400_000))
    draws = ratio(IDEAL, cxd.Chase(wss=2.5, pattern="random", accesses=400_000))
    assert cycle == pytest.approx(0.370, abs=0.004)  # one cycle over 512 B nodes: below the bound of 1 / WSS
    assert draws == pytest.approx(0.400, abs=0.004)


def test_a_set_that_fits_always_hits():
    assert ratio(IDEAL, cxd.Chase(wss=0.9, accesses=50_000)) == 1
    cold = cxd.run(IDEAL, cxd.Chase(wss=0.9, accesses=200_000, start="cold"))
    assert int(cold["count"].sel(outcome="miss")) == round(0.9 * 2048) // 8 * 8


def test_policies_differ_as_they_should():
    scan = cxd.Chase(wss=1.5, threads=1, pattern="sequential", node_bytes=4096, accesses=50_000)
    by = {kind: ratio(IDEAL.with_(eviction={"kind": kind, "protect": 16}), scan) for kind in ("fifo", "lru", "lifo")}
    assert by["fifo"] == by["lru"] == 0 and by["lifo"] > 0.4
    zipf = cxd.Zipf(wss=10, accesses=300_000)
    by = {kind: ratio(IDEAL.with_(eviction=kind), zipf) for kind in ("fifo", "clock", "lru")}
    assert by["fifo"] < by["clock"] and by["fifo"] < by["lru"]
    blind = IDEAL.with_({"semantics.policy_sees": "faults"})
    assert ratio(blind.with_(eviction="clock"), zipf) == ratio(blind, zipf) == by["fifo"]


def test_ideal_adds_nothing_and_a_kernel_fault_its_quantiles():
    chase = cxd.Chase(threads=1, wss=2, accesses=400_000)
    ideal, fault = (cxd.summary(cxd.run(IDEAL.with_(fault_path=path), chase)) for path in ("ideal", "cxdvirt"))
    assert ideal["excess_p50_ns"] == ideal["excess_p999_ns"] == ideal["residual_p999_ns"] == 0
    low, median, p99, p999, _ = IDEAL.with_(fault_path="cxdvirt").fault_path.overhead_us
    assert fault["excess_p50_ns"] == pytest.approx(median * 1000, rel=0.02)
    assert fault["excess_p99_ns"] == pytest.approx(p99 * 1000, rel=0.02)
    assert fault["excess_p999_ns"] == pytest.approx(p999 * 1000, rel=0.35)  # some 180 samples lie beyond
    assert fault["miss_p50_ns"] > 6200 + low * 1000


def test_prefetch_turns_misses_of_a_scan_into_useful_or_late():
    scan = cxd.Chase(wss=3, threads=1, pattern="sequential", accesses=100_000)
    without, with_ = (cxd.run(IDEAL.with_(prefetch={"pages": n, "start_delay_us": 0}), scan) for n in (0, 4))
    saved = int(with_["prefetch_useful"]) + int(with_["prefetch_late"])
    assert saved > 0.6 * int(without["count"].sel(outcome="miss"))
    assert int(with_["count"].sel(outcome="miss")) < 0.4 * int(without["count"].sel(outcome="miss"))


def test_writes_make_dirty_victims_and_a_drain_takes_them_off_the_faults():
    chase = cxd.Chase(wss=2, write_share=0.5, accesses=60_000, think_ns=2000)
    plain = cxd.run(IDEAL, chase)["evictions"].sel(kind="dirty")
    drained = cxd.run(IDEAL.with_(drain={"pages": 64, "period_us": 100}), chase)["evictions"].sel(kind="dirty")
    assert int(plain.sel(by="background")) == 0 < int(plain.sel(by="foreground"))
    assert int(drained.sel(by="foreground")) < int(drained.sel(by="background"))
    free = cxd.run(IDEAL.with_({"semantics.writeback": "free"}), chase)
    assert int(free["nand_programs"]) == 0 < int(free["evictions"].sel(kind="dirty").sum())


def test_same_seed_same_bytes(tmp_path):
    device, chase = IDEAL.with_(fault_path="cylon", prefetch=2), cxd.Chase(wss=2, write_share=0.2, accesses=50_000)
    one, two = cxd.run(device, chase), cxd.run(device, chase)
    assert one.identical(two)
    assert not one.equals(cxd.run(device, chase.with_(seed=2)))
    cxd.save_result(one, tmp_path / "one.nc")
    back = cxd.open_result(tmp_path / "one.nc")
    assert back.attrs == one.attrs and list(back) == list(one)
    for name in one.variables:
        assert np.array_equal(back[name].values, one[name].values), name
    assert [p.name for p in tmp_path.iterdir()] == ["one.nc"]


def test_seeds_give_intervals():
    result = cxd.run(IDEAL, cxd.Chase(accesses=20_000), seeds=3)
    assert result["seed"].values.tolist() == [1, 2, 3]
    alone = cxd.summary(cxd.run(IDEAL, cxd.Chase(accesses=20_000, seed=2)))["miss_mean_ns"]
    table = cxd.summary(result)
    assert table["miss_mean_ns_low"] <= table["miss_mean_ns"] <= table["miss_mean_ns_high"]
    assert table["miss_mean_ns_low"] <= alone <= table["miss_mean_ns_high"]


def test_the_log_tells_what_the_counters_count():
    result = cxd.run(IDEAL.with_(prefetch=2), cxd.Chase(wss=2, write_share=0.3, accesses=20_000), log=True)
    log = cxd.event_log(result)
    assert (log.t_ns.diff().dropna() >= 0).all()
    kinds = log.kind.value_counts()
    assert kinds["fill"] == int(result["count"].sel(outcome="miss"))
    assert kinds["hit"] == int(result["count"].sel(outcome="hit"))
    assert kinds["install"] == int(result["fills"]) and kinds["prefetch"] == int(result["prefetch_issued"])
    assert kinds["evict_dirty"] == int(result["evictions"].sel(kind="dirty").sum())
    assert kinds["program"] == int(result["nand_programs"])
    plain = cxd.run(IDEAL.with_(prefetch=2), cxd.Chase(wss=2, write_share=0.3, accesses=20_000))
    assert plain.equals(result[list(plain)])


def test_cancel_stops_a_long_run_within_a_second():
    control = cxd.Control()
    timer = threading.Timer(0.5, control.cancel)
    timer.start()
    with pytest.raises(cxd.Cancelled):
        cxd.run(IDEAL, cxd.Chase(accesses=10**9), control=control)
    timer.join()
    assert 0 < control.progress < 1


def test_ctrl_c_stops_a_long_run_within_a_second():
    code = ("import cxdbench as cxd; d = cxd.Device(cache_pages=2048, capacity_pages=40960)\n"
            "cxd.run(d, cxd.Chase(accesses=1000)); print('go', flush=True); cxd.run(d, cxd.Chase(accesses=10**10))")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "go\n"
    time.sleep(0.5)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors and time.monotonic() - began < 5  # a second, and Python's own way out


def slow_bin(v: int) -> int:
    """The bins by counting up through their widths."""
    v = min(v, 2**40 - 1)
    first, edge, width = 0, 0, 1
    while True:
        block = 128
        if v < edge + block * width:
            return first + (v - edge) // width
        first, edge = first + block, edge + block * width
        width *= 2 if edge > 128 else 1


@given(st.integers(0, 2**41) | st.integers(0, 41).map(lambda k: 2**k) | st.integers(1, 41).map(lambda k: 2**k - 1))
def test_bins_against_counting(v):
    index = int(bins.bins_of(np.array([v], np.uint64))[0])
    assert index == slow_bin(v)
    low, width = int(bins.lower_edges()[index]), int(bins.widths()[index])
    if v < 2**40:
        assert low <= v < low + width and (width == 1 or width / low <= 0.008)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=300))
def test_percentiles_against_sorting(samples):
    counts = np.bincount(bins.bins_of(np.array(samples, np.uint64)), minlength=bins.N_BINS)
    levels = [0.1, 0.5, 0.9, 0.99]
    ours = percentiles(counts, levels, faint=True)
    exact = np.quantile(samples, levels, method="inverted_cdf")
    assert np.all(np.abs(ours - exact) <= 0.004 * exact + 0.5)
    beyond = np.array([len(samples) * (1 - level) for level in levels])
    assert np.array_equal(np.isnan(percentiles(counts, levels)), beyond < 20 - 1e-6)
