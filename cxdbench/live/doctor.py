"""What this host can run, and what mends each thing that is missing. Nothing here raises for want of a file."""
from __future__ import annotations

import mmap
import os
import platform
import re
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cxdbench.device import PAGE_BYTES
from cxdbench.live import binding, costs, host
from cxdbench.live.binding import LiveError
from cxdbench.live.memory import available_bytes

ROOT = Path("/")
NOT_VISIBLE = "not visible here"
USUAL_PAGES = 16_384    # the command's own --cache-pages
USUAL_BYTES = 4 * 2**30  # address space and file size that a usual device stays below
LOOK_S = 0.25           # how long the cores are watched
TOOLS = {"C compiler": (("cc", "gcc", "clang"), "gcc libc6-dev", "to build libcxd.so"),
         "chromium": (("chromium", "chromium-browser", "google-chrome"), "chromium", "for the browser tests"),
         "qemu": (("qemu-system-x86_64",), "qemu-system-x86", "to start a virtual machine"),
         "redis-server": (("redis-server",), "redis-server", "to run one on a device")}


@dataclass(frozen=True)
class Finding:
    """One thing looked at. ok: True, False, or None for information. mend: one sentence with what mends it, or ""."""

    name: str
    value: str
    ok: bool | None = None
    mend: str = ""
    data: Any = None


def examine() -> list[Finding]:
    """Everything but the engines, in the order to be read. Takes some 2 s."""
    why = host.why_not()
    works = {} if why else {mode: host.blocked(mode) or host.probe(mode) for mode in host.ORDER}
    auto = next((mode for mode, reason in works.items() if not reason), None)
    return [library(why), *modes(why, works, auto), *kernel(), *limits(auto), memory(), *processors(), *machine(),
            *measured(works, auto), *tools()]


def broken(name: str, why: str, otherwise: str = "") -> Finding:
    """A Finding from one of this package's reasons, "what is wrong: what mends it"."""
    reason, *mend = re.split(r"(?<!\bit)[:;] (?=(?:needs|run|lower|raise|call) )", why, maxsplit=1)
    return Finding(name, reason, False, mend[0] if mend else otherwise)


def library(why: str) -> Finding:
    if why:
        return broken("libcxd.so", why, "use the model engine here, `--backend model`")
    return Finding("libcxd.so", str(binding.find()), True)


def modes(why: str, works: dict[str, str], auto: str | None) -> list[Finding]:
    """Each way to catch a miss, the cheapest first."""
    if why:
        return [*(Finding(f"mode {mode}", "not tried without libcxd.so", False) for mode in host.ORDER),
                Finding("mode auto", "none works", False)]
    found = [Finding(f"mode {mode}", "works", True) if not reason else broken(f"mode {mode}", reason)
             for mode, reason in works.items()]
    found = [Finding(f.name, f.value, f.ok, f"{f.mend}; in a container run it with `docker run --security-opt "
                     "seccomp=unconfined`", f.data) if f.value.startswith("userfaultfd cannot be opened") else f for f in found]
    return [*found, Finding("mode auto", f"takes {auto}", True, data=auto) if auto else Finding("mode auto", "none works", False)]


def kernel() -> list[Finding]:
    arch, release, page = platform.machine(), platform.release(), mmap.PAGESIZE
    user = os.getuid() if hasattr(os, "getuid") else None
    allowed = read("proc/sys/vm/unprivileged_userfaultfd")
    return [
        Finding("kernel", f"{platform.system()} {release}", None, data=release),
        Finding("architecture", arch, arch in ("x86_64", "AMD64"), "" if arch in ("x86_64", "AMD64") else
                "the live engine needs x86-64: use the model engine here, `--backend model`", arch),
        Finding("page size", f"{page} bytes", page == PAGE_BYTES, "" if page == PAGE_BYTES else
                "the live engine needs a kernel with pages of 4 KiB: use the model engine here, `--backend model`", page),
        Finding("user id", NOT_VISIBLE if user is None else f"{user}{' (root)' if user == 0 else ''}", None, data=user),
        Finding("vm.unprivileged_userfaultfd", f"{allowed or NOT_VISIBLE}; does not matter: the device asks for user-mode "
                "faults only, which every user may have", None, data=number(allowed)),
    ]


def limits(auto: str | None) -> list[Finding]:
    most = number(read("proc/sys/vm/max_map_count"))
    found = []
    if most is None:
        found.append(Finding("vm.max_map_count", NOT_VISIBLE))
    else:
        pages = host.pages_that_fit(most)
        enough = pages >= USUAL_PAGES
        found.append(Finding(
            "vm.max_map_count", f"{most}: enough for {pages:,} cached pages in modes {' and '.join(host.SPLITTING)}",
            enough or (False if auto in host.SPLITTING else None),
            "" if enough else f"raise it by `sysctl vm.max_map_count={2 * USUAL_PAGES + 2 * host.MAP_RESERVE}`",
            {"max_map_count": most, "cached_pages": pages}))
    try:
        import resource
    except ImportError:
        return [*found, Finding("resource limits", NOT_VISIBLE)]
    unlimited = []
    for name, flag, what, unit in (("NOFILE", "n", "open files", ""), ("AS", "v", "address space", " bytes"),
                                   ("FSIZE", "f", "file size, memfd too", " bytes")):
        soft, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        if soft == resource.RLIM_INFINITY:
            unlimited.append(name)
            continue
        small = soft < (64 if name == "NOFILE" else USUAL_BYTES)
        found.append(Finding(f"RLIMIT_{name}", f"{soft:,}{unit} ({what})", False if small else None,
                             f"raise it by `ulimit -{flag} {'unlimited' if unit else 1024}`" if small else "",
                             {"soft": soft, "hard": None if hard == resource.RLIM_INFINITY else hard}))
    return [*found, *([Finding("unlimited", ", ".join(f"RLIMIT_{name}" for name in unlimited))] if unlimited else [])]


def memory() -> Finding:
    try:
        free = available_bytes()
    except (OSError, KeyError, ValueError):
        return Finding("memory available", NOT_VISIBLE)
    enough = free >= 2 * 2**30
    return Finding("memory available", f"{free / 2**30:.1f} GiB, {free // PAGE_BYTES:,} pages", enough, "" if enough else
                   "end what holds it (`ps aux --sort=-rss | head`), or use a smaller --cache-pages and wss", free)


def processors() -> list[Finding]:
    """Cores this process may use and how much of them is idle and stolen, over LOOK_S seconds; the container's share."""
    mine = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    before = core_times()
    if before:
        time.sleep(LOOK_S)
    after = core_times()
    load = (read("proc/loadavg") or "").split()[:1]
    data: dict[str, Any] = {"cores": len(mine), "load": float(load[0]) if load else None, "free": None, "stolen": None}
    text, ok, mend = f"{len(mine)} may be used", None, ""
    spent = [[b - a for a, b in zip(before[c], after[c], strict=False)] for c in mine if c in before and c in after]
    spent = [row for row in spent if sum(row[:8]) > 0]
    if spent:
        data["free"] = round(sum((row[3] + row[4]) / sum(row[:8]) for row in spent), 2)
        data["stolen"] = round(sum(row[7] / sum(row[:8]) for row in spent), 2)
        ok = data["free"] >= 1
        text += f", {data['free']:.1f} of them free now"
        text += f", {data['stolen']:.1f} stolen by the hypervisor" if data["stolen"] >= 0.05 else ""
        mend = "" if ok else "end or wait for other work before measuring in real time; `top` shows it"
    text += f"; load {load[0]}" if load else ""
    found = [Finding("cores", text, ok, mend, data)]
    quota = (read("sys/fs/cgroup/cpu.max") or "max").split()
    if quota[0] != "max" and len(quota) == 2:
        found.append(Finding("cores by cgroup", f"{int(quota[0]) / int(quota[1]):.2f}: waits beyond them are cut off", False,
                             "give the container more by `docker update --cpus=N`", int(quota[0]) / int(quota[1])))
    return found


def core_times() -> dict[int, list[int]]:
    """Clock ticks by core since boot: user, nice, system, idle, iowait, irq, softirq, steal, and more."""
    lines = re.findall(r"^cpu(\d+) ([\d ]+)$", read("proc/stat") or "", re.M)
    return {int(core): list(map(int, ticks.split())) for core, ticks in lines if len(ticks.split()) >= 8}


def machine() -> list[Finding]:
    nodes = {int(p.parent.name[4:]): [int(n) for n in (read(p) or "").split()]
             for p in sorted(ROOT.glob("sys/devices/system/node/node[0-9]*/distance"))}
    thp = {name: chosen(read(f"sys/kernel/mm/transparent_hugepage/{name}")) for name in ("enabled", "shmem_enabled")}
    flags = set((re.search(r"^flags\s*:(.*)$", read("proc/cpuinfo") or "", re.M) or [" ", ""])[1].split())
    steady = {"constant_tsc", "nonstop_tsc"} <= flags
    tsc = (f"{'' if 'constant_tsc' in flags else 'not '}constant, {'' if 'nonstop_tsc' in flags else 'not '}nonstop"
           if flags else NOT_VISIBLE)
    shown = "; ".join(f"node {node}: {' '.join(map(str, row))}" for node, row in sorted(nodes.items()))
    return [
        Finding("NUMA nodes", f"{len(nodes)}, distances: {shown}" if nodes else NOT_VISIBLE, None,
                data={str(node): row for node, row in nodes.items()}),
        Finding("transparent huge pages", "; ".join(f"{name} {value or NOT_VISIBLE}" for name, value in thp.items())
                if any(thp.values()) else NOT_VISIBLE, None, data=thp),
        *frequency(),
        Finding("cycle counter", tsc, steady if flags else None, "" if steady or not flags else
                "times drift with the cores' clock here: hold it by `cpupower frequency-set -g performance`",
                {"constant": "constant_tsc" in flags, "nonstop": "nonstop_tsc" in flags} if flags else None),
        Finding("hypervisor", ("yes: a virtual machine" if "hypervisor" in flags else "no") if flags else NOT_VISIBLE, None,
                data="hypervisor" in flags if flags else None),
    ]


def frequency() -> list[Finding]:
    governor = read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    no_turbo, boost = read("sys/devices/system/cpu/intel_pstate/no_turbo"), read("sys/devices/system/cpu/cpufreq/boost")
    turbo = no_turbo == "0" if no_turbo else boost == "1" if boost else None
    slow = governor not in (None, "performance")
    return [Finding("frequency governor", governor or NOT_VISIBLE, None if governor is None else not slow,
                    "for steadier times run `cpupower frequency-set -g performance`" if slow else "", governor),
            Finding("turbo", NOT_VISIBLE if turbo is None else "on" if turbo else "off", None, data=turbo)]


def measured(works: dict[str, str], auto: str | None) -> list[Finding]:
    """What needs the library: nothing where it is missing."""
    if not works:
        return [Finding("measurements", "not made without libcxd.so")]

    def cycles() -> tuple[str, Any]:
        rate = costs.cycles_per_ns()
        return f"{rate:.4f} per ns", round(rate, 6)

    def wait() -> tuple[str, Any]:
        late = costs.waits()
        return (f"a bare wait of {costs.WAIT_NS / 1000:g} us ends late by P50 {late['p50']} ns, P90 {late['p90']} ns, "
                f"P99 {late['p99']} ns, P99.9 {late['p999']} ns"), late

    def miss(mode: str) -> tuple[str, Any]:
        cost = costs.miss(mode)
        return (f"{cost['total_ns']} ns over the configured {cost['modelled_ns'] / 1000:g} us, uncompensated (entry "
                f"{cost['entry_ns']} ns, exit {cost['exit_ns']} ns, as compensation takes them off)"), cost

    def unmap() -> tuple[str, Any]:
        cost = costs.shootdown(auto)
        if cost is None:
            return "not measured: there is one core", None
        short = f", which had {cost['busy_share']:.0%} of its core" if cost["busy_share"] < 0.9 else ""
        return (f"unmapping a page (mode {auto}, one thread on one core) takes {cost['alone_ns']:.0f} ns, and "
                f"{cost['beside_ns']:.0f} ns while another thread of this process spins on a second core{short}"), cost

    return [attempt("cycles", cycles), attempt("noise floor", wait),
            *(attempt(f"miss by {mode}", lambda mode=mode: miss(mode)) for mode, reason in works.items() if not reason),
            *([attempt("TLB shootdown", unmap)] if auto else [])]


def attempt(name: str, measure: Callable[[], tuple[str, Any]]) -> Finding:
    try:
        value, data = measure()
    except (LiveError, OSError) as error:
        return broken(name, str(error))
    return Finding(name, value, None, data=data)


def tools() -> list[Finding]:
    found = []
    for name, (commands, package, purpose) in TOOLS.items():
        path = next(filter(None, map(shutil.which, commands)), None)
        found.append(Finding(name, path or f"not found ({purpose})", None, "" if path else f"run `apt-get install {package}`", path))
    return found


def read(path: str | Path) -> str | None:
    """A file below ROOT, stripped; None where it is not there or not readable."""
    try:
        return (ROOT / path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def number(text: str | None) -> int | None:
    return int(text) if text and text.lstrip("-").isdigit() else None


def chosen(text: str | None) -> str | None:
    """The word in brackets, as sysfs shows which of several is set."""
    return (re.search(r"\[(\w+)\]", text or "") or [None, None])[1]


def table(findings: Iterable[Finding]) -> str:
    """Aligned lines: a mark (ok, -, !!), the name, the value; below it, indented, what mends it."""
    findings = list(findings)
    width = max((len(f.name) for f in findings), default=0)
    lines = []
    for f in findings:
        lines.append(f"{ {True: 'ok', None: '-', False: '!!'}[f.ok]:<2}  {f.name:<{width}}  {f.value}")
        if f.mend:
            lines.append(f"{'':<{width + 6}}mend: {f.mend}")
    return "\n".join(lines)
