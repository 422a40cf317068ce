"""libcxd.so by ctypes: the structures of kmod/user/cxd_user.h and kmod/core/cxd_core.h, and a guard that both agree."""
from __future__ import annotations

import ctypes as c
from functools import cache
from pathlib import Path

ABI = 2
ERROR_BYTES = 256
N_STAGES, WINDOWS = 10, 64
MODES = ("sigbus", "thread", "guard", "mprotect")
NOT_BUILT = ("libcxd.so is not there: it is compiled at installation, on Linux on x86-64 with a C compiler; "
             "run `apt-get install gcc libc6-dev` and then `make setup` (or `pip install -e .`)")

u32, u64 = c.c_uint32, c.c_uint64


def _fields(text: str, kind=u64) -> list:
    return [(name, kind) for name in text.split()]


class Config(c.Structure):
    """struct cxd_config."""

    _fields_ = [*_fields("cache_pages capacity_pages policy protect sees_hits asks unwritten writeback_free write_miss_none "
                         "prefetch_free prefetch_pages prefetch_queue", u32),
                ("prefetch_delay_ns", u64), *_fields("drain_pages drain_high drain_stop", u32), ("drain_period_ns", u64),
                *_fields("channels ways channel_model block_pages", u32), *_fields("transfer_ns erase_ns"),
                *_fields("read_types program_types", u32), ("read_ns", u64 * 16), ("program_ns", u64 * 16)]


class Counters(c.Structure):
    """struct cxd_counters."""

    _fields_ = _fields(
        "claims fills evict_begun evict_ended clean_foreground clean_background dirty_foreground dirty_background "
        "charged charged_program uncharged_unwritten uncharged_write nand_reads nand_programs nand_erases "
        "prefetch_asked prefetch_dropped prefetch_already prefetch_issued prefetch_charged prefetch_uncharged "
        "prefetch_useful prefetch_late prefetch_wasted resident")


class Setup(c.Structure):
    """struct cxd_setup."""

    _fields_ = [("core", Config), ("mode", u32), ("compensate", u32), ("node", c.c_int), ("cores", u32)]


class Seen(c.Structure):
    """struct cxd_seen_by_device."""

    _fields_ = _fields("late write_notify spurious slept unmaps unmap_ns background background_late_ns")


class Calibration(c.Structure):
    """struct cxd_calibration."""

    _fields_ = _fields("entry_ns exit_ns raw_p50_ns map_ns")


class Stream(c.Structure):
    """struct cxd_stream."""

    _fields_ = [*_fields("first length position rng_address rng_write quota cpu"), ("count", u64 * 3),
                ("sum_ns", u64 * 3), ("min_ns", u64 * 3), ("max_ns", u64 * 3),
                *_fields("run_ns charged refills refills_charged"), ("window", u64 * 3 * WINDOWS),
                *_fields("latency stage excess residual", c.c_void_p)]


class Phase(c.Structure):
    """struct cxd_phase."""

    _fields_ = [*_fields("threads kind shift node_bytes", u32), *_fields("write_below think_ns"),
                *_fields("entries zipf_keep zipf_alias control", c.c_void_p), ("streams", c.POINTER(Stream)),
                ("evictions", u64 * WINDOWS), ("resident", u64 * WINDOWS)]


_STRUCTURES = (Config, Counters, Setup, Seen, Calibration, Stream, Phase)
_device, _error, _int = c.c_void_p, c.c_char_p, c.c_int
_FUNCTIONS = {
    "cxd_abi": (u64, c.POINTER(u64), u64), "cxd_now": (u64,), "cxd_cycles_per_ns": (c.c_double,),
    "cxd_open": (_device, c.POINTER(Setup), _error), "cxd_close": (_int, _device, _error),
    "cxd_forget": (None, c.c_void_p, u64), "cxd_base": (c.c_void_p, _device), "cxd_alias": (c.c_void_p, _device),
    "cxd_core_of": (c.c_void_p, _device), "cxd_populate": (_int, _device, u64, u64, _error),
    "cxd_touch": (None, _device, u64, u64, _int), "cxd_mark_written": (None, _device, u64, u64),
    "cxd_reconfigure": (_int, _device, c.POINTER(Config), _error), "cxd_set_drain": (None, _device, _int),
    "cxd_settle": (_int, _device, u64), "cxd_zero": (None, _device), "cxd_seen": (None, _device, c.POINTER(Seen)),
    "cxd_health": (_int, _device, _error),
    "cxd_set_compensation": (None, _device, u64, u64), "cxd_rearm": (_int,), "cxd_kill_worker": (None, _device),
    "cxd_probe": (_int, _int, _error),
    "cxd_calibrate": (_int, c.POINTER(Setup), u64, c.POINTER(Calibration), _error),
    "cxd_noise": (None, u64, u64, c.POINTER(u64)),
    "cxd_run": (_int, _device, c.c_void_p, c.POINTER(Phase), _error), "cxd_plain": (c.c_void_p, u64, _int, _error),
    "cxd_counters": (c.POINTER(Counters), c.c_void_p), "cxd_census": (None, c.c_void_p, u64 * 5),
}


class LiveError(RuntimeError):
    """The live device cannot be had here, or broke; the message says what mends it."""


def find() -> Path | None:
    """Where the library lies, None if it was not built."""
    return next(iter(sorted(Path(__file__).parent.glob("libcxd*.so"))), None)


@cache
def library() -> c.CDLL:
    """The library, its functions typed. LiveError where it was not built, or was built from other sources."""
    path = find()
    if path is None:
        raise LiveError(NOT_BUILT)
    try:
        lib = c.CDLL(str(path))
    except OSError as error:
        raise LiveError(f"{path.name} cannot be loaded ({error}): run `make setup` to compile it again") from None
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(lib, name, None)
        if function is None:
            raise LiveError(f"{path.name} has no {name}: it is older than this package; run `make setup`")
        function.restype, function.argtypes = result, arguments
    sizes = (u64 * len(_STRUCTURES))()
    abi, ours = lib.cxd_abi(sizes, len(sizes)), [c.sizeof(s) for s in _STRUCTURES]
    if abi != ABI or list(sizes) != ours:
        raise LiveError(f"{path.name} has interface {abi} {list(sizes)}, and this package needs {ABI} {ours}: "
                        "run `make setup` to compile it again")
    return lib


def call(name: str, *arguments) -> None:
    """Call a function whose last argument is an error text; LiveError if it fails."""
    text = c.create_string_buffer(ERROR_BYTES)
    if getattr(library(), name)(*arguments, text):
        raise LiveError(text.value.decode(errors="replace") or f"{name} failed")


def pointer(name: str, *arguments) -> int:
    """The same for a function that returns a pointer."""
    text = c.create_string_buffer(ERROR_BYTES)
    found = getattr(library(), name)(*arguments, text)
    if not found:
        raise LiveError(text.value.decode(errors="replace") or f"{name} failed")
    return found
