"""What happens behind the threads: prefetches and the drain, as events in a heap ordered by (time, when asked for)."""
from __future__ import annotations

import numpy as np

from cxdbench.jit import inline, outline
from cxdbench.model.layout import (
    BACKGROUND, C_CAPACITY, C_DRAIN_HIGH, C_DRAIN_PAGES, C_DRAIN_PERIOD, C_DRAIN_STOP, C_PF_DELAY, C_PF_FREE,
    C_PF_PAGES, C_PF_QUEUE, C_UNWRITTEN, EV_PREFETCH, G_CACHED, G_DRAINING, G_FREE, G_HEAP_N, G_HEAP_SEQ, G_LIVE,
    G_PF_ALREADY, G_PF_ASKED, G_PF_CHARGED, G_PF_DROPPED, G_PF_ISSUED, G_PF_OPEN, G_PF_UNCHARGED, LOADING,
    NOT_CACHED, PREFETCHED, STATE, U, UNWRITTEN_CHARGE, UNWRITTEN_FREE, W_DRAINED, W_PREFETCH, W_PREFETCH_INSTALL,
    W_PREFETCH_READ, W_TICK, WRITTEN,
)
from cxdbench.model.nand import program, read
from cxdbench.model.pages import NO_PAGE, evict, evicted, frame_may_be_had, install
from cxdbench.model.record import emit

_STATE, _PREFETCHED, _WRITTEN = np.uint32(STATE), np.uint32(PREFETCHED), np.uint32(WRITTEN)


@outline
def push(g, heap, time, what, page, victim):
    """Schedule background work: heap[i] = (t_ns, sequence, what, page, victim), a binary heap by the first two."""
    i = g[G_HEAP_N]
    g[G_HEAP_N] = i + U(1)
    sequence = g[G_HEAP_SEQ]
    g[G_HEAP_SEQ] = sequence + U(1)
    while i > U(0):
        parent = (i - U(1)) >> U(1)
        if heap[parent, 0] <= time:
            break
        for k in range(5):
            heap[i, k] = heap[parent, k]
        i = parent
    heap[i, 0], heap[i, 1], heap[i, 2], heap[i, 3], heap[i, 4] = time, sequence, U(what), page, victim


@inline
def _earlier(heap, a, b):
    return heap[a, 0] < heap[b, 0] or (heap[a, 0] == heap[b, 0] and heap[a, 1] < heap[b, 1])


@inline
def pop(g, heap):
    """Remove heap[0]; the caller has read it."""
    n = g[G_HEAP_N] - U(1)
    g[G_HEAP_N] = n
    i = U(0)
    while True:
        child = U(2) * i + U(1)
        if child >= n:
            break
        if child + U(1) < n and _earlier(heap, child + U(1), child):
            child += U(1)
        if _earlier(heap, n, child):
            break
        for k in range(5):
            heap[i, k] = heap[child, k]
        i = child
    for k in range(5):
        heap[i, k] = heap[n, k]


@outline
def ask_ahead(cfg, g, heap, page, now):
    """The next N pages are asked for, on a demand fill."""
    for i in range(U(1), cfg[C_PF_PAGES] + U(1)):
        g[G_PF_ASKED] += U(1)
        if page + i >= cfg[C_CAPACITY] or g[G_PF_OPEN] >= cfg[C_PF_QUEUE]:
            g[G_PF_DROPPED] += U(1)
        else:
            g[G_PF_OPEN] += U(1)
            push(g, heap, now + cfg[C_PF_DELAY], W_PREFETCH, page + i, NO_PAGE)


@inline
def _start(cfg, g, th, word, queue, nand, times, order, heap, log, page, now):
    """A prefetch starts: claim and frame step. True if its read is next, at once."""
    if word[page] & _STATE != NOT_CACHED:
        g[G_PF_ALREADY] += U(1)
        g[G_PF_OPEN] -= U(1)
        return False
    if g[G_FREE] == U(0) and g[G_CACHED] == U(0):
        g[G_PF_DROPPED] += U(1)
        g[G_PF_OPEN] -= U(1)
        return False
    g[G_PF_ISSUED] += U(1)
    word[page] = (word[page] & _WRITTEN) | _PREFETCHED | np.uint32(LOADING)
    emit(g, log, now, BACKGROUND, page, EV_PREFETCH)
    if g[G_FREE] > U(0):
        g[G_FREE] -= U(1)
        return True
    victim, slow = evict(cfg, g, word, queue, log, now, BACKGROUND)
    if slow:
        end = program(cfg, g, nand, times, log, BACKGROUND, victim, now)
        if end > now:
            push(g, heap, end, W_PREFETCH_READ, page, victim)
            return False
        evicted(cfg, g, th, word, order, victim, now)
    return True


@inline
def _read(cfg, g, word, nand, times, log, page, now):
    """A prefetch's read step; when the page is there."""
    if cfg[C_PF_FREE] == U(0):
        unwritten = word[page] & _WRITTEN == 0
        if not unwritten or cfg[C_UNWRITTEN] == UNWRITTEN_CHARGE:
            g[G_PF_CHARGED] += U(1)
            return read(cfg, g, nand, times, page, now)
        if cfg[C_UNWRITTEN] != UNWRITTEN_FREE:
            g[G_PF_UNCHARGED] += U(1)
            word[page] |= _WRITTEN
            return program(cfg, g, nand, times, log, BACKGROUND, page, now)
    g[G_PF_UNCHARGED] += U(1)
    return now


@inline
def _tick(cfg, g, th, word, queue, nand, times, order, heap, log, now):
    """One period of the drain; when it was, 0 if no thread is left."""
    if g[G_LIVE] == U(0):
        return U(0)
    if g[G_CACHED] >= cfg[C_DRAIN_HIGH]:
        g[G_DRAINING] = U(1)
    taken = U(0)
    while g[G_DRAINING] != U(0) and g[G_CACHED] > cfg[C_DRAIN_STOP] and taken < cfg[C_DRAIN_PAGES]:
        taken += U(1)
        victim, slow = evict(cfg, g, word, queue, log, now, BACKGROUND)
        if slow:
            end = program(cfg, g, nand, times, log, BACKGROUND, victim, now)
            if end > now:
                push(g, heap, end, W_DRAINED, NO_PAGE, victim)
                continue
            evicted(cfg, g, th, word, order, victim, now)
        g[G_FREE] += U(1)
    if g[G_CACHED] <= cfg[C_DRAIN_STOP]:
        g[G_DRAINING] = U(0)
    push(g, heap, now + cfg[C_DRAIN_PERIOD], W_TICK, NO_PAGE, NO_PAGE)
    return now


@outline
def background(cfg, g, th, word, queue, nand, times, order, heap, log):
    """Handle the earliest event of the heap; its time, 0 for a tick after the last thread left."""
    now, what, page, victim = heap[0, 0], heap[0, 2], heap[0, 3], heap[0, 4]
    pop(g, heap)
    if what == W_TICK:
        return _tick(cfg, g, th, word, queue, nand, times, order, heap, log, now)
    if what == W_DRAINED:
        evicted(cfg, g, th, word, order, victim, now)
        g[G_FREE] += U(1)
        frame_may_be_had(cfg, g, th, order, now)
        return now
    if what == W_PREFETCH:
        if not _start(cfg, g, th, word, queue, nand, times, order, heap, log, page, now):
            return now
    elif what == W_PREFETCH_READ:
        evicted(cfg, g, th, word, order, victim, now)
    if what != W_PREFETCH_INSTALL:
        ready = _read(cfg, g, word, nand, times, log, page, now)
        if ready > now:
            push(g, heap, ready, W_PREFETCH_INSTALL, page, NO_PAGE)
            return now
    install(cfg, g, th, word, queue, order, log, page, now, BACKGROUND)
    g[G_PF_OPEN] -= U(1)
    return now
