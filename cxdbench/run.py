"""run(): one device, one workload, one engine, one result."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from numbers import Integral

import xarray as xr

from cxdbench.control import Control, interruptible
from cxdbench.device import ConfigError, Device
from cxdbench.live import engine as live
from cxdbench.live import settings as live_settings
from cxdbench.live.binding import LiveError
from cxdbench.live.host import why_not
from cxdbench.model import engine as model
from cxdbench.model import inputs
from cxdbench.result import dataset
from cxdbench.workload import Trace, Workload, working_set_pages

MAX_LOGGED = 2_000_000  # accesses of a run that keeps its events, some 32 bytes each
BACKENDS = ("model", "live", "dram", "kmod")
ON_REAL_MEMORY = ("live", "dram")
MEASURED_INSTEAD = ("hit_ns", "prefetch.push_ns")  # on real memory, what it takes
NOT_YET = {"kmod": "the kernel-module engine is not part of this version"}


def unavailable(backend: str) -> str:
    """Why an engine cannot run here, with what mends it; "" if it can."""
    if backend in ON_REAL_MEMORY:
        return why_not()
    return NOT_YET.get(backend, "")


def validate(device: Device, workload: Workload, backend: str = "model") -> None:
    """Raise the ConfigError that `run` would raise, without its work; a Trace's accesses are read for it."""
    recognise(device, workload, backend)
    if isinstance(workload, Trace):
        inputs.prepare(device, workload)
    else:
        inputs.refuse(device, workload)
        working_set_pages(workload, device)


def recognise(device: Device, workload: Workload, backend: str) -> None:
    """Raise ConfigError unless these are a device, a workload and an engine that can run here."""
    if not isinstance(device, Device):
        raise ConfigError(f"device is {type(device).__name__}: a cxdbench.Device is needed")
    if not isinstance(workload, Workload) or type(workload) is Workload:
        raise ConfigError(f"workload is {type(workload).__name__}: Chase, Zipf or Trace is needed")
    if backend not in BACKENDS:
        raise ConfigError(f"backend is {backend!r}: allowed: {', '.join(BACKENDS)}")
    if why := unavailable(backend):
        raise ConfigError(f"backend is {backend!r}: {why}; use 'model'")
    if backend == "live":
        live_settings.refuse(device)


def run(device: Device, workload: Workload, backend: str = "model", *, seeds: int | None = None, log: bool = False,
        control: Control | None = None, node: int | None = None, mode: str | None = None,
        compensate: bool | None = None) -> xr.Dataset:
    """Run a workload on a device and return the Dataset described in `result.dataset`.

    backend: "model" (virtual time), "live" (real page faults), "dram" (plain memory). seeds=n repeats with seeds
    seed … seed + n - 1 and adds the dimension `seed`. log=True keeps every event (`event_log`; model only). control:
    watch and cancel from another thread. node: NUMA node of the memory (live, dram). mode, compensate: as in
    `open_device` (live). Raises ConfigError before any work for what does not fit, Cancelled when stopped.
    """
    recognise(device, workload, backend)
    options = _options(backend, log, node=node, mode=mode, compensate=compensate)
    if log and (accesses := _accesses(workload)) > MAX_LOGGED:
        raise ConfigError(f"{type(workload).__name__}.accesses is {accesses}: with log=True at most {MAX_LOGGED}")
    if seeds is None:
        return _one(device, workload, backend, log, control, options)
    if isinstance(seeds, bool) or not isinstance(seeds, Integral) or not 1 <= seeds <= 1000:
        raise ConfigError(f"seeds is {seeds!r}: must be a whole number from 1 to 1000")
    if log:
        raise ConfigError("log is True: a log is kept of one run, so not together with seeds")
    several, control = [workload.with_(seed=workload.seed + i) for i in range(seeds)], control or Control()

    def work() -> list[xr.Dataset]:
        with ThreadPoolExecutor(max_workers=at_once(backend, 2)) as pool:
            return list(pool.map(lambda w: _one(device, w, backend, False, control, options), several))

    parts = interruptible(work, control.cancel)
    return xr.concat(parts, xr.Variable("seed", [w.seed for w in several]), combine_attrs="override",
                     coords="minimal", compat="override", join="override")


def _accesses(workload: Workload) -> int:
    if workload.accesses is not None:
        return workload.accesses
    return len(workload.pages) if workload.pages is not None else len(workload.load())


def unused(backend: str, field: str) -> bool:
    """Whether an engine on real memory has no use for a field of the device, which it then cannot vary."""
    if backend == "dram":
        return field not in ("cache_pages", "capacity_pages")
    return backend == "live" and field in MEASURED_INSTEAD


def at_once(backend: str, most: int) -> int:
    """Runs that may go side by side: what is measured in real time goes alone."""
    return 1 if backend in ON_REAL_MEMORY else most


def _options(backend: str, log: bool, **options) -> dict:
    """What only some engines take. ConfigError where this one does not."""
    takes = {"live": ("node", "mode", "compensate"), "dram": ("node",)}.get(backend, ())
    for name, value in options.items():
        if value is not None and name not in takes:
            raise ConfigError(f"{name} is {value!r}: the {backend} engine does not take it")
    if not isinstance(log, bool):
        raise ConfigError(f"log is {log!r}: must be True or False")
    given = {name: value for name, value in options.items() if value is not None}
    live_settings.check_options(**given)
    if log and backend != "model":
        raise ConfigError(f"log is True: the {backend} engine keeps no event log; use 'model'")
    return given


def _one(device: Device, workload: Workload, backend: str, log: bool, control: Control | None,
         options: dict) -> xr.Dataset:
    if backend in ON_REAL_MEMORY:
        try:
            measured = live.measure(device, workload, backend, control=control, **options)
        except LiveError as error:
            raise ConfigError(f"backend is {backend!r}: {error}") from error
        return dataset(measured, device, workload, backend)
    try:
        measured = model.measure(device, workload, log=log, control=control)
    except MemoryError as error:
        raise ConfigError(f"the run needs more memory than there is ({error}): lower wss, cache_pages or "
                          "capacity_pages") from error
    if measured.log_lost:
        raise ConfigError(f"log is True: the run has {measured.log_lost} events more than a log can hold; "
                          "lower accesses")
    return dataset(measured, device, workload, backend)
