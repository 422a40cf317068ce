"""What can be set in the explorer: each control's label, unit, range, what it means and where its value comes from."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cxdbench.device import DRAINS, PAGE_BYTES, ConfigError, Device, Nand, names, source

CACHE_PAGES = tuple(1 << n for n in range(10, 21))
ACCESSES = (10_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 50_000_000)


@dataclass(frozen=True)
class Field:
    """One control. name: the dotted field it sets. of: "preset", "device" or "workload". kind: "slider", "log" (a
    slider over `choices` that grow by a factor), "whole" (a slider over whole numbers), "number" (a box), or "choice".
    low, high, step: a slider's, in `unit`. choices: (text, value). sweep: the values a sweep starts with."""

    name: str
    of: str
    label: str
    unit: str
    what: str
    kind: str
    low: float = 0
    high: float = 0
    step: float = 1
    choices: tuple[tuple[str, Any], ...] = ()
    fold: str = ""
    sweep: tuple = ()
    origin: str = "preset"


def words(*choices: str) -> tuple[tuple[str, str], ...]:
    return tuple((word, word) for word in choices)


def spread(low: float, high: float) -> tuple[tuple[str, float], ...]:
    """Round values from low to high, twelve a decade."""
    marks = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)
    values = [mark * 10.0**decade for decade in range(6) for mark in marks]
    return tuple((f"{v:g}", float(f"{v:g}")) for v in values if low <= v <= high)


def bytes_text(pages: int) -> str:
    """Pages of 4 KiB as people read them: "64 MiB"."""
    size = pages * PAGE_BYTES
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.4g} {unit}"
        size /= 1024
    raise AssertionError


def count_text(count: int) -> str:
    """"200,000" or "1 M"."""
    return f"{count / 10**6:g} M" if count >= 10**6 else f"{count:,}"


FIELDS = (
    Field("preset", "preset", "preset", "", "A device of data/devices.toml; choosing one sets everything of the device "
          "but its cache size.", "choice", choices=words(*names("devices.toml")), sweep=("ideal", "cxdvirt", "cylon")),
    Field("pattern", "workload", "pattern", "", "How a thread walks its nodes: sequential, one random cycle through all "
          "of them (a pointer chase), or independent random draws.", "choice",
          choices=words("sequential", "cycle", "random"), sweep=("sequential", "cycle", "random"), origin="chase"),
    Field("wss", "workload", "WSS", "x", "Working set of all threads together, over the cache's size.", "slider",
          0.1, 4, 0.05, sweep=(0.5, 0.8, 1.1, 1.5, 2.2, 3), origin="fig5"),
    Field("threads", "workload", "threads", "", "Threads that access the device, each its own share of the working set.",
          "whole", 1, 64, sweep=(1, 2, 4, 8, 16, 32), origin="fig5"),
    Field("nand.read_us", "device", "t_R", "us", "Time in which a die senses a page.", "log", choices=spread(1, 200),
          sweep=(1, 3, 10, 25, 50, 100), origin="nand"),
    Field("cache_pages", "device", "cache", "", "DRAM before the NAND, in pages of 4 KiB; the capacity shrinks and grows "
          "with it.", "choice", choices=tuple((bytes_text(n), n) for n in CACHE_PAGES),
          sweep=(4096, 8192, 16384, 32768), origin="scale"),
    Field("eviction", "device", "eviction", "", "Which cached page gives up its frame.", "choice",
          choices=words("fifo", "lifo", "clock", "lru"), sweep=("fifo", "lifo", "clock", "lru")),
    Field("prefetch.pages", "device", "prefetch N", "", "A demand miss asks for the next N pages in the background; "
          "0 is off.", "whole", 0, 32, sweep=(0, 1, 2, 4, 8)),
    Field("write_share", "workload", "writes", "", "Share of the accesses that write.", "slider", 0, 1, 0.05,
          sweep=(0, 0.1, 0.3, 0.5), origin="chase"),
    Field("fault_path", "device", "fault path", "", "What stands between a miss and the NAND: nothing (a real device), a "
          "kernel fault (CXDVirt), or a VM exit under a global lock (Cylon).", "choice",
          choices=words("ideal", "cxdvirt", "cylon"), sweep=("ideal", "cxdvirt", "cylon")),
    Field("nand.program_us", "device", "t_PROG", "us", "Time in which a die programs a page.", "log",
          choices=spread(10, 10_000), fold="device", sweep=(50, 100, 500, 1000), origin="nand"),
    Field("nand.erase_us", "device", "t_BERS", "us", "Time in which a die erases a block.", "log",
          choices=spread(100, 10_000), fold="device", sweep=(500, 1000, 3000), origin="nand"),
    Field("nand.channels", "device", "channels", "", "Channels; the dies of one share it for transfers.", "whole", 1, 64,
          fold="device", sweep=(1, 2, 4, 8, 16), origin="nand"),
    Field("nand.ways", "device", "ways", "", "Dies on each channel.", "whole", 1, 64, fold="device",
          sweep=(1, 2, 4, 8, 16), origin="nand"),
    Field("hit_ns", "device", "hit", "ns", "Latency of a hit.", "whole", 10, 1000, fold="device",
          sweep=(50, 139, 300)),
    Field("drain", "device", "drain", "", "Background eviction between two marks: off, slow (64 pages each 10 ms) or fast "
          "(1,024 pages each ms).", "choice", choices=words(*DRAINS), fold="device", sweep=tuple(DRAINS)),
    Field("start", "workload", "start", "", "warm: a warm-up is run first, untimed. cold: an empty cache.", "choice",
          choices=words("warm", "cold"), fold="run", sweep=("warm", "cold"), origin="chase"),
    Field("prepare", "workload", "prepare", "", "written: every page was written before. clean: nothing ever was.",
          "choice", choices=words("written", "clean"), fold="run", sweep=("written", "clean"), origin="fig5"),
    Field("node_bytes", "workload", "node", "B", "Bytes of a node; a page holds 4096 / node of them.", "choice",
          choices=tuple((f"{n} B", n) for n in (64, 128, 256, 512, 1024, 2048, 4096)), fold="run",
          sweep=(64, 512, 4096), origin="fig5"),
    Field("accesses", "workload", "accesses", "", "Timed accesses of all threads together, the warm-up not counted.",
          "choice", choices=tuple((count_text(n), n) for n in ACCESSES), fold="run", origin="chase"),
    Field("seed", "workload", "seed", "", "Start of the random numbers: same seed, same result to the bit.", "number",
          0, 2**31 - 1, fold="run", sweep=(1, 2, 3), origin="chase"),
    Field("semantics.unwritten_read", "device", "unwritten read", "", "A read of a page never written is charged a NAND "
          "read, is free, or costs a program.", "choice", choices=words("charge", "free", "program"), fold="semantics",
          sweep=("charge", "free", "program")),
    Field("semantics.writeback", "device", "write-back", "", "A dirty victim's program is charged to the fault, or free.",
          "choice", choices=words("charged", "free"), fold="semantics", sweep=("charged", "free")),
    Field("semantics.write_miss", "device", "write miss", "", "A write miss fetches its page, one sector, or nothing.",
          "choice", choices=words("fetch", "sector", "none"), fold="semantics", sweep=("fetch", "none")),
    Field("semantics.prefetch_timing", "device", "prefetch read", "", "A prefetch's NAND read is charged, or free.",
          "choice", choices=words("charged", "free"), fold="semantics", sweep=("charged", "free")),
    Field("semantics.policy_sees", "device", "policy sees", "", "Eviction sees all accesses (a device), faults only (an "
          "emulator), or the Accessed bit.", "choice", choices=words("all", "faults", "accessed_bit"), fold="semantics",
          sweep=("all", "faults")),
)
BY_NAME = {field.name: field for field in FIELDS}
FOLDS = {"device": "NAND, hit, drain", "run": "run", "semantics": "semantics"}
_ORIGINS = {
    "chase": "the pointer chase's own setting (cxdbench.Chase)",
    "fig5": "Fig. 5 of the CXDVirt paper: 8 threads, 2.5x, nodes of 512 B that were written before "
            "(data/published.csv)",
    "scale": "the paper's 4.8 GiB (1,258,291 pages), shrunk by the scale in the foot so that a run takes no minutes",
}


def read(field: Field, preset: str, device: Device, workload: Any) -> Any:
    """A field's present value as its control has it: a bare word for a group, the mean of a list of times."""
    if field.of == "preset":
        return preset
    if field.name == "drain":
        now = device.drain.model_dump()
        return next((word for word, drain in DRAINS.items() if now | drain == now), "custom")
    value: Any = workload if field.of == "workload" else device
    for part in field.name.split("."):
        value = getattr(value, part)
    if isinstance(value, tuple):
        return sum(value) / len(value)
    return getattr(value, "kind", value)


def nand_profile(nand: Nand) -> str | None:
    """The profile of data/nand.toml that a NAND is, if it is one."""
    return next((name for name in names("nand.toml") if Nand.named(name) == nand), None)


def origin(field: Field, preset: str, device: Device) -> str:
    """Where a field's value comes from, or came from before it was moved."""
    if field.origin in _ORIGINS:
        return _ORIGINS[field.origin]
    if field.origin == "nand":
        profile = nand_profile(Device.named(preset).nand)
        if profile:
            return f"data/nand.toml, {profile}: {source('nand.toml', profile)}"
    return f"data/devices.toml, {preset}: {source('devices.toml', preset)}"


def value_text(name: str, value: Any) -> str:
    """A field's name and value as a person writes them: "WSS 1.1", "t_R 25 us", "eviction lifo"."""
    field = BY_NAME.get(name)
    if field is None:
        return f"{name} {value}"
    text = next((text for text, choice in field.choices if choice == value), None)
    if text is None:
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
    unit = f" {field.unit}" if field.unit and not text.endswith(field.unit) and field.unit != "x" else ""
    return f"{field.label} {text}{unit}"


def parse_values(name: str, text: str) -> list:
    """A sweep's values, "0.5, 1.1, 2": as the field takes them. ConfigError names what does not fit."""
    field = BY_NAME[name]
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigError(f"sweep of {field.label}: no values; give them with commas between")
    known = {word.replace(",", ""): value for word, value in field.choices}
    return [known[p] if p in known else _number(field, p) for p in parts]


def _number(field: Field, text: str) -> float | int:
    known = [str(value) for _, value in field.choices]
    if field.kind == "choice" and isinstance(field.choices[0][1], str):
        raise ConfigError(f"sweep of {field.label}: {text!r} is unknown; allowed: {', '.join(known)}")
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"sweep of {field.label}: {text!r} is not a number") from None
    return int(value) if value == int(value) and field.kind != "slider" and field.kind != "log" else value
