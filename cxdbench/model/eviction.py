"""Eviction policies over one uint32 array: who joins, who is touched, who gives up its frame.

fifo, clock: a ring of pages. lifo: a ring with the newest `protect` pages, and a stack of the older ones behind it.
lru: a ring of links over frames, whose number a page keeps in its word; queue = [next | prev | page | free frames].
"""
from __future__ import annotations

import numpy as np

from cxdbench.jit import inline
from cxdbench.model.layout import (
    C_CACHE, C_POLICY, C_PROTECT, C_RING_MASK, C_STACK_AT, CLOCK, FLAGS, FRAME_SHIFT, G_CACHED, G_FRAMES_FREE,
    G_Q_HEAD, G_Q_TAIL, G_STACK_N, LIFO, LRU, REFERENCED, U,
)

_REF, _NOT_REF, _FLAGS = np.uint32(REFERENCED), np.uint32(0xFFFFFFFF ^ REFERENCED), np.uint32(FLAGS)
_SHIFT = np.uint32(FRAME_SHIFT)


def queue_size(policy: int, cache_pages: int, protect: int) -> tuple[int, int, int]:
    """Cells of the queue array, the mask of its ring, and where lifo's stack begins."""
    ring = 1 << (min(protect, cache_pages) if policy == LIFO else cache_pages).bit_length()
    if policy == LRU:
        return 4 * (cache_pages + 1), 0, 0
    return ring + (cache_pages if policy == LIFO else 0), ring - 1, ring


@inline
def _link(queue, stride, frame, after):
    """Put a frame behind `after` in the LRU ring; cell 0 is the ring's own end."""
    successor = U(queue[after])
    queue[frame], queue[stride + frame] = successor, after
    queue[after], queue[stride + successor] = frame, frame


@inline
def _unlink(queue, stride, frame):
    successor, before = U(queue[frame]), U(queue[stride + frame])
    queue[before], queue[stride + successor] = successor, before


@inline
def join(cfg, g, word, queue, page):
    """A page became CACHED: it takes the newest place."""
    g[G_CACHED] += U(1)
    policy = cfg[C_POLICY]
    if policy == LRU:
        stride = cfg[C_CACHE] + U(1)
        g[G_FRAMES_FREE] -= U(1)
        frame = U(queue[U(3) * stride + g[G_FRAMES_FREE]])
        word[page] = (word[page] & _FLAGS) | np.uint32(frame << U(FRAME_SHIFT))
        queue[U(2) * stride + frame] = page
        _link(queue, stride, frame, U(0))
        return
    mask = cfg[C_RING_MASK]
    if policy == LIFO:
        if cfg[C_PROTECT] == U(0):
            queue[cfg[C_STACK_AT] + g[G_STACK_N]] = page
            g[G_STACK_N] += U(1)
            return
        if g[G_Q_TAIL] - g[G_Q_HEAD] == cfg[C_PROTECT]:
            queue[cfg[C_STACK_AT] + g[G_STACK_N]] = queue[g[G_Q_HEAD] & mask]
            g[G_STACK_N] += U(1)
            g[G_Q_HEAD] += U(1)
    queue[g[G_Q_TAIL] & mask] = page
    g[G_Q_TAIL] += U(1)


@inline
def touch(cfg, word, queue, page, w):
    """A hit that the policy sees. Only CLOCK and LRU look."""
    if cfg[C_POLICY] == CLOCK:
        word[page] = w | _REF
    else:
        stride, frame = cfg[C_CACHE] + U(1), U(w >> _SHIFT)
        _unlink(queue, stride, frame)
        _link(queue, stride, frame, U(0))


@inline
def leave(cfg, g, word, queue):
    """Take the victim out of the queue and return its page; g[G_CACHED] must not be 0."""
    g[G_CACHED] -= U(1)
    policy = cfg[C_POLICY]
    if policy == LRU:
        stride = cfg[C_CACHE] + U(1)
        frame = U(queue[stride])
        _unlink(queue, stride, frame)
        queue[U(3) * stride + g[G_FRAMES_FREE]] = frame
        g[G_FRAMES_FREE] += U(1)
        return U(queue[U(2) * stride + frame])
    mask = cfg[C_RING_MASK]
    if policy == LIFO and g[G_STACK_N] > U(0):
        g[G_STACK_N] -= U(1)
        return U(queue[cfg[C_STACK_AT] + g[G_STACK_N]])
    head = g[G_Q_HEAD]
    page = U(queue[head & mask])
    if policy == CLOCK:
        while word[page] & _REF:
            word[page] = word[page] & _NOT_REF
            queue[g[G_Q_TAIL] & mask] = page
            g[G_Q_TAIL] += U(1)
            head += U(1)
            page = U(queue[head & mask])
    g[G_Q_HEAD] = head + U(1)
    return page
