"""What every engine returns: the Dataset's shape, its identities, and how it is saved and opened."""
from __future__ import annotations

import json
import os
import platform
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from cxdbench.bins import N_BINS, lower_edges, widths
from cxdbench.device import ConfigError, Device, fitted_constants
from cxdbench.summary import must_be_no_sweep
from cxdbench.workload import Workload, to_json

OUTCOMES = ("hit", "miss", "wait")
STAGES = ("exit", "lock", "refault", "reentry", "victim", "ftl", "queue", "sense", "transfer", "install")
TRANSITIONS = ("NOT_CACHED→LOADING", "LOADING→CACHED", "CACHED→EVICTING", "EVICTING→NOT_CACHED")
EVENTS = ("hit", "wait", "fill", "install", "evict_clean", "evict_dirty", "prefetch", "program", "erase")
FORMAT = "cxdbench-1"

COUNTERS = {
    "fills": "pages installed, by misses and prefetches",
    "charged": "misses charged a NAND read",
    "charged_program": "misses on never-written pages charged a program (semantics.unwritten_read)",
    "uncharged_unwritten": "misses on never-written pages, not charged (semantics.unwritten_read)",
    "uncharged_write": "write misses that fetch nothing, not charged (semantics.write_miss)",
    "refills": "fills made again, since the page was evicted before its access could be repeated, or made for an access that was served meanwhile (real faults only)",
    "refills_charged": "of these, charged a NAND read",
    "nand_reads": "NAND page reads",
    "nand_programs": "NAND page programs",
    "nand_erases": "NAND block erases",
    "read_modify_writes": "NAND reads for write-backs of partly valid pages",
    "gc_reads": "NAND reads by garbage collection",
    "prefetch_asked": "pages that prefetch was asked for",
    "prefetch_dropped": "asked, dropped: queue full, no frame, or beyond the device",
    "prefetch_already": "asked, already there when the worker came to it",
    "prefetch_issued": "asked, issued",
    "prefetch_charged": "issued, charged a NAND read",
    "prefetch_uncharged": "issued, not charged a NAND read",
    "prefetch_useful": "issued, first touched when there",
    "prefetch_late": "issued, first touched while still on its way",
    "prefetch_wasted": "issued, evicted untouched",
    "prefetch_unseen": "issued, not touched by the end",
    "resident_start": "pages cached when the timed part began",
    "resident_end": "pages cached at its end",
    "unsettled_end": "pages left LOADING or EVICTING",
}


@dataclass
class Measured:
    """What an engine measured in the timed part; `dataset` gives it names. Arrays as the Dataset's variables say."""

    latency: np.ndarray
    count: list[int]
    sum_ns: list[int]
    min_ns: list[int]
    max_ns: list[int]
    stage_sum_ns: np.ndarray
    excess: np.ndarray
    residual: np.ndarray
    thread: dict[str, np.ndarray]
    window: dict[str, np.ndarray]
    evictions: np.ndarray
    transitions: list[int]
    counters: dict[str, int]
    warmup_accesses: int
    warmup_reached: bool
    working_set_pages: int
    log: np.ndarray | None = None
    log_lost: int = 0
    note: str = ""
    warnings: list[str] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)


class Identity(NamedTuple):
    """One equation that must hold on every run."""

    name: str
    left: int
    right: int

    @property
    def holds(self) -> bool:
        return self.left == self.right


class IdentityError(RuntimeError):
    """A run broke one of its identities: a fault in the engine, never in the settings."""


def dataset(measured: Measured, device: Device, workload: Workload, backend: str) -> xr.Dataset:
    """The labelled result. Raises IdentityError if its numbers contradict each other.

    Dimensions: outcome (hit, miss, wait), bin (latency, by its lower edge), stage, sign (excess and residual below
    0, or 0 and more), thread, window (64 equal slices of the timed accesses), kind and by (of evictions), transition.
    """
    m = measured
    count = np.asarray(m.count, np.int64)
    none = count == 0

    def scalar(value: int, text: str, units: str = "1"):
        return (), np.int64(value), {"long_name": text, "units": units}

    data = {
        "latency": (("outcome", "bin"), np.asarray(m.latency, np.int64), {"long_name": "accesses", "units": "1"}),
        "count": ("outcome", count, {"long_name": "accesses", "units": "1"}),
        "sum_ns": ("outcome", np.asarray(m.sum_ns, np.int64), {"units": "ns"}),
        "min_ns": ("outcome", np.where(none, 0, np.asarray(m.min_ns, np.uint64)).astype(np.int64), {"units": "ns"}),
        "max_ns": ("outcome", np.where(none, 0, np.asarray(m.max_ns, np.uint64)).astype(np.int64), {"units": "ns"}),
        "stage_sum_ns": (("stage", "bin"), np.asarray(m.stage_sum_ns, np.int64),
                         {"long_name": "time in a stage, of the misses and waits whose latency fell in the bin",
                          "units": "ns"}),
        "excess": (("sign", "bin"), np.asarray(m.excess, np.int64),
                   {"long_name": "charged misses by observed - configured latency", "units": "1"}),
        "residual": (("sign", "bin"), np.asarray(m.residual, np.int64),
                     {"long_name": "charged misses by observed - modelled latency", "units": "1"}),
        "evictions": (("kind", "by"), np.asarray(m.evictions, np.int64), {"units": "1"}),
        "transitions": ("transition", np.asarray(m.transitions, np.int64), {"units": "1"}),
    }
    for name, values in m.thread.items():
        data[f"thread_{name}"] = ("thread", np.asarray(values, np.int64), {"units": "ns" if name.endswith("ns") else "1"})
    for name, values in m.window.items():
        data[f"window_{name}"] = ("window", np.asarray(values, np.int64), {"units": "1"})
    for name, text in COUNTERS.items():
        data[name] = scalar(m.counters.get(name, 0), text)
    data["run_ns"] = scalar(int(np.max(m.thread["run_ns"])), "the timed part, first access to last completion", "ns")
    if m.log is not None:
        for i, name in enumerate(("t_ns", "thread", "page", "kind")):
            data[f"log_{name}"] = ("event", m.log[:, i].astype(np.int64), {})
        data["log_kind"][2]["names"] = json.dumps(EVENTS)
    edges = lower_edges()
    coords = {
        "outcome": list(OUTCOMES), "stage": list(STAGES), "sign": ["below", "above"], "kind": ["clean", "dirty"],
        "by": ["foreground", "background"], "transition": list(TRANSITIONS),
        "bin": ("bin", edges, {"long_name": "lower edge of the bin", "units": "ns"}),
        "bin_width_ns": ("bin", widths(), {"units": "ns"}),
    }
    result = xr.Dataset(data, coords, _attributes(m, device, workload, backend))
    broken = [i for i in check(result) if not i.holds]
    if broken:
        raise IdentityError("; ".join(f"{i.name}: {i.left} is not {i.right}" for i in broken)
                            + f" (backend {backend}, device {device.model_dump_json()}, workload {to_json(workload)})")
    return result


def _attributes(m: Measured, device: Device, workload: Workload, backend: str) -> dict[str, Any]:
    warnings = list(m.warnings)
    if not m.warmup_reached:
        warnings.append("the warm-up ended before the cache had turned over once")
    if backend != "dram" and m.working_set_pages > device.cache_pages and int(np.sum(m.evictions)) == 0:
        warnings.append("nothing was evicted although the working set is larger than the cache: raise accesses or warmup")
    return {
        "format": FORMAT, "backend": backend, "device": device.model_dump_json(), "workload": to_json(workload),
        "seed": workload.seed, "scale": device.scale, "configured_ns": device.configured_ns(),
        "working_set_pages": m.working_set_pages, "warmup_accesses": m.warmup_accesses,
        "warnings": json.dumps(warnings), "fitted_constants": json.dumps(fitted_constants(device)), "note": m.note,
        "versions": json.dumps({p: version(p) for p in ("cxdbench", "numpy", "numba", "xarray")}
                               | {"python": platform.python_version()}),
        "cpu": cpu_name(), "os": platform.system(), "kernel": platform.release(), **m.attrs,
    }


def cpu_name() -> str:
    """The processor's own name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def check(result: xr.Dataset) -> list[Identity]:
    """The identities of one run's result, each with both sides, over the timed part."""
    one_run(result)
    def value(name: str) -> int:
        return int(result[name])

    hits, misses, waits = (int(result["count"].sel(outcome=o)) for o in OUTCOMES)
    evictions = int(result["evictions"].sum())
    reasons = value("charged_program") + value("uncharged_unwritten") + value("uncharged_write")
    begun = dict(zip(TRANSITIONS, result["transitions"].values.tolist(), strict=True))
    return [
        Identity("accesses = hits + misses + waits",
                 int(result["thread_hits"].sum() + result["thread_misses"].sum() + result["thread_waits"].sum()),
                 hits + misses + waits),
        Identity("accesses = Σ latency counts", hits + misses + waits, int(result["latency"].sum())),
        Identity("misses + refills = charged + reasons for not charging", misses + value("refills"),
                 value("charged") + reasons),
        Identity("resident_start + fills - evictions = resident_end",
                 value("resident_start") + value("fills") - evictions, value("resident_end")),
        Identity("fills = misses + refills + prefetches issued", value("fills"),
                 misses + value("refills") + value("prefetch_issued")),
        Identity("no page is left LOADING or EVICTING", value("unsettled_end"), 0),
        Identity("pages claimed = pages installed", begun[TRANSITIONS[0]], begun[TRANSITIONS[1]]),
        Identity("evictions begun = evictions ended", begun[TRANSITIONS[2]], begun[TRANSITIONS[3]]),
        Identity("evictions = Σ {clean, dirty} × {foreground, background}", begun[TRANSITIONS[2]], evictions),
        Identity("NAND reads = charged misses + charged prefetches + read-modify-writes + GC reads",
                 value("nand_reads"), value("charged") + value("prefetch_charged") + value("read_modify_writes")
                 + value("gc_reads")),
        Identity("prefetches asked = dropped + already there + issued", value("prefetch_asked"),
                 value("prefetch_dropped") + value("prefetch_already") + value("prefetch_issued")),
        Identity("prefetches issued = useful + late + wasted + unseen", value("prefetch_issued"),
                 sum(value(f"prefetch_{fate}") for fate in ("useful", "late", "wasted", "unseen"))),
        Identity("prefetches issued = charged + uncharged", value("prefetch_issued"),
                 value("prefetch_charged") + value("prefetch_uncharged")),
        Identity("Σ stages = Σ latency of misses and waits", int(result["stage_sum_ns"].sum()),
                 int(result["sum_ns"].sel(outcome=["miss", "wait"]).sum())),
        Identity("Σ latency by thread = Σ latency by outcome", int(result["thread_sum_ns"].sum()),
                 int(result["sum_ns"].sum())),
        Identity("charged misses = Σ excess counts", value("charged") - value("refills_charged"), int(result["excess"].sum())),
        Identity("charged misses = Σ residual counts", value("charged") - value("refills_charged"), int(result["residual"].sum())),
        Identity("accesses = Σ over windows", hits + misses + waits,
                 int(result["window_hits"].sum() + result["window_misses"].sum() + result["window_waits"].sum())),
    ]


def one_run(result: Any) -> None:
    """Raise ConfigError unless this is the result of one run (of one seed)."""
    must_be_no_sweep(result)
    if "seed" in result.dims:
        raise ConfigError("result holds several seeds: take one, as `result.isel(seed=0)` does")


def event_log(result: xr.Dataset):
    """The log of a run made with `log=True`, as a pandas DataFrame: t_ns, thread (-1: background), page, kind."""
    if "log_t_ns" not in result:
        raise ValueError("this result holds no event log: run it with log=True")
    import pandas as pd
    kinds = np.array(json.loads(result["log_kind"].attrs["names"]))
    return pd.DataFrame({
        "t_ns": result["log_t_ns"].values, "thread": result["log_thread"].values, "page": result["log_page"].values,
        "kind": kinds[result["log_kind"].values]})


def save_result(result: xr.Dataset, path: str | os.PathLike) -> Path:
    """Write a result or a sweep as netCDF 4, beside its place and renamed, so that a kill leaves no half file."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"path is {str(path)!r}: it is a folder")
    if not path.parent.is_dir():
        raise ValueError(f"path is {str(path)!r}: the folder {str(path.parent)!r} does not exist")
    if not isinstance(result, xr.Dataset) or result.attrs.get("format") != FORMAT:
        raise ValueError(f"result is {type(result).__name__}: must be a result or a sweep of cxdbench")
    encoding = {name: {"zlib": True, "complevel": 1} for name, var in result.data_vars.items() if var.size > 1024}
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    try:
        result.to_netcdf(beside, engine="h5netcdf", encoding=encoding)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(beside, 0o666 & ~umask)
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    return path


def open_result(path: str | os.PathLike) -> xr.Dataset:
    """Read what `save_result` wrote. ValueError, one sentence, for a missing, truncated or foreign file."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"path is {str(path)!r}: there is no such file")
    try:
        with xr.open_dataset(path, engine="h5netcdf") as file:
            result = file.load()
    except Exception as error:
        raise ValueError(f"path is {str(path)!r}: not a netCDF file that can be read ({type(error).__name__}); "
                         "it may be truncated") from None
    if result.attrs.get("format") != FORMAT or "latency" not in result:
        raise ValueError(f"path is {str(path)!r}: a netCDF file, but not a cxdbench result of format {FORMAT}")
    return result


__all__ = ["N_BINS", "Identity", "IdentityError", "Measured", "check", "dataset", "event_log", "open_result",
           "save_result"]
