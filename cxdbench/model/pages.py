"""Page states and the threads that sleep on them: evict, free, wake; and the order in which threads go next."""
from __future__ import annotations

import numpy as np

from cxdbench.jit import inline
from cxdbench.model.eviction import join, leave
from cxdbench.model.layout import (
    BACKGROUND, C_THREADS, C_WRITEBACK_FREE, CACHED, DIRTY, EV_EVICT_CLEAN, EV_EVICT_DIRTY, EV_INSTALL, EVICTING,
    FLAGS, G_ASLEEP, G_CLEAN_BACK, G_CLEAN_FORE, G_DIRTY_BACK, G_DIRTY_FORE, G_EVICT_BEGUN, G_EVICT_ENDED, G_FILLS,
    G_ORDER_HEAD, G_ORDER_N, G_PF_WASTED, G_STARVED, MAX_THREADS, NOT_CACHED, PREFETCHED, REFERENCED, STATE, T_QUEUE, T_SINCE,
    T_SLEEPS_ON, T_VICTIM_NS, THREAD_BITS, U,
)
from cxdbench.model.record import emit

NO_PAGE = U(2**64 - 1)
ANY_FRAME = U(2**64 - 2)  # in T_SLEEPS_ON: the thread has a claim but no frame
NO_THREAD = U(2**64 - 1)
_STATE, _KEEP = np.uint32(STATE), np.uint32(FLAGS ^ STATE)
_DIRTY, _PREFETCHED = np.uint32(DIRTY), np.uint32(PREFETCHED)
_MASK = U(MAX_THREADS - 1)


@inline
def put(g, order, now, t):
    """Schedule thread t at `now`. order: a ring of (time, thread) keys, earliest first; the tail is searched first."""
    key = (now << U(THREAD_BITS)) | t
    head, n = g[G_ORDER_HEAD], g[G_ORDER_N]
    i = head + n
    while i > head and order[(i - U(1)) & _MASK] > key:
        order[i & _MASK] = order[(i - U(1)) & _MASK]
        i -= U(1)
    order[i & _MASK] = key
    g[G_ORDER_N] = n + U(1)


@inline
def take_out(g, order, t):
    """Unschedule thread t."""
    head, n = g[G_ORDER_HEAD], g[G_ORDER_N]
    i = head
    while order[i & _MASK] & _MASK != t:
        i += U(1)
    while i + U(1) < head + n:
        order[i & _MASK] = order[(i + U(1)) & _MASK]
        i += U(1)
    g[G_ORDER_N] = n - U(1)


@inline
def wake(cfg, g, th, order, page, now):
    """The page changed state: whoever sleeps on it looks again at `now`."""
    if g[G_ASLEEP] == U(0):
        return
    for t in range(U(0), cfg[C_THREADS]):
        if th[t, T_SLEEPS_ON] == page:
            th[t, T_SLEEPS_ON] = NO_PAGE
            th[t, T_QUEUE] += now - th[t, T_SINCE]
            g[G_ASLEEP] -= U(1)
            put(g, order, now, t)


@inline
def frame_may_be_had(cfg, g, th, order, now):
    """A page was installed or a frame freed: threads without a frame look again at `now`."""
    if g[G_STARVED] == U(0):
        return
    g[G_STARVED] = U(0)
    for t in range(U(0), cfg[C_THREADS]):
        if th[t, T_SLEEPS_ON] == ANY_FRAME:
            th[t, T_SLEEPS_ON] = NO_PAGE
            th[t, T_VICTIM_NS] += now - th[t, T_SINCE]
            put(g, order, now, t)


@inline
def set_state(word, page, state):
    word[page] = (word[page] & _KEEP) | np.uint32(state)


@inline
def evict(cfg, g, word, queue, log, now, thread):
    """Take the policy's victim out of the cache; (page, whether its program must be waited for).

    A clean victim, or a dirty one whose write-back is free, is NOT_CACHED at once; else it is EVICTING until
    `evicted`.
    """
    victim = leave(cfg, g, word, queue)
    w = word[victim]
    if w & _PREFETCHED:
        g[G_PF_WASTED] += U(1)
    g[G_EVICT_BEGUN] += U(1)
    background = thread == BACKGROUND
    dirty = (w & _DIRTY) != 0
    if dirty:
        g[G_DIRTY_BACK if background else G_DIRTY_FORE] += U(1)
        emit(g, log, now, thread, victim, EV_EVICT_DIRTY)
    else:
        g[G_CLEAN_BACK if background else G_CLEAN_FORE] += U(1)
        emit(g, log, now, thread, victim, EV_EVICT_CLEAN)
    slow = dirty and cfg[C_WRITEBACK_FREE] == U(0)
    if not slow:
        g[G_EVICT_ENDED] += U(1)
    state = EVICTING if slow else NOT_CACHED
    word[victim] = (w & np.uint32(FLAGS ^ STATE ^ DIRTY ^ PREFETCHED ^ REFERENCED)) | np.uint32(state)
    return victim, slow


@inline
def evicted(cfg, g, th, word, order, victim, now):
    """The victim's program ended."""
    g[G_EVICT_ENDED] += U(1)
    set_state(word, victim, NOT_CACHED)
    wake(cfg, g, th, order, victim, now)


@inline
def install(cfg, g, th, word, queue, order, log, page, now, thread):
    """LOADING → CACHED: into the eviction queue, sleepers wake."""
    set_state(word, page, CACHED)
    g[G_FILLS] += U(1)
    join(cfg, g, word, queue, page)
    emit(g, log, now, thread, page, EV_INSTALL)
    wake(cfg, g, th, order, page, now)
    frame_may_be_had(cfg, g, th, order, now)
