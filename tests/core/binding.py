"""kmod/core compiled here and called through ctypes: its structs, its functions, and a device's settings as it takes them."""

import ctypes as c
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from cxdbench.device import Device, ns, program_types_ns, read_types_ns

CORE = Path(__file__).parents[2] / "kmod" / "core"
SOURCES = sorted(CORE.glob("*.c"))
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-Werror", f"-I{CORE}"]
# What a program that links the core must bring, and what only C knows: the sizes of its structs.
GLUE = """
#include "cxd_core.h"
void cxd_lock_slow(cxd_lock_t *lock) { (void)lock; __builtin_trap(); }
const cxd_u64 test_sizes[] = {
    sizeof(struct cxd_config), sizeof(struct cxd_counters), sizeof(struct cxd_event), sizeof(struct cxd_answer)};
"""
NOT_CACHED, LOADING, CACHED, EVICTING = range(4)
STATE, DIRTY, REFERENCED, PREFETCHED, WRITTEN, SLEEPERS = 3, 4, 8, 16, 32, 64
IDLE, HIT, WAIT, VICTIM, READ, ASK, STARVED, UNMAP, MAP, WAKE = range(10)
NO_PAGE = BACKGROUND = 2**32 - 1
NEVER = 2**63
MAX_TYPES = 16
u32, u64 = c.c_uint32, c.c_uint64


def fields(kind, names: str) -> list[tuple]:
    return [(name, kind) for name in names.split()]


class Config(c.Structure):
    _fields_ = [
        *fields(u32, "cache_pages capacity_pages policy protect sees_hits asks unwritten writeback_free write_miss_none "
                     "prefetch_free prefetch_pages prefetch_queue"),
        ("prefetch_delay_ns", u64), *fields(u32, "drain_pages drain_high drain_stop"), ("drain_period_ns", u64),
        *fields(u32, "channels ways channel_model block_pages"), *fields(u64, "transfer_ns erase_ns"),
        *fields(u32, "read_types program_types"), *fields(u64 * MAX_TYPES, "read_ns program_ns")]


class Counters(c.Structure):
    _fields_ = fields(u64, """
        claims fills evict_begun evict_ended clean_foreground clean_background dirty_foreground dirty_background
        charged charged_program uncharged_unwritten uncharged_write nand_reads nand_programs nand_erases
        prefetch_asked prefetch_dropped prefetch_already prefetch_issued prefetch_charged prefetch_uncharged
        prefetch_useful prefetch_late prefetch_wasted resident""")


class Event(c.Structure):
    _fields_ = [("t_ns", u64), *fields(u32, "thread page kind pad")]


class Answer(c.Structure):
    _fields_ = [*fields(u32, "kind page victim done"), *fields(u64, "at queue_ns sense_ns transfer_ns"),
                *fields(u32, "charged pad")]


def compiler() -> str:
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        pytest.skip("needs a C compiler: apt-get install gcc")
    return found


@cache
def library() -> c.CDLL:
    with tempfile.TemporaryDirectory(prefix="cxdbench-core-") as folder:
        glue, target = Path(folder, "glue.c"), Path(folder, "core.so")
        glue.write_text(GLUE)
        subprocess.run([compiler(), *FLAGS, "-shared", "-fPIC", *map(str, SOURCES), str(glue), "-o", str(target)],
                       check=True)
        lib = c.CDLL(str(target))
    core, config, access = c.c_void_p, c.POINTER(Config), (c.c_void_p, u64, u32, u32, c.c_int)
    for name, gives, *takes in (
            ("check", c.c_int, config), ("field", c.c_char_p, c.c_int), ("memory", u64, config),
            ("start", core, config, core, core, core), ("change", c.c_int, core, config),
            ("keep_log", None, core, core, u64), ("logged", u64, core), ("access", Answer, *access),
            ("frame", Answer, *access), ("read", Answer, *access),
            ("unmapped", Answer, *access, u32, c.c_int), ("spared", Answer, *access, u32), ("evicted", u32, core, u64, u32),
            ("filled", u32, *access), ("written", c.c_int, core, u32), ("next", u64, core), ("tick", Answer, core, u64),
            ("drain", None, core, u64, c.c_int), ("prefetches_open", u32, core), ("limit", None, core, u32),
            ("counters", c.POINTER(Counters), core), ("zero_counters", None, core), ("census", None, core, u64 * 5)):
        function = getattr(lib, f"cxd_{name}")
        function.restype, function.argtypes = gives, takes
    return lib


def members(struct: str) -> list[str]:
    """The names in a struct of the header, in order."""
    body = re.search(rf"struct {struct} {{(.*?)}};", (CORE / "cxd_core.h").read_text(), re.S)[1]
    body = re.sub(r"/\*.*?\*/|\[\w+\]", "", body, flags=re.S)
    return [name.strip() for line in re.findall(r"cxd_u\d\d ([^;]*);", body) for name in line.split(",")]


def settings(device: Device, asks: bool = False) -> Config:
    """A device as the core's config; what only its caller has (hit_ns, push_ns, the fault path) is not in it."""
    nand, sem, drain, prefetch = device.nand, device.semantics, device.drain, device.prefetch
    policy = ("fifo", "lifo", "clock", "lru").index(device.eviction.kind)
    high, low = int(drain.high * device.cache_pages), int(drain.low * device.cache_pages)
    config = Config(
        cache_pages=device.cache_pages, capacity_pages=device.capacity_pages, policy=policy,
        protect=device.eviction.protect, sees_hits=sem.policy_sees == "all", asks=asks,
        unwritten=("charge", "free", "program").index(sem.unwritten_read), writeback_free=sem.writeback == "free",
        write_miss_none=sem.write_miss == "none", prefetch_free=sem.prefetch_timing == "free",
        prefetch_pages=prefetch.pages, prefetch_queue=prefetch.queue_pages,
        prefetch_delay_ns=ns(prefetch.start_delay_us), drain_pages=drain.pages, drain_high=high,
        drain_stop=low if drain.stop is None else max(low, high - drain.stop), drain_period_ns=ns(drain.period_us),
        channels=nand.channels, ways=nand.ways, channel_model=("event", "none").index(nand.channel_model),
        block_pages=nand.pages_per_block, transfer_ns=ns(nand.transfer_us), erase_ns=ns(nand.erase_us),
        read_types=len(read_types_ns(nand)), program_types=len(program_types_ns(nand)))
    config.read_ns[:config.read_types] = read_types_ns(nand)
    config.program_ns[:config.program_types] = program_types_ns(nand)
    return config


class Core:
    """A core with its memory. A function `cxd_x` of the header is the method `x`."""

    def __init__(self, config: Config):
        lib = library()
        number = lib.cxd_check(config)
        assert number == 0, lib.cxd_field(number)
        self.words = (u32 * config.capacity_pages)()
        self._memory = (u64 * (lib.cxd_memory(config) // 8 + 1))(*())
        self._counters = Counters()
        self._handle, self._lib = lib.cxd_start(config, self._memory, self.words, c.byref(self._counters)), lib
        self._log: c.Array | None = None

    def __getattr__(self, name: str):
        function, handle = getattr(self._lib, f"cxd_{name}"), self._handle
        method = lambda *arguments: function(handle, *arguments)  # noqa: E731
        setattr(self, name, method)
        return method

    def state(self, page: int) -> int:
        return self.words[page] & STATE

    def log_into(self, size: int) -> None:
        self._log = (Event * size)()
        self.keep_log(self._log, size)

    def log(self) -> list[tuple[int, int, int, int]]:
        """(t_ns, thread, page, kind), the background as -1."""
        assert self.logged() <= len(self._log), "the log is too small"
        return [(e.t_ns, -1 if e.thread == BACKGROUND else e.thread, e.page, e.kind)
                for e in self._log[:self.logged()]]

    def counts(self) -> dict[str, int]:
        counters = self.counters().contents
        return {name: getattr(counters, name) for name, _ in Counters._fields_}

    def pages_by_state(self) -> list[int]:
        """Pages in each of the four states, and those whose prefetch fate is open."""
        counts = (u64 * 5)()
        self.census(counts)
        return list(counts)
