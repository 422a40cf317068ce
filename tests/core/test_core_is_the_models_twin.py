"""The C core driven through the model's loop equals the model: the log event for event, and all counts."""

from itertools import product

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cxdbench.device import Device
from cxdbench.result import COUNTERS, EVENTS, OUTCOMES, STAGES, event_log
from cxdbench.run import run

from .. import test_model_equals_oracle as oracle
from . import binding
from .driver import Driver


def differences(device, workload, asks: bool = False) -> list[str]:
    """What the core and the model say differently; the first event where their logs part comes first."""
    result, driver = run(device, workload, log=True), Driver(device, workload, asks)
    driver.run()
    found, counts = [], driver.core.counts()
    states = driver.core.pages_by_state()

    def compare(name, core, model):
        if core != model:
            found.append(f"{name}: core {core}, model {model}")

    model_log = [(t_ns, thread, page, EVENTS.index(kind))
                 for t_ns, thread, page, kind in event_log(result).itertuples(index=False, name=None)]
    log = driver.log()
    for i, (ours, theirs) in enumerate(zip(log, model_log, strict=False)):
        if ours != theirs:
            found.append(f"log[{i}]: core {ours}, model {theirs}, after {model_log[max(0, i - 5):i]}")
            break
    compare("events", len(log), len(model_log))

    counts |= {"resident_start": driver.resident_start, "resident_end": counts["resident"],
               "unsettled_end": states[binding.LOADING] + states[binding.EVICTING], "prefetch_unseen": states[4]}
    for name in COUNTERS:
        compare(name, counts.get(name, 0), int(result[name]))  # 0: what neither of them does
    compare("census", states[binding.CACHED], counts["resident"])
    for kind, by in product(("clean", "dirty"), ("foreground", "background")):
        compare(f"{kind}_{by}", counts[f"{kind}_{by}"], int(result["evictions"].sel(kind=kind, by=by)))
    compare("transitions", [counts["claims"] + counts["prefetch_issued"], counts["fills"], counts["evict_begun"],
                            counts["evict_ended"]], result["transitions"].values.tolist())

    for name, outcome in (("hits", "hit"), ("misses", "miss"), ("waits", "waited"), ("sum_ns", "sum_ns")):
        compare(f"thread {name}", driver.by_thread[outcome], result[f"thread_{name}"].values.tolist())
    compare("thread run_ns", [thread.end - driver.t0 for thread in driver.threads],
            result["thread_run_ns"].values.tolist())
    names = {"hit": "hit", "miss": "miss", "wait": "waited"}
    for outcome in OUTCOMES:
        values, of = driver.latencies[names[outcome]], result.sel(outcome=outcome)
        compare(f"{outcome} latency", [len(values), sum(values), min(values, default=0), max(values, default=0)],
                [int(of[name]) for name in ("count", "sum_ns", "min_ns", "max_ns")])
    compare("stages", [driver.stages[stage] for stage in STAGES], result["stage_sum_ns"].values.sum(axis=1).tolist())
    return found


def agree(device, workload, asks: bool = False) -> None:
    found = differences(device, workload, asks)
    assert not found, "\n".join([device.model_dump_json(), workload.model_dump_json(), *found])


def ideal(device: Device) -> Device:
    return device.model_copy(update={"fault_path": Device(fault_path="ideal").fault_path})


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_core_is_the_models_twin(data):
    device = ideal(data.draw(oracle.devices()))
    agree(device, data.draw(oracle.workloads(device)))


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_core_is_the_models_twin_with_many_threads(data):
    device = ideal(data.draw(oracle.devices(caches=st.integers(65, 90))))
    agree(device, data.draw(oracle.workloads(device, threads=st.integers(30, 64))))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_core_is_the_models_twin_where_it_must_ask_for_dirty_bits(data):
    device = ideal(data.draw(oracle.devices()))
    agree(device, data.draw(oracle.workloads(device)), asks=True)
