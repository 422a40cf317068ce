"""`make bench`: what the model costs, against the same loop in C, against libcachesim, and at the slider.

Run by hand on a machine with nothing else to do. Only ratios within one run and medians are quoted; the table goes
into README.md between its markers.
"""
from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import cxdbench as cxd
from cxdbench.control import Control
from cxdbench.model import layout
from cxdbench.model.engine import Run
from cxdbench.model.inputs import prepare
from cxdbench.result import cpu_name
from tests.bench import cachesim
from tests.bench.ctwin import CRun

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
DEVICE = cxd.Device(cache_pages=16_384, capacity_pages=327_680)
PLAIN = [("all hits", {"wss": 0.5}), ("a third misses", {"wss": 1.5, "pattern": "random"})]
LOOPS = [(f"{name}, {threads} thread{'s' * (threads > 1)}", {**chase, "threads": threads})
         for name, chase in PLAIN for threads in (1, 8, 32)]
LOOPS += [("two thirds misses, 8 threads", {}), ("the same, half writes", {"write_share": 0.5})]
SCRATCH = [layout.G_QUEUE_NS, layout.G_SENSE_NS, layout.G_TRANSFER_NS]


def timed_part(kind: type[Run], chase: cxd.Chase) -> tuple[Run, np.ndarray, float]:
    """Warm up, then time the timed part alone: (the run, its windows, CPU seconds of this thread)."""
    inputs = prepare(DEVICE, chase)
    run = kind(DEVICE, inputs, chase.seed)
    run.warm_up(chase, Control())
    run.start_counting()
    window = np.full((layout.WINDOWS, 5), layout.NEVER, np.uint64)
    began = time.thread_time()
    run.phase(inputs.timed, Control(), "timed part", window)
    return run, window, time.thread_time() - began


def same(one: tuple, two: tuple) -> bool:
    """Whether two runs left the same cells everywhere but in scratch ones."""
    (a, wa, _), (b, wb, _) = one, two
    keep = np.setdiff1d(np.arange(len(a.g)), SCRATCH)
    return np.array_equal(wa, wb) and np.array_equal(a.g[keep], b.g[keep]) and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in ("th", "word", "queue", "nand", "hist", "stage"))


def loop_row(chase: cxd.Chase, rounds: int) -> tuple[float, float]:
    """Million accesses a second of CPU time, (Numba, C), medians of interleaved rounds. SystemExit if they differ."""
    seconds: list[tuple[float, float]] = []
    for _ in range(rounds):
        ours, twin = timed_part(Run, chase), timed_part(CRun, chase)
        if not same(ours, twin):
            raise SystemExit(f"bench: Numba and C differ on {chase}")
        seconds.append((ours[2], twin[2]))
    numba, c = np.median(seconds, axis=0)
    return chase.accesses / numba / 1e6, chase.accesses / c / 1e6


def slider(rounds: int = 50) -> tuple[float, float]:
    """Milliseconds from a moved slider to the redrawn figure and table, without the browser: (P50, P95)."""
    bench = cxd.explore()
    taken = []
    for i in range(rounds):
        value = round(0.8 + 0.04 * ((7 * i) % rounds), 2)
        began = time.perf_counter()
        bench.controls.widgets["wss"].value = value
        bench.settle()
        taken.append(1000 * (time.perf_counter() - began))
    bench.close()
    return float(np.percentile(taken, 50)), float(np.percentile(taken, 95))


def first_curve() -> float:
    """Seconds from a fresh Python to the explorer's first curves, the Numba cache being warm."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import cxdbench as cxd; cxd.explore()"], check=True)
    return time.perf_counter() - began


def report(rounds: int) -> str:
    """The README's part, measured now."""
    lines = ["| the model's loop, accesses a second of CPU time | Numba | C -O3 -march=native | ratio |", "|---|---|---|---|"]
    for name, chase in LOOPS:
        numba, c = loop_row(cxd.Chase(accesses=1_000_000, **chase), rounds)
        lines.append(f"| {name} | {numba:.0f} M | {c:.0f} M | {numba / c:.2f} |")
    lines += ["", "| page cache from one trace file, reading included | cxdbench | libcachesim | times | miss ratio, both |",
              "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for row in cachesim.rows(Path(folder)):
            lines.append(f"| {row.name} | {row.ours_s:.2f} s | {row.theirs_s:.2f} s | {row.theirs_s / row.ours_s:.1f} | "
                         f"{row.ours:.4f}, {row.theirs:.4f} |")
    p50, p95 = slider()
    first = np.median([first_curve() for _ in range(3)])
    lines += ["", f"Slider to redrawn curve and table, a million timed accesses and the warm-up included, without the "
              f"browser: P50 {p50:.0f} ms, P95 {p95:.0f} ms. First curves in a fresh process: {first:.1f} s.", "",
              f"Measured by `make bench` on {datetime.date.today()}, one core of a shared {cpu_name()}: compare within the "
              "table. The C loop is the same algorithm over the same arrays, and leaves the same cells."]
    return "\n".join(lines)


def put_between(text: str, table: str, begin: str, end: str) -> str:
    """`text` with what stands between the markers replaced; nothing else changes."""
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"bench: README.md has no {begin} … {end}")
    return f"{head}{begin}\n{table}\n{end}{tail}"


def command(name: str, about: str, report: Callable[[int], str], rounds: int, begin: str, end: str) -> None:
    """The command line of a benchmark: measure, print the table, and put it into the README between its markers."""
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=about.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=rounds, help="interleaved rounds of each row")
    parser.add_argument("--print", action="store_true", help="print the table and leave README.md alone")
    arguments = parser.parse_args()
    table = report(arguments.rounds)
    print(table)
    if not arguments.print:
        README.write_text(put_between(README.read_text(encoding="utf-8"), table, begin, end), encoding="utf-8")


if __name__ == "__main__":
    command("tests.bench", __doc__, report, 9, BEGIN, END)
