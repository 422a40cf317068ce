"""Many one-run results as one Dataset: their variables with the axes as leading dimensions; and back, by `point`."""
from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from cxdbench.axes import label, units
from cxdbench.device import ConfigError, Device
from cxdbench.workload import Workload, to_json

BASE = ("device", "workload")


class Grid:
    """A sweep's results as they come in.

    `finished` says which points there are; the others hold 0 (before the first, there is no other variable).
    Variables by thread are as wide as the point with most threads; a thread that a point does not have holds 0, so
    that sums stay sums, and `thread_exists` is False.
    An attribute in which the points differ becomes a variable over the axes; `device` and `workload` stay attributes,
    those the sweep started from, and each point's own are `point_device` and `point_workload`.
    """

    def __init__(self, axes: dict[str, list], device: Device, workload: Workload) -> None:
        self.axes = {name: coordinate(name, values) for name, values in axes.items()}
        self.base = {"device": device.model_dump_json(), "workload": to_json(workload)}
        self.shape = tuple(len(values) for values in axes.values())
        self.finished = np.zeros(self.shape, bool)
        self.coords: dict[str, Any] = {}
        self.variables: dict[str, xr.Variable] = {}
        self.by_thread: dict[tuple[int, ...], dict[str, xr.Variable]] = {}
        self.attrs: dict[tuple[int, ...], dict[str, Any]] = {}

    def put(self, index: tuple[int, ...], result: xr.Dataset) -> None:
        """Add the result of the point at `index`."""
        if not self.variables:
            self.coords = dict(result.coords)
            self.variables = {
                name: xr.Variable((*self.axes, *var.dims), np.zeros(self.shape + var.shape, var.dtype), var.attrs)
                for name, var in result.data_vars.items() if "thread" not in var.dims}
        for name, var in self.variables.items():
            var.values[index] = result[name].values
        self.by_thread[index] = {name: var.variable for name, var in result.data_vars.items() if "thread" in var.dims}
        self.attrs[index] = {name: value.item() if isinstance(value, np.generic) else value
                             for name, value in result.attrs.items()}
        self.finished[index] = True

    def dataset(self) -> xr.Dataset:
        """What has come in so far."""
        shared, by_point = self._attributes()
        data = {"finished": (tuple(self.axes), self.finished.copy()), **self.variables, **self._threads(), **by_point}
        attrs = {**shared, **self.base, "axes": json.dumps(list(self.axes))}
        return xr.Dataset(data, {**self.coords, **self.axes}, attrs)

    def _threads(self) -> dict[str, xr.Variable]:
        if not self.by_thread:
            return {}
        one = next(iter(self.by_thread.values()))
        widths = {index: next(iter(variables.values())).size for index, variables in self.by_thread.items()}
        dims, widest = (*self.axes, "thread"), max(widths.values())
        out = {name: xr.Variable(dims, np.zeros((*self.shape, widest), var.dtype), var.attrs)
               for name, var in one.items()}
        exists = np.zeros((*self.shape, widest), bool)
        for index, variables in self.by_thread.items():
            exists[index][:widths[index]] = True
            for name, var in variables.items():
                out[name].values[index][:widths[index]] = var.values
        return out | {"thread_exists": xr.Variable(dims, exists)}

    def _attributes(self) -> tuple[dict[str, Any], dict[str, xr.Variable]]:
        """(attributes that all points share, variables for those in which they differ)."""
        shared, by_point = {}, {}
        for name in next(iter(self.attrs.values()), {}):
            values = {index: attrs[name] for index, attrs in self.attrs.items()}
            first = next(iter(values.values()))
            if name in self.axes:
                continue
            if all(value == first for value in values.values()):
                shared[name] = first
                continue
            array = np.full(self.shape, "" if isinstance(first, str) else 0,
                            object if isinstance(first, str) else np.result_type(*map(type, values.values())))
            for index, value in values.items():
                array[index] = value
            array = array.astype(str) if isinstance(first, str) else array
            variable = f"point_{name}" if name in BASE else name
            by_point[variable] = xr.Variable(tuple(self.axes), array, {"attribute": name})
        return shared, by_point


def point(grid: xr.Dataset, at: dict[str, Any] | None = None, /, **coords: Any) -> xr.Dataset:
    """The result of one point of a sweep, exactly as `run` gives it: `point(grid, {"nand.read_us": 25}, wss=1.1)`.

    Raises ConfigError where the point is not one of the grid's, not named in full, or not finished.
    """
    where = {name: label(value) for name, value in {**(at or {}), **coords}.items()}
    axes = json.loads(grid.attrs.get("axes", "[]"))
    wanted = [name for name in axes if name in grid.dims]
    if set(where) != set(wanted):
        raise ConfigError(f"point is {where}: must give one value of {', '.join(wanted) or 'no axis'}")
    for name, value in where.items():
        if value not in grid[name].values.tolist():
            raise ConfigError(f"point {name} is {value!r}: the sweep has {', '.join(map(str, grid[name].values))}")
    one = grid.sel(where)
    if not one["finished"]:
        raise ConfigError(f"point is {where}: the sweep did not finish it")
    own = {name: var.attrs["attribute"] for name, var in one.data_vars.items() if "attribute" in var.attrs}
    attrs = {**one.attrs, **{attribute: one[name].item() for name, attribute in own.items()}}
    attrs |= {"seed": int(one["seed"])} if "seed" in axes else {}
    del attrs["axes"]
    one = one.isel(thread=one["thread_exists"].values)
    one = one.drop_vars(["finished", "thread_exists", *own, *axes])
    one.attrs = attrs
    return one


def coordinate(name: str, values: list) -> xr.Variable:
    """Values as the coordinate `name`: numbers with their unit, or else words."""
    labels = [label(value) for value in values]
    if all(isinstance(value, bool) for value in labels):
        return xr.Variable(name, np.array(labels, bool))
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in labels):
        return xr.Variable(name, np.array(labels), {"units": units(name)})
    return xr.Variable(name, np.array([str(value) for value in labels]))
