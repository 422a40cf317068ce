"""Fig. 6: miss latency by percentile, one thread, sequential, 1.5x."""
from __future__ import annotations

from cxdbench.published.experiments import device, fig6, miss_us, reach
from cxdbench.published.registry import reproduces

UP_TO_P99 = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
CXDVIRT = "fault_path.overhead_us holds this figure's quantiles of CXDVirt"
CYLON = "fault_path.rest_us, the refault's probability and its gap hold this figure's quantiles of Cylon"
BOTH = f"{CXDVIRT}; {CYLON}"


def over_us(system: str, *levels: float):
    """Observed less 6.2 us, which the paper holds both systems against though Cylon models no channel."""
    return miss_us(fig6(system), *levels) - device("cxdvirt").configured_ns() / 1000


def ratios(*levels: float):
    return miss_us(fig6("cylon"), *levels) / miss_us(fig6("cxdvirt"), *levels)


@reproduces("f6.ratio.p99", "fitted", BOTH, ends=True)
def _():
    return reach(ratios(*UP_TO_P99))


@reproduces("f6.ratio.p999", "fitted", BOTH, known="The printed numbers disagree in the last digit: (6.2 + 37.2) us over "
            "(6.2 + 4.1) us is 4.2, not 4.1; the overheads were taken")
def _():
    return ratios(0.999)[0]


@reproduces("f6.ratio.p9999", "fitted", BOTH)
def _():
    return ratios(0.9999)[0]


@reproduces("f6.over.p99.cxdvirt", "fitted", CXDVIRT, ends=True)
def _():
    return reach(over_us("cxdvirt", *UP_TO_P99))


@reproduces("f6.over.p999.cxdvirt", "fitted", CXDVIRT)
def _():
    return over_us("cxdvirt", 0.999)[0]


@reproduces("f6.over.p99.cylon", "fitted", CYLON, ends=True)
def _():
    return reach(over_us("cylon", *UP_TO_P99))


@reproduces("f6.over.p999.cylon", "fitted", CYLON)
def _():
    return over_us("cylon", 0.999)[0]
