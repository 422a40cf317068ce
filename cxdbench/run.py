"""run(): one device, one workload, one engine, one result."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from numbers import Integral

import xarray as xr

from cxdbench.control import Control, interruptible
from cxdbench.device import ConfigError, Device
from cxdbench.model import engine as model
from cxdbench.model import inputs
from cxdbench.result import dataset
from cxdbench.workload import Trace, Workload, working_set_pages

MAX_LOGGED = 2_000_000  # accesses of a run that keeps its events, some 32 bytes each
BACKENDS = ("model", "live", "kmod", "dram")
NOT_HERE = {
    "live": "the live engine (real page faults in user space) is not part of this version",
    "kmod": "the kernel-module engine is not part of this version",
    "dram": "the plain-memory baseline is not part of this version",
}


def validate(device: Device, workload: Workload, backend: str = "model") -> None:
    """Raise the ConfigError that `run` would raise, without its work; a Trace's accesses are read for it."""
    recognise(device, workload, backend)
    if isinstance(workload, Trace):
        inputs.prepare(device, workload)
    else:
        inputs.refuse(device, workload)
        working_set_pages(workload, device)


def recognise(device: Device, workload: Workload, backend: str) -> None:
    """Raise ConfigError unless these are a device, a workload and an engine of this version."""
    if not isinstance(device, Device):
        raise ConfigError(f"device is {type(device).__name__}: a cxdbench.Device is needed")
    if not isinstance(workload, Workload) or type(workload) is Workload:
        raise ConfigError(f"workload is {type(workload).__name__}: Chase, Zipf or Trace is needed")
    if backend not in BACKENDS:
        raise ConfigError(f"backend is {backend!r}: allowed: {', '.join(BACKENDS)}")
    if backend in NOT_HERE:
        raise ConfigError(f"backend is {backend!r}: {NOT_HERE[backend]}; use 'model'")


def run(device: Device, workload: Workload, backend: str = "model", *, seeds: int | None = None, log: bool = False,
        control: Control | None = None) -> xr.Dataset:
    """Run a workload on a device and return the Dataset described in `result.dataset`.

    backend: "model". seeds=n repeats with seeds seed … seed + n - 1 and adds the dimension `seed`. log=True keeps
    every event (`event_log`). control: watch and cancel from another thread. Raises ConfigError before any work for
    what does not fit, Cancelled when stopped.
    """
    recognise(device, workload, backend)
    if log and (workload.accesses or 0) > MAX_LOGGED:
        raise ConfigError(f"{type(workload).__name__}.accesses is {workload.accesses}: with log=True at most {MAX_LOGGED}")
    if log and (workload.accesses or 0) > model.MAX_LOG_EVENTS:
        raise ConfigError(f"log is True: {type(workload).__name__}.accesses is {workload.accesses}, and a log holds "
                          f"at most {model.MAX_LOG_EVENTS} events, one or more an access")
    if seeds is None:
        return _one(device, workload, backend, log, control)
    if isinstance(seeds, bool) or not isinstance(seeds, Integral) or not 1 <= seeds <= 1000:
        raise ConfigError(f"seeds is {seeds!r}: must be a whole number from 1 to 1000")
    if log:
        raise ConfigError("log is True: a log is kept of one run, so not together with seeds")
    several, control = [workload.with_(seed=workload.seed + i) for i in range(seeds)], control or Control()

    def work() -> list[xr.Dataset]:
        with ThreadPoolExecutor(max_workers=2) as pool:
            return list(pool.map(lambda w: _one(device, w, backend, False, control), several))

    parts = interruptible(work, control.cancel)
    return xr.concat(parts, xr.Variable("seed", [w.seed for w in several]), combine_attrs="override",
                     coords="minimal", compat="override", join="override")


def _one(device: Device, workload: Workload, backend: str, log: bool, control: Control | None) -> xr.Dataset:
    measured = model.measure(device, workload, log=log, control=control)
    if measured.log_lost:
        raise ConfigError(f"log is True: the run has {measured.log_lost} events more than a log can hold; "
                          "lower accesses")
    return dataset(measured, device, workload, backend)
