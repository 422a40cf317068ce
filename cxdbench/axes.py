"""Dotted names of what can be varied: which of device and workload has a field, its unit, its values as labels."""
from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from inspect import isclass
from typing import Any, get_args

import numpy as np

from cxdbench.device import ConfigError, Device
from cxdbench.settings import Settings, short
from cxdbench.workload import WORKLOADS, Workload

UNITS = {"us": "us", "ns": "ns", "bytes": "B", "pages": "pages"}
BARE_PAGES = ("prefetch",)  # groups for which a bare number counts pages


@cache
def names(model: type[Settings]) -> tuple[str, ...]:
    """Every dotted name of a model's fields: groups, and the fields of each kind a group can be."""
    def walk() -> Iterator[str]:
        for name, info in model.model_fields.items():
            yield name
            for group in _groups(info.annotation):
                yield from (f"{name}.{inner}" for inner in names(group))
    return tuple(dict.fromkeys(walk()))


def _groups(annotation: Any) -> list[type[Settings]]:
    if isclass(annotation) and issubclass(annotation, Settings):
        return [annotation]
    return [group for part in get_args(annotation) for group in _groups(part)]


def split(changes: dict[str, Any], workload: type[Workload], what: str = "axis") -> tuple[dict, dict]:
    """Changes by dotted name as (the device's, the workload's). ConfigError for a name that neither or both have."""
    ours, theirs = names(Device), names(workload)
    for name in changes:
        if name == "scale":
            raise ConfigError(f"{what} 'scale' cannot be set: it records what Device.scaled did")
        if name in ours and name in theirs:
            raise ConfigError(f"{what} {name!r} is ambiguous: Device and {workload.__name__} both have it")
        if name not in ours and name not in theirs:
            raise ConfigError(f"{what} {name!r} is unknown: {_closest(name, workload)}")
    return ({name: value for name, value in changes.items() if name in ours},
            {name: value for name, value in changes.items() if name in theirs})


def _closest(name: str, workload: type[Workload]) -> str:
    elsewhere = [kind for kind, other in WORKLOADS.items() if name in names(other)]
    if elsewhere:
        return f"it is a field of {' and '.join(elsewhere)}, and this workload is a {workload.__name__}"
    known = [*names(Device), *names(workload)]
    same_end = [n for n in known if n.rpartition(".")[2] == name]
    by_end: dict[str, str] = {}
    for n in known:
        by_end.setdefault(n.rpartition(".")[2], n)
    alike = [by_end.get(n, n) for n in difflib.get_close_matches(name, [*known, *by_end], 3, 0.5)]
    found = list(dict.fromkeys([*same_end, *alike]))[:3]
    if found:
        return f"the closest {'names are' if len(found) > 1 else 'name is'} {', '.join(found)}"
    return f"a Device has {', '.join(Device.model_fields)}; a {workload.__name__} {', '.join(workload.model_fields)}"


def overlap(one: str, other: str) -> bool:
    """Whether two dotted names set the same field: they are equal, or one is a group that holds the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def checked(axes: Any, workload: type[Workload]) -> dict[str, list]:
    """The axes with their values as lists. ConfigError for an unknown name, an empty axis, a value named twice."""
    if not isinstance(axes, dict) or not axes or not all(isinstance(name, str) for name in axes):
        raise ConfigError(f"axes is {short(axes)}: must be a dict of one or more dotted names, each with a list of values")
    split(axes, workload)
    out: dict[str, list] = {}
    for name, values in axes.items():
        if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
            raise ConfigError(f"axis {name!r} is {short(values)}: must be a list of values")
        for other in out:
            if overlap(name, other):
                raise ConfigError(f"axes {other!r} and {name!r} set the same field: give one of them")
        out[name] = [value.item() if isinstance(value, np.generic) else value for value in values]
        if not out[name]:
            raise ConfigError(f"axis {name!r} is empty: must have at least one value")
        labels = [label(value) for value in out[name]]
        twice = [value for value in labels if labels.count(value) > 1]
        if twice:
            raise ConfigError(f"axis {name!r} has the value {twice[0]!r} {labels.count(twice[0])} times: must have it once")
    return out


def label(value: Any) -> Any:
    """What stands for a value on its coordinate: a number or word itself, else its text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Settings):
        return value.model_dump_json()
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def units(name: str) -> str:
    """The unit of a field, from the end of its name; "1" where it has none."""
    end = "pages" if name in BARE_PAGES else re.split(r"[._]", name)[-1]
    return UNITS.get(end, "1")
