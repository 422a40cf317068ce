"""Whether this host can run the live engine, and in which mode; cheap enough to ask at every start."""
from __future__ import annotations

import signal
import sys
from pathlib import Path

from cxdbench.live.binding import MODES, LiveError, call, library

ORDER = ("sigbus", "guard", "mprotect", "thread")  # by what a miss costs
MAP_RESERVE = 5000                                 # pieces left to the rest of the process
CAUGHT_BY = {"sigbus": signal.SIGBUS, "guard": signal.SIGSEGV, "mprotect": signal.SIGSEGV} if sys.platform == "linux" else {}
SPLITTING = ("guard", "mprotect")                  # these cut the mapping in up to two pieces a cached page


def why_not() -> str:
    """Why the library cannot run here at all, "" if it can."""
    if sys.platform != "linux":
        return f"needs Linux, and this is {sys.platform}"
    try:
        library()
    except LiveError as error:
        return str(error)
    return ""


_works: set[str] = set()


def probe(mode: str) -> str:
    """Why a mode does not work in this process, "" if it does. Tries some 500 real faults."""
    if mode in _works:
        return ""
    try:
        call("cxd_probe", MODES.index(mode))
    except LiveError as error:
        return str(error)  # not kept: it may have been a limit of the moment
    _works.add(mode)
    return ""


def blocked(mode: str) -> str:
    """Why this thread cannot touch a device in this mode, "" if it can: a blocked signal makes a miss fatal."""
    wanted = CAUGHT_BY.get(mode)
    if wanted not in signal.pthread_sigmask(signal.SIG_BLOCK, []):
        return ""
    return (f"this thread blocks {wanted.name}, so a miss would end the process: call signal.pthread_sigmask("
            f"signal.SIG_UNBLOCK, [signal.{wanted.name}]), or open the device with mode='thread'")


def pages_that_fit(most: int) -> int:
    """Cached pages for which so many pieces of mappings suffice in the modes that cut."""
    return max(0, most - MAP_RESERVE) // 2


def max_map_count() -> int:
    return int(Path("/proc/sys/vm/max_map_count").read_text())


def choose_mode(mode: str, cache_pages: int) -> tuple[str, int]:
    """The mode to use and its number. LiveError for one that does not work here."""
    if why := why_not():
        raise LiveError(f"the live engine cannot run here: {why}")
    reasons = {}
    for candidate in ORDER if mode == "auto" else (mode,):
        reasons[candidate] = blocked(candidate) or probe(candidate)
        if not reasons[candidate] and candidate in SPLITTING and cache_pages > pages_that_fit(max_map_count()):
            reasons[candidate] = (f"{cache_pages} cached pages may cut the mapping in more pieces than "
                                  f"vm.max_map_count, {max_map_count()}, allows: lower cache_pages or raise it by "
                                  f"`sysctl vm.max_map_count={2 * cache_pages + 2 * MAP_RESERVE}`")
        if not reasons[candidate]:
            return candidate, MODES.index(candidate)
    raise LiveError("the live engine cannot run here in any mode asked for: " + "; ".join(f"{m}: {why}" for m, why in reasons.items()))
