"""Fig. 5 and Sec. IV-B: sequential and random chase, one and eight threads, CXDVirt against Cylon."""
from __future__ import annotations

import numpy as np

from cxdbench.published.experiments import (
    PATTERNS,
    WSS,
    access_us,
    fig5,
    hit_ratio,
    miss_mean_us,
    miss_us,
    reach,
    served,
    share_within,
    thread_seconds,
)
from cxdbench.published.registry import Holds, reproduces

FIG6_COST = "a fault's cost is fitted to Fig. 6, at one thread and 1.5x"
SERIAL = "the serial part of a fault, serial_us, is fitted to this ratio; NAND conflicts alone give a few per cent"
LOCK = ("the lock is held through the NAND wait (Sec. IV-B), its hand-over takes handover_us, which is fitted to the "
        "ratio of means; the spread between threads to the hit plateau")
SPREAD = ("handover_spread, a lasting difference between threads, is fitted to this plateau; with equal threads the "
          "lock leaves it below 1 / WSS")


def by_pattern(value, *arguments):
    """value(result) of both patterns' runs."""
    return [value(fig5(arguments[0], pattern, arguments[1])) for pattern in PATTERNS]


def over_patterns(value):
    """Cylon's value over CXDVirt's at eight threads, for both patterns."""
    return [a / b for a, b in zip(by_pattern(value, "cylon", 8), by_pattern(value, "cxdvirt", 8), strict=True)]


def miss_range(system: str, threads: int, low: float, high: float, patterns=PATTERNS):
    """Lowest of the `low` and highest of the `high` percentile of misses."""
    points = np.array([miss_us(fig5(system, pattern, threads), low, high) for pattern in patterns])
    return float(points[:, 0].min()), float(points[:, 1].max())


@reproduces("f5.miss.1t.cxdvirt", "predicted", FIG6_COST, ends=True)
def _():
    return miss_range("cxdvirt", 1, 0.01, 0.99)


@reproduces("f5.width", "predicted", FIG6_COST)
def _():
    low, high = miss_range("cxdvirt", 1, 0.01, 0.99)
    return high - low


@reproduces("f5.miss.1t.cylon", "predicted", "Cylon's cost of a miss is fitted to Fig. 6", ends=True,
            known="The paper's own Figs. 5 and 6 disagree about Cylon at one thread: 10 to 12 us here, 6.2 + 5.3 to 8.5 "
                  "us there; Fig. 6 was taken")
def _():
    return miss_range("cylon", 1, 0.01, 0.99, ("sequential",))


@reproduces("f5.miss.8t.cxdvirt", "predicted", f"{FIG6_COST}; the serial part to the ratio of means", ends=True,
            known="Ours starts as printed and ends lower: at worst eight serial parts stand in line, which is half of the "
                  "printed 34 us; the paper does not say what the rest is")
def _():
    return miss_range("cxdvirt", 8, 0.001, 0.999)


@reproduces("f5.miss.8t.cylon", "predicted", LOCK, ends=True,
            known="Ours ends lower: a kept lock makes the wait for it geometric, and the printed one has a longer tail")
def _():
    return miss_range("cylon", 8, 0.001, 0.999)


def scale(system: str):
    one, eight = (by_pattern(miss_mean_us, system, threads) for threads in (1, 8))
    return reach(b / a for a, b in zip(one, eight, strict=True))


@reproduces("f5.scale.8t.cxdvirt", "fitted", SERIAL)
def _():
    return scale("cxdvirt")


@reproduces("f5.scale.8t.cylon", "fitted", "handover_us is fitted to this ratio; a fair lock already gives about 8",
            known="One hand-over time does not give both ends: where the sequential chase comes out, in which the lock "
                  "is not kept since the next miss is too far off, the random one stays a little below")
def _():
    return scale("cylon")


@reproduces("f5.missmean", "predicted", f"{LOCK}; CXDVirt's mean from its serial part")
def _():
    return over_patterns(miss_mean_us)[PATTERNS.index("cycle")]


@reproduces("f5.p99.8t", "predicted", LOCK,
            known="Both patterns of ours lie above the printed 25: at P99 of all accesses Cylon's tail is the wait for a kept "
                  "lock, whose length the fitted spread sets")
def _():
    return reach(over_patterns(lambda result: access_us(result, 0.99)[0]))


@reproduces("f5.p999.8t", "predicted", LOCK)
def _():
    return reach(over_patterns(lambda result: access_us(result, 0.999)[0]))


@reproduces("f5.hit.bound", "mechanism", "arithmetic: a cache of 1 / WSS of the pages, touched uniformly")
def _():
    return 1 / WSS[8]


@reproduces("f5.hit.cxdvirt", "mechanism", "one random cycle over 512 B nodes cannot hit as often as independent draws, "
            "whose bound is 1 / WSS", known="The published plateau lies between ours and the bound; ours moves towards the "
            "bound with smaller nodes or with independent draws")
def _():
    return hit_ratio(fig5("cxdvirt", "cycle", 8))


@reproduces("f5.hit.cylon", "fitted", SPREAD)
def _():
    return hit_ratio(fig5("cylon", "cycle", 8))


@reproduces("f5.hit.thread", "fitted", SPREAD, ends=True)
def _():
    result = fig5("cylon", "cycle", 8)
    hits = result["thread_hits"]
    return reach((hits / (hits + result["thread_misses"] + result["thread_waits"])).values)


@reproduces("f5.lead", "predicted", LOCK)
def _():
    levels = np.arange(1, 1000) / 1000
    ours = access_us(fig5("cylon", "cycle", 8), *levels) < access_us(fig5("cxdvirt", "cycle", 8), *levels)
    return 100 * float(levels[ours].max(initial=0))


@reproduces("f5.rise", "predicted", LOCK, ends=True)
def _():
    result = fig5("cylon", "cycle", 8)
    return share_within(result, 1), share_within(result, 14)


@reproduces("f5.lock", "fitted", "handover_mean is the paper's 0.71; ours counts installs that follow one of the same "
            "thread while all threads run",
            known="Threads that keep the lock more often also have it more often, so the share over all hand-overs is above "
                  "the mean over threads, which is what the preset is given")
def _():
    threads, _ = served("cylon")
    return float(np.mean(threads[1:] == threads[:-1]))


@reproduces("f5.lock.serve", "predicted", "the cost of a miss without a wait for the lock is fitted to Fig. 6; ours is the "
            "median of misses served after one of the same thread",
            known="Fig. 6's cost at one thread is a little below what eight vCPUs pay")
def _():
    threads, latency = served("cylon")
    return float(np.median(latency[1:][threads[1:] == threads[:-1]])) / 1000


def lower_above(levels: dict[str, float], threads: int) -> Holds:
    """Whether CXDVirt's percentiles of all accesses are below Cylon's, in both patterns."""
    holds, said = True, []
    for pattern in PATTERNS:
        ours, theirs = (access_us(fig5(system, pattern, threads), *levels.values()) for system in ("cxdvirt", "cylon"))
        holds &= bool((ours < theirs).all())
        said.append(f"{pattern} " + ", ".join(f"{name} {a:.3g} < {b:.3g}" if a < b else f"{name} {a:.3g} >= {b:.3g}"
                                              for name, a, b in zip(levels, ours, theirs, strict=True)) + " us")
    return Holds(holds, "; ".join(said))


@reproduces("f5.ccdf.1t", "predicted", "both systems' cost of a miss is fitted to Fig. 6")
def _():
    return lower_above({"P90": 0.9, "P99": 0.99, "P99.9": 0.999, "P99.99": 0.9999}, 1)


@reproduces("f5.ccdf.8t", "predicted", LOCK,
            known="The random chase holds. In the sequential one seven in eight accesses hit, so P95 lies among the misses "
                  "that the lock's holder serves back to back, faster than CXDVirt's in line; ours crosses between P95 "
                  "and P99, the paper's at P90")
def _():
    return lower_above({"P95": 0.95, "P99": 0.99, "P99.9": 0.999, "P99.99": 0.9999}, 8)


@reproduces("f5.third", "mechanism", "the access after a miss exits once more where it touches the same page; how high the "
            "step is is not printed, second_exit_us is taken equal to the exit")
def _():
    result = fig5("cylon", "sequential", 1)
    hits = result["latency"].sel(outcome="hit")
    step = int(hits.where(hits["bin"] > 2 * int(result["min_ns"].sel(outcome="hit")), 0).sum())
    misses, below = int(result["count"].sel(outcome="miss")), float(miss_us(result, 0.001)[0])
    height = float(hits["bin"].where(hits > 0).max()) / 1000
    holds = abs(step - misses) <= 0.01 * misses and height < below
    return Holds(holds, f"{step} accesses at {height:.3g} us, {misses} misses above {below:.3g} us")


@reproduces("f5.time.thread.cxdvirt", "predicted", f"{FIG6_COST}; the serial part to the ratio of means; that the timed "
            "part was one pass is inferred from this row itself, and the next then follows",
            known="Ours are within 2 %, which is what the serial part's last digit is worth")
def _():
    return thread_seconds(fig5("cxdvirt", "cycle", 8))


@reproduces("f5.time.thread.cylon", "predicted", f"{LOCK}. One pass, as in the row before", ends=True,
            known="Ours start and end about a tenth earlier, as the mean miss does")
def _():
    return thread_seconds(fig5("cylon", "cycle", 8))
