"""One point the explorer can stand at: a preset's device as it was changed, and a chase; its name, JSON and code."""
from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from cxdbench.device import ConfigError, Device, names
from cxdbench.explorer.fields import BY_NAME, FIELDS, read, value_text
from cxdbench.run import BACKENDS, validate
from cxdbench.workload import Chase, from_json, to_json

OPENING_CACHE_PAGES = 16_384
MAX_ACCESSES = 200_000_000  # some ten seconds; more is for `run`
BY_SCALING = ("cache_pages", "capacity_pages", "scale")


@dataclass(frozen=True)
class Setting:
    """What is run. preset: the entry of data/devices.toml that `device` started from."""

    preset: str
    device: Device
    workload: Chase
    engine: str = "model"

    @classmethod
    def opening(cls, preset: str = "cxdvirt") -> Setting:
        """The paper's random chase, 8 threads at 2.5x, on a scaled preset."""
        return cls(preset, Device.named(preset).scaled(OPENING_CACHE_PAGES), Chase())

    def with_(self, changes: dict[str, Any]) -> Setting:
        """A copy with controls' values, by the names of `fields.FIELDS` and "engine"; ConfigError where it cannot run."""
        changes = dict(changes)
        engine = changes.pop("engine", self.engine)
        preset = changes.pop("preset", self.preset)
        cache = changes.pop("cache_pages", self.device.cache_pages)
        device = self.device if preset == self.preset else _preset(preset, self.device.cache_pages)
        if cache != device.cache_pages:
            changes |= {name: getattr(_preset(preset, cache), name) for name in BY_SCALING}
        to_workload = {name: value for name, value in changes.items()
                       if name in BY_NAME and BY_NAME[name].of == "workload"}
        to_device = {name: value for name, value in changes.items() if name not in to_workload}
        if engine == "live" and self.engine != engine:
            device = for_live(device)
        new = Setting(preset, device.with_(to_device), self.workload.with_(to_workload), engine)
        validate(new.device, new.workload, new.engine)
        return new

    def device_changes(self) -> dict[str, Any]:
        """What of the device differs from its scaled preset, by dotted name."""
        return differences(_preset(self.preset, self.device.cache_pages), self.device)

    def workload_changes(self) -> dict[str, Any]:
        """What of the workload differs from a plain Chase."""
        return differences(Chase(), self.workload)

    def name(self) -> str:
        """The preset and what differs from where the explorer opens: "cxdvirt, WSS 1.1, t_R 25 us"."""
        base = Setting.opening(self.preset)
        moved = {f.name: value for f in FIELDS
                 if (value := read(f, self.preset, self.device, self.workload))
                 != read(f, base.preset, base.device, base.workload)}
        rest = {name: value for name, value in (self.device_changes() | self.workload_changes()).items()
                if not any(name == f or (name.startswith(f"{f}.") and f in moved) for f in BY_NAME)
                and name not in BY_SCALING and name.removesuffix(".kind") not in moved}
        engine = [self.engine] if self.engine != "model" else []
        return ", ".join([self.preset, *engine, *(value_text(name, value) for name, value in (moved | rest).items())])

    def code(self, repeats: int = 1) -> str:
        """Python that gives the same numbers."""
        lines = ["import cxdbench as cxd", "",
                 f'device = cxd.Device.named("{self.preset}").scaled(cache_pages={self.device.cache_pages})']
        if changes := self.device_changes():
            lines.append(f"device = device.with_({changes!r})")
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.workload_changes().items())
        seeds = f", seeds={repeats}" if repeats > 1 else ""
        engine = f', backend="{self.engine}"' if self.engine != "model" else ""
        return "\n".join([*lines, f"workload = cxd.Chase({arguments})",
                          f"result = cxd.run(device, workload{engine}{seeds})", "print(cxd.summary(result))", ""])

    def to_dict(self) -> dict[str, Any]:
        return {"preset": self.preset, "engine": self.engine, "device": json.loads(self.device.model_dump_json()),
                "workload": json.loads(to_json(self.workload))}

    @classmethod
    def from_dict(cls, data: Any) -> Setting:
        """Read what `to_dict` wrote; ConfigError names what does not fit."""
        if not isinstance(data, dict) or not {"preset", "device", "workload"} <= set(data):
            raise ConfigError("state: a setting must have preset, device and workload")
        if not isinstance(data["preset"], str) or data["preset"] not in names("devices.toml"):
            raise ConfigError(f"state: preset {data['preset']!r} is unknown: allowed: {', '.join(names('devices.toml'))}")
        workload = from_json(json.dumps(data["workload"]))
        if not isinstance(workload, Chase):
            raise ConfigError(f"state: workload is {type(workload).__name__}: the explorer runs a Chase")
        if workload.accesses > MAX_ACCESSES:
            raise ConfigError(f"state: accesses is {workload.accesses}: the explorer runs at most {MAX_ACCESSES}")
        setting = cls(data["preset"], Device.from_json(json.dumps(data["device"])), workload,
                      data.get("engine", BACKENDS[0]))
        validate(setting.device, setting.workload, setting.engine)
        return setting


def for_live(device: Device) -> Device:
    """The device as real faults can be it: this machine's own fault path, and a policy that sees faults only. The
    controls show both."""
    changes: dict[str, Any] = {}
    if device.fault_path.kind != "ideal":
        changes["fault_path"] = "ideal"
    if device.eviction.kind in ("clock", "lru") or device.semantics.policy_sees == "accessed_bit":
        changes["semantics.policy_sees"] = "faults"
    return device.with_(changes)


@cache
def _preset(name: str, cache_pages: int) -> Device:
    return Device.named(name).scaled(cache_pages)


def differences(base: Any, other: Any) -> dict[str, Any]:
    """Fields of `other` that differ from `base`, dotted, as `with_` takes them; a group of another kind as a whole."""
    return _differences(base.model_dump(), other.model_dump(), "")


def _differences(base: dict, other: dict, prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in other.items():
        before = base[name]
        if value == before:
            continue
        if isinstance(value, dict) and set(value) == set(before):
            found |= _differences(before, value, f"{prefix}{name}.")
        elif isinstance(value, dict) and value == Device(**{name: value["kind"]}).model_dump()[name]:
            found[prefix + name] = value["kind"]
        else:
            found[prefix + name] = value
    return found
