"""The cylon path's global lock: first come, first served, but a releasing thread may keep it for its own next miss.

Waiters stand in a ring kept in the column T_LOCK_QUEUE of th. While the lock passes to a sleeper (which takes
`handover_ns`), the thread it is kept for may step in; the sleeper then returns to the head.
"""
from __future__ import annotations

from cxdbench.jit import outline
from cxdbench.model.layout import (
    C_HANDOVER_NS, G_KEPT_FOR, G_LOCK, G_LOCK_HEAD, G_LOCK_N, G_NEXT_OWNER, LOCK_FREE, LOCK_HELD, LOCK_PASSING,
    MAX_THREADS, P_LOCK_ASK, P_LOCK_TIMER, T_KEEP_BELOW, T_LOCK_QUEUE, T_PHASE, T_RNG_LOCK, U,
)
from cxdbench.model.pages import NO_THREAD, put, take_out
from cxdbench.model.rng import chance

_MASK = U(MAX_THREADS - 1)


@outline
def acquire(g, th, order, t):
    """Thread t asks: True if it holds the lock now, False if it stands in the queue."""
    if g[G_LOCK] == LOCK_PASSING and g[G_KEPT_FOR] == t:
        designated = g[G_NEXT_OWNER]
        take_out(g, order, designated)
        th[designated, T_PHASE] = U(P_LOCK_ASK)
        g[G_LOCK_HEAD] = (g[G_LOCK_HEAD] - U(1)) & _MASK
        th[g[G_LOCK_HEAD], T_LOCK_QUEUE] = designated
        g[G_LOCK_N] += U(1)
    elif g[G_LOCK] != LOCK_FREE:
        th[(g[G_LOCK_HEAD] + g[G_LOCK_N]) & _MASK, T_LOCK_QUEUE] = t
        g[G_LOCK_N] += U(1)
        return False
    g[G_LOCK] = U(LOCK_HELD)
    return True


@outline
def release(cfg, g, th, order, t, now):
    """Thread t, the holder, lets go."""
    if g[G_LOCK_N] == U(0):
        g[G_LOCK] = U(LOCK_FREE)
        return
    waiter = th[g[G_LOCK_HEAD], T_LOCK_QUEUE]
    g[G_LOCK_HEAD] = (g[G_LOCK_HEAD] + U(1)) & _MASK
    g[G_LOCK_N] -= U(1)
    g[G_LOCK] = U(LOCK_PASSING)
    g[G_NEXT_OWNER] = waiter
    g[G_KEPT_FOR] = t if chance(th, t, T_RNG_LOCK, th[t, T_KEEP_BELOW]) else NO_THREAD
    th[waiter, T_PHASE] = U(P_LOCK_TIMER)
    put(g, order, now + cfg[C_HANDOVER_NS], waiter)
