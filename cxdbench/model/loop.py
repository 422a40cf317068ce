"""Who goes next: the closed loop of T threads and the background, in virtual time."""
from __future__ import annotations

import numpy as np

from cxdbench.jit import fetch_ahead, inline, kernel
from cxdbench.model.background import background, push
from cxdbench.model.eviction import touch
from cxdbench.model.layout import (
    C_DRAIN_PAGES, C_DRAIN_PERIOD, C_HIT_NS, C_PATH, C_SECOND_EXIT_NS, C_SEES_HITS, C_SHIFT, C_STREAM, C_THINK_NS,
    C_THREADS, C_WRITE_BELOW, CACHED, CANCEL_EVERY, DIRTY, EV_HIT, EV_WAIT, G_ASLEEP, G_CACHED, G_CLEAN_BACK,
    G_CLEAN_FORE, G_DIRTY_BACK, G_DIRTY_FORE, G_DONE, G_HEAP_N, G_LIVE, G_MISSES, G_NOW, G_ORDER_HEAD, G_ORDER_N,
    G_PF_LATE, G_PF_USEFUL, G_SECOND_EXITS, G_TOTAL, G_WAITS, MAX_THREADS, NEVER, NOT_CACHED, P_ACCESS,
    PATH_CYLON, PREFETCHED, STATE, STREAM_ARRAY, STREAM_RANDOM, STREAM_SEQUENTIAL, T_AGAIN, T_END_NS, T_FIRST,
    T_FRESH, T_HITS, T_LEFT, T_LENGTH, T_PAGE, T_PHASE, T_POS, T_RNG_ADDRESS, T_RNG_WRITE, T_SINCE, T_SLEEPS_ON,
    T_START, T_SUM_NS, T_WAITED, T_WRITE, THREAD_BITS, TOO_LATE, U, W_TICK, WINDOWS, WRITTEN,
)
from cxdbench.model.miss import claim, step
from cxdbench.model.pages import NO_PAGE, put
from cxdbench.model.record import emit, record_wait
from cxdbench.model.rng import below, chance, draw

_STATE, _WRITE = np.uint32(STATE), np.uint32(DIRTY | WRITTEN)
_PREFETCHED, _NOT_PREFETCHED = np.uint32(PREFETCHED), np.uint32(0xFFFFFFFF ^ PREFETCHED)
_PLAIN = np.uint32(STATE | PREFETCHED)
_MASK, _PAGE_MASK = U(MAX_THREADS - 1), U(2**31 - 1)
# columns of window
W_HITS, W_MISSES, W_WAITS, W_EVICTIONS, W_CACHED = range(5)


@inline
def _next_address(cfg, th, word, t, entries, zipf):
    """The thread's next page, and whether the access writes; the page after it is asked for ahead of its turn."""
    stream, write = cfg[C_STREAM], U(0)
    if stream == STREAM_ARRAY or stream == STREAM_SEQUENTIAL:
        position = th[t, T_POS]
        following = position + U(1)
        th[t, T_POS] = following if following < th[t, T_LENGTH] else U(0)
        if stream == STREAM_SEQUENTIAL:
            page = th[t, T_FIRST] + (position >> cfg[C_SHIFT])
        else:
            entry = U(entries[th[t, T_FIRST] + position])
            fetch_ahead(word, U(entries[th[t, T_FIRST] + th[t, T_POS]]) & _PAGE_MASK)
            page, write = entry & _PAGE_MASK, entry >> U(31)
    else:
        page = below(th[t, T_LENGTH], draw(th, t, T_RNG_ADDRESS))
        if stream != STREAM_RANDOM and draw(th, t, T_RNG_ADDRESS) >= U(zipf[0, page]):
            page = U(zipf[1, page])
        page += th[t, T_FIRST]
    if chance(th, t, T_RNG_WRITE, cfg[C_WRITE_BELOW]):
        write = U(1)
    return page, write


@inline
def _checkpoint(cfg, g, th, window, ctl):
    """At a window's edge or a look at the cancel flag: note both; the count of accesses at which to come again."""
    done, total = g[G_DONE], g[G_TOTAL]
    ctl[0] = np.int64(done)
    upcoming = (done // U(CANCEL_EVERY) + U(1)) * U(CANCEL_EVERY)
    if window.shape[0] == 0:
        return upcoming
    for w in range(WINDOWS):
        edge = (U(w + 1) * total + U(WINDOWS - 1)) // U(WINDOWS)
        if edge > done:
            return min(upcoming, edge)
        if window[w, W_CACHED] == NEVER:
            hits = U(0)
            for t in range(U(0), cfg[C_THREADS]):
                hits += th[t, T_HITS]
            window[w, W_HITS], window[w, W_MISSES], window[w, W_WAITS] = hits, g[G_MISSES], g[G_WAITS]
            window[w, W_EVICTIONS] = g[G_CLEAN_FORE] + g[G_DIRTY_FORE] + g[G_CLEAN_BACK] + g[G_DIRTY_BACK]
            window[w, W_CACHED] = g[G_CACHED]
    return upcoming


@inline
def _hit(cfg, g, th, word, queue, log, t, page, write, now, w, watched):
    """The page is CACHED and the access did not wait for it. Returns its completion.

    watched: somebody looks at hits (a log, the policy, the cylon path); a plain hit skips all of that at once.
    """
    end = now + cfg[C_HIT_NS]
    th[t, T_HITS] += U(1)
    th[t, T_LEFT] -= U(1)
    g[G_DONE] += U(1)
    if watched:
        emit(g, log, now, t, page, EV_HIT)
        if cfg[C_PATH] == PATH_CYLON:
            if th[t, T_AGAIN] == page and cfg[C_SECOND_EXIT_NS] > U(0):
                end += cfg[C_SECOND_EXIT_NS]
                th[t, T_SUM_NS] += cfg[C_SECOND_EXIT_NS]
                g[G_SECOND_EXITS] += U(1)
            th[t, T_AGAIN] = NO_PAGE
    _seen(cfg, g, word, queue, page, write, w, watched)
    return end


@inline
def _waited(cfg, g, th, word, queue, hist, stage, t, page, write, now, w):
    """The page is CACHED at last. Returns the access's completion."""
    th[t, T_WAITED] = U(0)
    _seen(cfg, g, word, queue, page, write, w, True)
    return th[t, T_START] + record_wait(cfg, g, th, t, hist, stage, now)


@inline
def _seen(cfg, g, word, queue, page, write, w, watched):
    """What a touch of a CACHED page changes: dirty, a prefetch's fate, the policy's view."""
    if write != U(0):
        w |= _WRITE
        word[page] = w
    if w & _PREFETCHED:
        g[G_PF_USEFUL] += U(1)
        w &= _NOT_PREFETCHED
        word[page] = w
    if watched and cfg[C_SEES_HITS] != U(0):
        touch(cfg, word, queue, page, w)


@inline
def _sleep(g, th, word, log, t, page, now, w):
    """The page is on its way in or out: sleep until it has changed."""
    emit(g, log, now, t, page, EV_WAIT)
    if w & _PREFETCHED:
        g[G_PF_LATE] += U(1)
        word[page] = w & _NOT_PREFETCHED
    th[t, T_WAITED] = U(1)
    th[t, T_SLEEPS_ON] = page
    th[t, T_SINCE] = now
    g[G_ASLEEP] += U(1)


@inline
def _plain_hits(cfg, g, th, word, entries, zipf, order, stop, limit):
    """Serve hits in order of time until anything else comes: a page not there, a prefetched one, a thread's or a
    window's last access, or the background at `limit` (a key of `order`). Its few locals stay in registers.
    """
    head, n, done, between = g[G_ORDER_HEAD], g[G_ORDER_N], g[G_DONE], cfg[C_HIT_NS] + cfg[C_THINK_NS]
    while n > U(0):
        key = order[head & _MASK]
        t = key & _MASK
        left = th[t, T_LEFT] - U(1)
        done += U(1)
        if key >= limit or th[t, T_FRESH] == U(0) or left == U(0) or done == stop:
            done -= U(1)
            break
        page, write = _next_address(cfg, th, word, t, entries, zipf)
        w = word[page]
        if w & _PLAIN != CACHED:
            th[t, T_PAGE], th[t, T_WRITE], th[t, T_START] = page, write, key >> U(THREAD_BITS)
            th[t, T_FRESH] = U(0)
            done -= U(1)
            break
        if write != U(0):
            word[page] = w | _WRITE
        th[t, T_HITS] += U(1)
        th[t, T_LEFT] = left
        key += between << U(THREAD_BITS)
        head += U(1)
        i = head + n - U(1)
        while i > head and order[(i - U(1)) & _MASK] > key:
            order[i & _MASK] = order[(i - U(1)) & _MASK]
            i -= U(1)
        order[i & _MASK] = key
    g[G_ORDER_HEAD], g[G_DONE] = head, done


@kernel
def run_phase(cfg, g, th, word, queue, nand, times, knots, entries, zipf, heap, order, hist, stage, window, log, ctl):
    """Run every thread through its T_LEFT accesses from g[G_NOW] on; True if it ran to the end, False if cancelled or TOO_LATE.

    Arrays are laid out as in layout.py and changed in place. window, hist and stage have no rows in an untimed
    phase, log none where no log is kept. ctl, int64: [0] accesses finished, for whoever watches; [1] not 0 cancels within CANCEL_EVERY.
    """
    start, latest = g[G_NOW], g[G_NOW]
    for t in range(U(0), cfg[C_THREADS]):
        th[t, T_END_NS] = start
        if th[t, T_LEFT] > U(0):
            th[t, T_FRESH] = U(1)
            g[G_LIVE] += U(1)
            put(g, order, start, t)
    if cfg[C_DRAIN_PAGES] > U(0):
        push(g, heap, (start // cfg[C_DRAIN_PERIOD] + U(1)) * cfg[C_DRAIN_PERIOD], W_TICK, NO_PAGE, NO_PAGE)
    stop = _checkpoint(cfg, g, th, window, ctl)
    think = cfg[C_THINK_NS]
    watched = log.shape[0] > 0 or cfg[C_PATH] == PATH_CYLON or cfg[C_SEES_HITS] != U(0)
    while g[G_LIVE] > U(0) or g[G_HEAP_N] > U(0):
        if not watched:
            limit = heap[0, 0] << U(THREAD_BITS) if g[G_HEAP_N] > U(0) else NEVER
            _plain_hits(cfg, g, th, word, entries, zipf, order, stop, limit)
        head = g[G_ORDER_HEAD]
        if g[G_HEAP_N] > U(0) and (
                g[G_ORDER_N] == U(0) or heap[0, 0] <= order[head & _MASK] >> U(THREAD_BITS)):
            latest = max(latest, background(cfg, g, th, word, queue, nand, times, order, heap, log))
            continue
        key = order[head & _MASK]
        g[G_ORDER_HEAD] = head + U(1)
        g[G_ORDER_N] -= U(1)
        t, now = key & _MASK, key >> U(THREAD_BITS)
        due = now
        if th[t, T_PHASE] == P_ACCESS:
            if th[t, T_FRESH] != U(0):
                page, write = _next_address(cfg, th, word, t, entries, zipf)
                th[t, T_PAGE], th[t, T_WRITE], th[t, T_START] = page, write, now
                th[t, T_FRESH] = U(0)
            else:
                page, write = th[t, T_PAGE], th[t, T_WRITE]
            w = word[page]
            state = w & _STATE
            if state == CACHED:
                if th[t, T_WAITED] == U(0):
                    due = _hit(cfg, g, th, word, queue, log, t, page, write, now, w, watched)
                else:
                    due = _waited(cfg, g, th, word, queue, hist, stage, t, page, write, now, w)
            else:
                th[t, T_AGAIN] = NO_PAGE
                if state != NOT_CACHED:
                    _sleep(g, th, word, log, t, page, now, w)
                    continue
                th[t, T_WAITED] = U(0)
                due = claim(cfg, g, th, word, knots, log, t, page, now)
        if th[t, T_PHASE] != P_ACCESS and due == now:
            due = step(cfg, g, th, word, queue, nand, times, knots, order, heap, hist, stage, log, t, now)
        if th[t, T_PHASE] != P_ACCESS:
            if due != NEVER:
                put(g, order, due, t)
            continue
        th[t, T_FRESH] = U(1)
        latest = max(latest, due)
        if g[G_DONE] == stop:
            stop = _checkpoint(cfg, g, th, window, ctl)
            if ctl[1] != 0 or latest >= TOO_LATE:
                g[G_NOW] = latest
                return False
        if th[t, T_LEFT] > U(0):
            put(g, order, due + think, t)
        else:
            th[t, T_END_NS] = due
            g[G_LIVE] -= U(1)
    g[G_NOW] = latest
    return True
