"""Tables I and II: what the presets and plain arithmetic say, with no run."""
from __future__ import annotations

from cxdbench.device import PAGE_BYTES, Device
from cxdbench.published.registry import reproduces

COPIED = "a setting of the preset, copied from the paper"
ENTRY_BYTES, BITMAPS, TRACKED_PAGES = 48, 5, 23.8e6  # Table I: page entry, five bitmaps, pages tracked
GIB, MIB = 2**30, 2**20


def _nand(row: str, field: str) -> None:
    reproduces(row, "mechanism", COPIED)(lambda: getattr(Device.named("cxdvirt").nand, field))


for _row, _field in (("cfg.tr", "read_us"), ("cfg.tprog", "program_us"), ("cfg.tbers", "erase_us"),
                     ("cfg.channels", "channels"), ("cfg.ways", "ways")):
    _nand(_row, _field)


@reproduces("cfg.miss", "mechanism", "t_R plus the channel time of one page (Sec. IV-B), from the preset's NAND")
def _():
    return Device.named("cxdvirt").configured_ns() / 1000


@reproduces("cfg.capacity", "mechanism", COPIED)
def _():
    return Device.named("cxdvirt").capacity_pages * PAGE_BYTES / GIB


@reproduces("cfg.cache", "mechanism", COPIED + ", to a whole page")
def _():
    return round(Device.named("cxdvirt").cache_pages * PAGE_BYTES / GIB, 4)


def metadata_bytes() -> float:
    """A page's metadata, from Table I's own parts."""
    return ENTRY_BYTES + BITMAPS / 8


@reproduces("meta.bytes", "mechanism", "Table I's own parts: an entry of 48 B and five bits")
def _():
    return metadata_bytes()


@reproduces("meta.total", "mechanism", "48 B and five bits for each of Table I's 23.8 M pages",
            known="23.8 M is printed to three digits: anything from 1,101 to 1,106 MiB agrees with it")
def _():
    return metadata_bytes() * TRACKED_PAGES / MIB
