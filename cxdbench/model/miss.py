"""The path of a miss, a step an event: fault path, frame, victim's program, NAND read, install."""
from __future__ import annotations

import numpy as np

from cxdbench.jit import inline
from cxdbench.model.background import ask_ahead
from cxdbench.model.layout import (
    C_EXIT_NS, C_N_GAP, C_N_READ, C_N_REST, C_PATH, C_PF_PAGES, C_PF_PUSH_NS, C_REFAULT, C_SERIAL_NS,
    C_TRANSFER_NS, C_UNWRITTEN, C_WRITE_MISS_NONE, DIRTY, EV_FILL, G_CACHED, G_CHARGED, G_CHARGED_PROGRAM, G_CLAIMS,
    G_FREE, G_LOCK, G_QUEUE_NS, G_SENSE_NS, G_SERIAL_FREE, G_STARVED, G_TRANSFER_NS,
    G_UNCHARGED_UNWRITTEN, G_UNCHARGED_WRITE, LOADING, LOCK_HELD, NEVER, P_ACCESS, P_FRAME, P_ISSUE,
    P_LOCK_ASK, P_LOCK_TIMER, P_READ_DONE, P_VICTIM_DONE, PATH_CXDVIRT, PATH_CYLON, T_AGAIN, T_EXIT, T_INSTALL,
    T_LOCK, T_OVERHEAD, T_PAGE, T_PHASE, T_QUEUE, T_READ_NS, T_REENTRY, T_REFAULT, T_RNG_PATH, T_SENSE, T_SINCE, T_SLEEPS_ON,
    T_TRANSFER, T_VICTIM, T_VICTIM_NS, T_WRITE, U, UNWRITTEN_CHARGE, UNWRITTEN_FREE, WRITTEN,
)
from cxdbench.model.lock import acquire, release
from cxdbench.model.nand import READ_ROW, page_type, program, read
from cxdbench.model.pages import ANY_FRAME, NO_PAGE, evict, evicted, install
from cxdbench.model.record import UNCHARGED, emit, record_miss
from cxdbench.model.rng import chance, draw, from_knots

OVERHEAD_ROW, GAP_ROW = 0, 1  # of knots: cxdvirt's overhead or cylon's rest; cylon's gap
_WRITTEN, _WRITE = np.uint32(WRITTEN), np.uint32(DIRTY | WRITTEN)


@inline
def claim(cfg, g, th, word, knots, log, t, page, now):
    """NOT_CACHED → LOADING by thread t. Returns when its next step is due."""
    word[page] = (word[page] & _WRITTEN) | np.uint32(LOADING)
    g[G_CLAIMS] += U(1)
    emit(g, log, now, t, page, EV_FILL)
    th[t, T_VICTIM] = NO_PAGE
    if cfg[C_PATH] == PATH_CYLON:
        th[t, T_EXIT] = cfg[C_EXIT_NS]
        th[t, T_PHASE] = U(P_LOCK_ASK)
        return now + cfg[C_EXIT_NS]
    if cfg[C_PATH] == PATH_CXDVIRT:
        th[t, T_OVERHEAD] = from_knots(knots, OVERHEAD_ROW, cfg[C_N_REST], draw(th, t, T_RNG_PATH))
    th[t, T_PHASE] = U(P_FRAME)
    return now


@inline
def _lock_step(cfg, g, th, knots, order, t, now):
    """Cylon: ask for the lock, or hold it since the hand-over is over."""
    if th[t, T_PHASE] == P_LOCK_TIMER:
        g[G_LOCK] = U(LOCK_HELD)
        th[t, T_LOCK] += now - th[t, T_SINCE]
    elif not acquire(g, th, order, t):
        th[t, T_SINCE] = now
        return NEVER
    rest = from_knots(knots, OVERHEAD_ROW, cfg[C_N_REST], draw(th, t, T_RNG_PATH))
    th[t, T_EXIT] += rest
    th[t, T_PHASE] = U(P_FRAME)
    return now + rest


@inline
def _frame_step(cfg, g, th, word, queue, log, t, now):
    """Find a frame, from the free ones or a victim; cxdvirt then pays for its fault, in part one miss at a time."""
    start = now
    if g[G_FREE] > U(0):
        g[G_FREE] -= U(1)
    elif g[G_CACHED] > U(0):
        victim, slow = evict(cfg, g, word, queue, log, now, t)
        if slow:
            th[t, T_VICTIM] = victim
        if cfg[C_PATH] == PATH_CXDVIRT:
            start = max(now, g[G_SERIAL_FREE])
            g[G_SERIAL_FREE] = start + min(cfg[C_SERIAL_NS], th[t, T_OVERHEAD])
            th[t, T_LOCK] += start - now
    else:
        th[t, T_SLEEPS_ON] = ANY_FRAME
        th[t, T_SINCE] = now
        g[G_STARVED] += U(1)
        return NEVER
    th[t, T_PHASE] = U(P_ISSUE)
    if cfg[C_PATH] == PATH_CXDVIRT:
        th[t, T_EXIT] += th[t, T_OVERHEAD]
        return start + th[t, T_OVERHEAD]
    return now


@inline
def _read_step(cfg, g, th, word, nand, times, log, t, now):
    """Ask the NAND for the page, or for nothing where the semantics say so; when it is there."""
    page = th[t, T_PAGE]
    th[t, T_PHASE] = U(P_READ_DONE)
    th[t, T_READ_NS] = UNCHARGED
    if th[t, T_WRITE] != U(0) and cfg[C_WRITE_MISS_NONE] != U(0):
        g[G_UNCHARGED_WRITE] += U(1)
        return now
    if cfg[C_UNWRITTEN] != UNWRITTEN_CHARGE and word[page] & _WRITTEN == 0:
        if cfg[C_UNWRITTEN] == UNWRITTEN_FREE:
            g[G_UNCHARGED_UNWRITTEN] += U(1)
            return now
        g[G_CHARGED_PROGRAM] += U(1)
        word[page] |= _WRITTEN
        ready = program(cfg, g, nand, times, log, t, page, now)
        th[t, T_SENSE] += ready - now
        return ready
    g[G_CHARGED] += U(1)
    ready = read(cfg, g, nand, times, page, now)
    th[t, T_QUEUE] += g[G_QUEUE_NS]
    th[t, T_SENSE] += g[G_SENSE_NS]
    th[t, T_TRANSFER] += g[G_TRANSFER_NS]
    th[t, T_READ_NS] = ready - now
    return ready


@inline
def _install_step(cfg, g, th, word, queue, times, knots, order, heap, hist, stage, log, t, now):
    """The page is there: map it, let go of the lock, ask for what may come next. Returns the access's completion."""
    page = th[t, T_PAGE]
    if th[t, T_WRITE] != U(0):
        word[page] |= _WRITE
    install(cfg, g, th, word, queue, order, log, page, now, t)
    end = now
    if cfg[C_PATH] == PATH_CYLON:
        release(cfg, g, th, order, t, now)
        if chance(th, t, T_RNG_PATH, cfg[C_REFAULT]):
            gap = from_knots(knots, GAP_ROW, cfg[C_N_GAP], draw(th, t, T_RNG_PATH))
            th[t, T_REENTRY] += gap
            th[t, T_REFAULT] += cfg[C_EXIT_NS]
            end += gap + cfg[C_EXIT_NS]
        th[t, T_AGAIN] = page
    if cfg[C_PF_PAGES] > U(0):
        ask_ahead(cfg, g, heap, page, now)
        pushes = cfg[C_PF_PAGES] * cfg[C_PF_PUSH_NS]
        th[t, T_INSTALL] += pushes
        end += pushes
    configured = times[READ_ROW, page_type(cfg, page, cfg[C_N_READ])] + cfg[C_TRANSFER_NS]
    record_miss(g, th, t, hist, stage, end, configured)
    th[t, T_PHASE] = U(P_ACCESS)
    return end


@inline
def step(cfg, g, th, word, queue, nand, times, knots, order, heap, hist, stage, log, t, due):
    """Handle a miss's event at `due` and all its steps that fall due at once.

    Returns when it is next due (its completion once T_PHASE is P_ACCESS again; NEVER while it stands for the lock or for a frame).
    """
    now = due
    while due == now:
        phase = th[t, T_PHASE]
        if phase == P_FRAME:
            due = _frame_step(cfg, g, th, word, queue, log, t, now)
        elif phase == P_ISSUE and th[t, T_VICTIM] != NO_PAGE:
            due = program(cfg, g, nand, times, log, t, th[t, T_VICTIM], now)
            th[t, T_VICTIM_NS] += due - now
            th[t, T_PHASE] = U(P_VICTIM_DONE)
        elif phase == P_READ_DONE:
            return _install_step(cfg, g, th, word, queue, times, knots, order, heap, hist, stage, log, t, now)
        elif phase == P_LOCK_ASK or phase == P_LOCK_TIMER:
            due = _lock_step(cfg, g, th, knots, order, t, now)
        else:
            if phase == P_VICTIM_DONE:
                evicted(cfg, g, th, word, order, th[t, T_VICTIM], now)
            due = _read_step(cfg, g, th, word, nand, times, log, t, now)
    return due
