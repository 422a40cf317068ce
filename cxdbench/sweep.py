"""sweep(): a grid of runs on this machine's cores, kept as they finish, cancelled within a second, resumed."""
from __future__ import annotations

import hashlib
import itertools
import math
import os
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Integral
from pathlib import Path

import xarray as xr
from tqdm.auto import tqdm

from cxdbench.axes import checked, label, names, split
from cxdbench.control import Cancelled, Control
from cxdbench.device import ConfigError, Device
from cxdbench.grid import Grid, point
from cxdbench.jit import cache_key
from cxdbench.result import FORMAT, open_result, save_result
from cxdbench.run import at_once, recognise, run, unused, validate
from cxdbench.workload import Chase, Trace, Workload, Zipf, working_set_pages

MAX_POINTS = 10_000   # some 0.7 MB each
DEVICE_FIELDS = frozenset(names(Device))
GRACE_S = 0.8         # that a cancelled sweep waits for its runs to notice


class SweepCancelled(Cancelled):
    """A sweep was stopped. `partial` is its Dataset, in which `finished` marks the points that have a result."""

    def __init__(self, message: str, partial: xr.Dataset) -> None:
        super().__init__(message)
        self.partial = partial


class SweepControl:
    """Watch and stop one sweep from another thread: `done` of `total` points are finished; `cancel()`.

    progress: called as progress(done, total), at the start and at each finished point, in the sweeping thread.
    """

    def __init__(self, progress: Callable[[int, int], None] | None = None) -> None:
        self.done = self.total = 0
        self._progress = progress
        self._lock = threading.Lock()
        self._running: set[Control] = set()
        self._cancelled = False

    def cancel(self) -> None:
        """Ask the sweep to stop; it raises SweepCancelled within a second."""
        with self._lock:
            self._cancelled = True
            for control in self._running:
                control.cancel()

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def _begin(self) -> Control:
        with self._lock:
            if self._cancelled:
                raise Cancelled("the sweep was cancelled before this point")
            control = Control()
            self._running.add(control)
            return control

    def _end(self, control: Control) -> None:
        with self._lock:
            self._running.discard(control)

    def _at(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        if self._progress:
            self._progress(done, total)


@dataclass(frozen=True)
class _Point:
    index: tuple[int, ...]
    device: Device
    workload: Workload
    file: Path | None

    @property
    def work(self) -> float:
        """Accesses of the run, roughly; a point that was kept comes before all."""
        if self.file and self.file.is_file():
            return math.inf
        if not isinstance(self.workload, Chase | Zipf):
            return self.workload.accesses or 0
        nodes = self.workload.nodes_per_page if isinstance(self.workload, Chase) else 1
        return self.workload.accesses + 2 * nodes * working_set_pages(self.workload, self.device)


def sweep(device: Device, workload: Workload, axes: dict[str, list], *, backend: str = "model",
          seeds: int | None = None, control: SweepControl | None = None, path: str | os.PathLike | None = None,
          progress: bool = True) -> xr.Dataset:
    """Run every point of a grid, one run a core, and return one Dataset (see `grid.Grid`; `point` takes one out).

    axes: dotted fields of the device or the workload, each with its values: {"wss": [.35, 1.1], "nand.read_us":
    [3, 25]}. They become the leading dimensions and, with units, the coordinates. seeds=n adds the dimension `seed`
    (the workload's seed and the n - 1 after it). path: a folder that keeps each point as it finishes; the same
    points are then read from it, not run again, whatever stopped or changed the sweep. progress: draw a bar.

    Raises ConfigError before any work, naming the point that does not fit. Ctrl-C and `control.cancel()` raise
    SweepCancelled with what is finished.
    """
    recognise(device, workload, backend)
    axes = checked(axes, type(workload))
    for name in axes:
        if name in DEVICE_FIELDS and unused(backend, name):
            raise ConfigError(f"axis {name!r} changes nothing: the {backend} engine has no use for it")
    if seeds is not None:
        axes["seed"] = _seeds(seeds, axes, workload)
    total = math.prod(map(len, axes.values()))
    if total > MAX_POINTS:
        raise ConfigError(f"axes give {total} points: at most {MAX_POINTS} in one sweep")
    control = control or SweepControl()
    folder = _folder(path)
    points = _plan(device, workload, axes, backend, folder, control)
    if folder:
        folder.mkdir(exist_ok=True)
    grid = Grid(axes, device, workload)
    with tqdm(total=total, desc="sweep", unit="point", disable=not progress) as bar:
        _run_all(points, grid, control, backend, bar)
    if not grid.finished.all():
        kept = f"; they are kept in {folder}, from where the same sweep goes on" if folder else ""
        raise SweepCancelled(f"cancelled with {grid.finished.sum()} of {total} points finished{kept}", grid.dataset())
    return grid.dataset()


def _seeds(seeds: int, axes: dict[str, list], workload: Workload) -> list[int]:
    if isinstance(seeds, bool) or not isinstance(seeds, Integral) or not 1 <= seeds <= 1000:
        raise ConfigError(f"seeds is {seeds!r}: must be a whole number from 1 to 1000")
    if "seed" in axes:
        raise ConfigError(f"seeds is {seeds}: not together with an axis 'seed'")
    return [workload.seed + i for i in range(seeds)]


def _folder(path: str | os.PathLike | None) -> Path | None:
    if path is None:
        return None
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"path is {str(path)!r}: must be a folder, in which each point is kept, and this is a file")
    there = folder if folder.is_dir() else folder.parent
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise ConfigError(f"path is {str(path)!r}: the folder {str(there)!r} does not exist or cannot be written to")
    return folder


def _plan(device: Device, workload: Workload, axes: dict[str, list], backend: str, folder: Path | None,
          control: SweepControl) -> list[_Point]:
    """Every point, each found to fit; fewer if cancelled meanwhile."""
    points, digests = [], {}
    for numbered in itertools.product(*(enumerate(values) for values in axes.values())):
        if control.cancelled:
            break
        index, values = zip(*numbered, strict=True)
        changes = dict(zip(axes, values, strict=True))
        try:
            to_device, to_workload = split(changes, type(workload))
            its_device = device.with_(to_device) if to_device else device
            its_workload = workload.with_(to_workload) if to_workload else workload
            validate(its_device, its_workload, backend)
        except ConfigError as error:
            named = ", ".join(f"{name}={label(value)}" for name, value in changes.items())
            raise ConfigError(f"point {named}: {error}") from None
        file = folder / f"{_key(its_device, its_workload, backend, digests)}.nc" if folder else None
        points.append(_Point(index, its_device, its_workload, file))
    return points


def _key(device: Device, workload: Workload, backend: str, digests: dict[str, str]) -> str:
    """Hash of all that decides a point's result: settings, a trace's contents, the engine and its version."""
    parts = [FORMAT, version("cxdbench"), cache_key(), backend, device.model_dump_json(),
             type(workload).__name__, workload.model_dump_json()]
    if isinstance(workload, Trace) and workload.path is not None:
        if workload.path not in digests:
            digests[workload.path] = hashlib.sha256(Path(workload.path).read_bytes()).hexdigest()
        parts.append(digests[workload.path])
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _run_all(points: list[_Point], grid: Grid, control: SweepControl, backend: str, bar: tqdm) -> None:
    """Fill the grid, kept points and then the biggest runs first; returns early, with what there is, when cancelled."""
    pool = ThreadPoolExecutor(at_once(backend, _cores()), thread_name_prefix="cxdbench-sweep")
    pending = {pool.submit(_run_one, p, control, backend): p for p in sorted(points, key=lambda p: -p.work)}

    def collect(finished: set[Future]) -> None:
        for future in finished:
            if future.cancelled() or isinstance(future.exception(), Cancelled):
                continue
            grid.put(pending[future].index, future.result())
            del pending[future]
            bar.update()
            control._at(len(points) - len(pending), len(points))

    try:
        control._at(0, len(points))
        while pending and not control.cancelled:
            collect(wait(pending, 0.1, FIRST_COMPLETED).done)
    except KeyboardInterrupt:
        control.cancel()
    except BaseException:
        control.cancel()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    collect(wait(pending, GRACE_S).done)


def _run_one(p: _Point, sweeping: SweepControl, backend: str) -> xr.Dataset:
    control = sweeping._begin()
    try:
        if p.file and p.file.is_file():
            try:
                return open_result(p.file)
            except ValueError:
                pass  # not a whole result: run it again
        result = run(p.device, p.workload, backend, control=control)
        if p.file:
            save_result(result, p.file)
        return result
    finally:
        sweeping._end(control)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


__all__ = ["SweepCancelled", "SweepControl", "point", "sweep"]
