"""What a run writes down: the event log, and each finished access in the result's histograms."""
from __future__ import annotations

from cxdbench.bins import bin_of
from cxdbench.jit import inline, outline
from cxdbench.model.layout import (
    C_HIT_NS, FIRST_STAGE, G_DONE, G_LOG_LOST, G_LOG_N, G_MISS_MAX, G_MISS_MIN, G_MISS_SUM, G_MISSES, G_WAIT_MAX,
    G_WAIT_MIN, G_WAIT_SUM, G_WAITS, N_STAGES, T_INSTALL, T_LEFT, T_MISSES, T_QUEUE, T_READ_NS, T_START, T_SUM_NS,
    T_WAITS, U,
)

# rows of hist
WAIT_ROW, MISS_ROW, EXCESS_ROW, RESIDUAL_ROW = 0, 1, 2, 4  # excess and residual: one row each for below 0 and the rest
HIST_ROWS = 6
UNCHARGED = U(2**64 - 1)  # in T_READ_NS: this miss was charged no NAND read


@outline
def _write(g, log, now, thread, page, kind):
    i = g[G_LOG_N]
    if i < U(log.shape[0]):
        log[i, 0], log[i, 1], log[i, 2], log[i, 3] = now, thread, page, U(kind)
        g[G_LOG_N] = i + U(1)
    else:
        g[G_LOG_LOST] += U(1)


@inline
def emit(g, log, now, thread, page, kind):
    """Add an event to the log, log[i] = (t_ns, thread, page, kind), if one is kept."""
    if log.shape[0] > 0:
        _write(g, log, now, thread, page, kind)


@inline
def _spread(hist, row, value, base):
    """Count value - base in a pair of rows: below 0, and 0 or more."""
    if value >= base:
        hist[row + 1, bin_of(value - base)] += U(1)
    else:
        hist[row, bin_of(base - value)] += U(1)


@inline
def record_miss(g, th, t, hist, stage, end, configured):
    """A miss ends at `end`; its stages lie in th. `configured` is its page's t_R + transfer."""
    latency = end - th[t, T_START]
    timed = hist.shape[0] > 0
    if timed:
        b = bin_of(latency)
        hist[MISS_ROW, b] += U(1)
        for i in range(U(0), U(N_STAGES)):
            stage[b, i] += th[t, U(FIRST_STAGE) + i]
        if th[t, T_READ_NS] != UNCHARGED:
            _spread(hist, EXCESS_ROW, latency, configured)
            _spread(hist, RESIDUAL_ROW, latency, th[t, T_READ_NS])
    for i in range(U(0), U(N_STAGES)):
        th[t, U(FIRST_STAGE) + i] = U(0)
    g[G_MISSES] += U(1)
    g[G_MISS_SUM] += latency
    g[G_MISS_MIN] = min(g[G_MISS_MIN], latency)
    g[G_MISS_MAX] = max(g[G_MISS_MAX], latency)
    th[t, T_MISSES] += U(1)
    th[t, T_SUM_NS] += latency
    th[t, T_LEFT] -= U(1)
    g[G_DONE] += U(1)


@inline
def record_wait(cfg, g, th, t, hist, stage, now):
    """An access that waited finds its page at `now`; returns its latency."""
    latency = now - th[t, T_START] + cfg[C_HIT_NS]
    if hist.shape[0] > 0:
        b = bin_of(latency)
        hist[WAIT_ROW, b] += U(1)
        stage[b, T_QUEUE - FIRST_STAGE] += th[t, T_QUEUE]
        stage[b, T_INSTALL - FIRST_STAGE] += cfg[C_HIT_NS]
    th[t, T_QUEUE] = U(0)
    g[G_WAITS] += U(1)
    g[G_WAIT_SUM] += latency
    g[G_WAIT_MIN] = min(g[G_WAIT_MIN], latency)
    g[G_WAIT_MAX] = max(g[G_WAIT_MAX], latency)
    th[t, T_WAITS] += U(1)
    th[t, T_SUM_NS] += latency
    th[t, T_LEFT] -= U(1)
    g[G_DONE] += U(1)
    return latency
