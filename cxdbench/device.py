"""What can be set on a CXL-SSD: Device, its NAND, its policies, its semantics, and the path a miss takes.

Times carry their unit in the field's name; a page is 4 KiB. `settings.py` says what every model here can do.
"""
from __future__ import annotations

import tomllib
from functools import cache
from numbers import Real
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from cxdbench._data import data_path
from cxdbench.settings import ConfigError, Settings, config_error, one_of

PAGE_BYTES = 4096
MAX_CAPACITY = 2**31 - 1

Us = Annotated[float, Field(strict=True, ge=0, le=1e6, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]


PageTimes = Us | Annotated[tuple[Us, ...], Field(min_length=1, max_length=16)]


class Nand(Settings):
    """NAND array timing, microseconds. Dies = channels x ways; page p lives on die p mod dies, channel p mod channels.

    `read_us` (t_R) and `program_us` (t_PROG) are one time, or one per page type of a multi-bit cell, in which
    case page p is of type (p // dies) mod types. A block of `pages_per_block` pages is erased (t_BERS) on its die
    after every `pages_per_block` programs there: garbage collection that finds no valid page (write amplification 1).
    """

    read_us: PageTimes = 3.0
    program_us: PageTimes = 100.0
    erase_us: Us = 1000.0
    channels: int = Field(8, ge=1, le=64)
    ways: int = Field(16, ge=1, le=64)
    transfer_us: Us = Field(3.2, description="channel time of one 4 KiB page")
    channel_model: Literal["event", "slotted", "none"] = "event"
    pages_per_block: int = Field(256, ge=1, le=1 << 20)

    @classmethod
    def named(cls, name: str) -> Nand:
        """A profile of data/nand.toml, each with its source; ConfigError lists the names there are."""
        entry = _entry("nand.toml", "NAND profile", name)
        return cls(**{k: v for k, v in entry.items() if k in cls.model_fields})

    @property
    def dies(self) -> int:
        return self.channels * self.ways


class Eviction(Settings):
    """Which cached page gives up its frame. `protect` is LIFO's: its newest pages are never the victim."""

    kind: Literal["fifo", "lifo", "clock", "lru"] = "fifo"
    protect: int = Field(1024, ge=0, le=1 << 24)


class Prefetch(Settings):
    """Next-N prefetch: a demand fill asks for the `pages` pages behind it, in the background; 0 is off."""

    kind: Literal["next_n"] = "next_n"
    pages: int = Field(0, ge=0, le=256)
    start_delay_us: Us = Field(10.0, description="from the push to the worker's start")
    push_ns: int = Field(300, ge=0, le=10**6, description="cost of one push, on the faulting thread")
    queue_pages: int = Field(1024, ge=1, le=1 << 16, description="asked and unfinished at most; more are dropped")


class Drain(Settings):
    """Background eviction. From `high` (share of the cache) down to `low`, `pages` each `period_us`; 0 pages is off.

    `stop` is a level of its own: a drain ends once it is that many pages below the high mark, if that comes
    before `low`. `pages`, `period_us` and `stop` are absolute and are never scaled with the cache.
    """

    high: Share = 0.95
    low: Share = 0.85
    stop: int | None = Field(None, ge=0, le=1 << 24)
    pages: int = Field(0, ge=0, le=1 << 20)
    period_us: float = Field(10_000.0, ge=1, le=1e6, allow_inf_nan=False)

    @model_validator(mode="after")
    def _order(self) -> Drain:
        if self.low > self.high:
            raise config_error("Drain", (("low",), self.low, f"must not be above high, {self.high}"))
        return self


DRAINS = {"off": {"pages": 0}, "slow": {"pages": 64, "period_us": 10_000.0},
          "fast": {"pages": 1024, "period_us": 1_000.0}}


class Semantics(Settings):
    """Where published systems differ without saying so. The defaults are what a real device does.

    unwritten_read: a read of a page never written is charged a NAND read | free | charged a program (Cylon).
    writeback: a dirty victim's program is charged | free. write_miss: a write miss fetches the page | none.
    prefetch_timing: a prefetch's NAND read is charged | free. policy_sees: eviction sees all accesses | faults only.
    """

    unwritten_read: Literal["charge", "free", "program"] = "charge"
    writeback: Literal["charged", "free"] = "charged"
    write_miss: Literal["fetch", "sector", "none"] = "fetch"
    prefetch_timing: Literal["charged", "free"] = "charged"
    policy_sees: Literal["all", "faults", "accessed_bit"] = "all"


Quantiles = Annotated[tuple[Us, Us, Us, Us, Us], Field(description="min, P50, P99, P99.9, P99.99")]


class IdealPath(Settings):
    """A real device: nothing stands between a miss and the NAND."""

    kind: Literal["ideal"] = "ideal"


class CxdvirtPath(Settings):
    """A kernel page fault (CXDVirt). `overhead_us`: quantiles of its cost (min, P50, P99, P99.9, P99.99).

    `serial_us` of it is serial with other misses, in force only when the fault itself evicts.
    """

    kind: Literal["cxdvirt"] = "cxdvirt"
    overhead_us: Quantiles = (2.0, 2.34, 2.7, 4.02, 11.3)
    serial_us: Us = 2.15

    @field_validator("overhead_us")
    @classmethod
    def _rising(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        return _rising(value)


class CylonPath(Settings):
    """A VM exit under a global lock held through the NAND wait (Cylon behind QEMU's lock).

    A miss costs `exit_us`, then the lock, then `rest_us` (quantiles), the NAND, the install; with
    `refault_probability` it exits once more after an exponential gap of mean `refault_gap_us`. When a holder
    releases a lock that others wait for, its own next miss may take it first with its thread's probability:
    `handover_mean` +- `handover_spread` (a lasting difference between threads); else the lock changes hands, which
    takes `handover_us`. The access after a miss exits again (`second_exit_us`) if it touches the same page.
    """

    kind: Literal["cylon"] = "cylon"
    exit_us: Us = 4.15
    rest_us: Quantiles = (1.15, 1.76, 4.3, 4.3, 4.3)
    refault_probability: Share = 0.005
    refault_gap_us: Us = 16.1
    handover_mean: Share = 0.71
    handover_spread: Share = 0.168
    handover_us: Us = 12.0
    second_exit_us: Us = 4.15

    @field_validator("rest_us")
    @classmethod
    def _rising(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        return _rising(value)


def _rising(value: tuple[float, ...]) -> tuple[float, ...]:
    if list(value) != sorted(value):
        raise ValueError("must not fall from one quantile to the next")
    return value


FaultPath = Annotated[IdealPath | CxdvirtPath | CylonPath, Field(discriminator="kind")]


class Device(Settings):
    """A CXL-SSD: `cache_pages` of DRAM over `capacity_pages` of NAND, 4 KiB each."""

    cache_pages: int = Field(1_258_291, ge=1, le=(1 << 24) - 1)
    capacity_pages: int = Field(25_165_824, ge=1, le=MAX_CAPACITY)
    hit_ns: int = Field(139, ge=1, le=10**6)
    eviction: Eviction = Eviction()
    prefetch: Prefetch = Prefetch()
    drain: Drain = Drain()
    fault_path: FaultPath = IdealPath()
    semantics: Semantics = Semantics()
    nand: Nand = Nand()
    scale: float = Field(1.0, gt=0, allow_inf_nan=False, description="original cache over this one, see scaled()")

    @classmethod
    def in_full(cls, group: str, value: Any, before: dict[str, Any]) -> Any:
        if group == "prefetch" and isinstance(value, Real):
            return {**before, "pages": value}
        if group == "drain" and value is None:
            return {**before, "pages": 0}
        if not isinstance(value, str):
            return value
        if group == "drain":
            if value not in DRAINS:
                raise ValueError(f"must be {one_of(list(map(repr, DRAINS)))}, or a Drain")
            return {**before, **DRAINS[value]}
        if group == "nand":
            return Nand.named(value)
        if group == "fault_path" and before.get("kind") != value:
            return {"kind": value}
        return {**before, "kind": value} if group in ("eviction", "fault_path") else value

    @field_validator("eviction", "prefetch", "drain", "fault_path", "nand", mode="before")
    @classmethod
    def _bare(cls, value: Any, info: ValidationInfo) -> Any:
        return cls.in_full(info.field_name, value, {})

    @model_validator(mode="after")
    def _fits(self) -> Device:
        if self.capacity_pages < self.cache_pages:
            raise config_error("Device", (("capacity_pages",), self.capacity_pages,
                                          f"must be at least cache_pages, {self.cache_pages}"))
        if self.eviction.kind == "lifo" and self.eviction.protect >= self.cache_pages:
            raise config_error("Device", (("eviction", "protect"), self.eviction.protect,
                                          f"must be less than cache_pages, {self.cache_pages}, under lifo"))
        return self

    @classmethod
    def named(cls, name: str) -> Device:
        """A preset of data/devices.toml; ConfigError lists the names there are."""
        entry = _entry("devices.toml", "device", name)
        return cls(**{k: v for k, v in entry.items() if k in cls.model_fields})

    def with_(self, changes: dict[str, Any] | None = None, /, **more: Any) -> Device:
        """As `Settings.with_`; another cache_pages or capacity_pages is a device of its own, and `scale` is 1 again."""
        new = super().with_(changes, **more)
        named = {**(changes or {}), **more}
        if "scale" not in named and {"cache_pages", "capacity_pages"} & set(named) and new.scale != 1:
            return super(Device, new).with_(scale=1.0)
        return new

    def scaled(self, cache_pages: int) -> Device:
        """The device with its cache set to `cache_pages` and its capacity shrunk alike; `scale` records the factor."""
        cache_pages = self.with_(cache_pages=cache_pages, capacity_pages=MAX_CAPACITY).cache_pages
        factor = self.cache_pages / cache_pages
        capacity = max(cache_pages, round(self.capacity_pages / factor))
        return self.with_(cache_pages=cache_pages, capacity_pages=capacity, scale=self.scale * factor)

    def configured_ns(self) -> float:
        """t_R plus the page's transfer on an idle device, ns; the mean over page types."""
        return sum(read_types_ns(self.nand)) / len(read_types_ns(self.nand)) + ns(self.nand.transfer_us)


def ns(us: float) -> int:
    """Microseconds to whole nanoseconds."""
    return round(us * 1000)


def read_types_ns(nand: Nand) -> list[int]:
    return [ns(u) for u in (nand.read_us if isinstance(nand.read_us, tuple) else (nand.read_us,))]


def program_types_ns(nand: Nand) -> list[int]:
    return [ns(u) for u in (nand.program_us if isinstance(nand.program_us, tuple) else (nand.program_us,))]


@cache
def _table(file: str) -> dict[str, dict]:
    return tomllib.loads(data_path(file).read_text(encoding="utf-8"))


def names(file: Literal["nand.toml", "devices.toml"]) -> list[str]:
    """The entries of a table in data/."""
    return list(_table(file))


def source(file: Literal["nand.toml", "devices.toml"], name: str) -> str:
    """Where an entry's numbers come from."""
    return _entry(file, "entry", name)["source"]


def _entry(file: str, what: str, name: str) -> dict:
    table = _table(file)
    if not isinstance(name, str) or name not in table:
        raise ConfigError(f"{what} {name!r} is unknown: allowed: {', '.join(table)}")
    return table[name]


def fitted_constants(device: Device) -> dict[str, str]:
    """Dotted names of the constants in use on `device` that were fitted, not measured, and to what.

    In use: the mechanism is on, and the value is the preset's or its field's default, not one of the user's own.
    """
    found = {}
    for name, entry in _table("devices.toml").items():
        preset = Device.named(name)
        for dotted, why in entry.get("fitted", {}).items():
            group, field = dotted.split(".")
            ours, theirs = getattr(device, group), getattr(preset, group)
            if type(ours) is not type(theirs) or (group == "prefetch" and ours.pages == 0):
                continue
            value = getattr(ours, field)
            if value in (getattr(theirs, field), type(ours).model_fields[field].default):
                found[dotted] = f"{value}: {why}"
    return found
