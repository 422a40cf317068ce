"""NAND dies and channels: time in, time out. Every operation is booked when it is issued, in order of issue.

nand, uint64: [die free at | programs since the die's last erase | intervals a channel | (begin, end) per interval].
A channel remembers the busy intervals still ahead, so that a transfer may use a gap before one booked earlier but
not due yet; it never delays an earlier booking.
"""
from __future__ import annotations

from cxdbench.jit import inline, outline
from cxdbench.model.layout import (
    C_BLOCK_PAGES, C_CHANNEL_MODEL, C_CHANNELS, C_DIES, C_ERASE_NS, C_N_PROGRAM, C_N_READ, C_TRANSFER_NS,
    CHANNEL_EVENT, CHANNEL_SLOTS, EV_ERASE, EV_PROGRAM, G_NAND_ERASES, G_NAND_PROGRAMS,
    G_NAND_READS, G_QUEUE_NS, G_SENSE_NS, G_TRANSFER_NS, U,
)
from cxdbench.model.record import emit

READ_ROW, PROGRAM_ROW = 0, 1


def nand_size(dies: int, channels: int) -> int:
    return 2 * dies + channels + 2 * CHANNEL_SLOTS * channels


@inline
def _book(cfg, nand, channel, now, ready):
    """Book one transfer on a channel at the first gap at or after `ready`; its begin."""
    length = cfg[C_TRANSFER_NS]
    if cfg[C_CHANNEL_MODEL] != CHANNEL_EVENT or length == U(0):
        return ready
    count_at = U(2) * cfg[C_DIES] + channel
    base = U(2) * cfg[C_DIES] + cfg[C_CHANNELS] + channel * U(2 * CHANNEL_SLOTS)
    n = nand[count_at]
    past = U(0)
    while past < n and nand[base + U(2) * past + U(1)] <= now:
        past += U(1)
    if past > U(0):
        n -= past
        for i in range(U(0), U(2) * n):
            nand[base + i] = nand[base + U(2) * past + i]
    begin, at = ready, U(0)
    while at < n and begin + length > nand[base + U(2) * at]:
        if nand[base + U(2) * at + U(1)] > begin:
            begin = nand[base + U(2) * at + U(1)]
        at += U(1)
    end = begin + length
    touches_before = at > U(0) and nand[base + U(2) * at - U(1)] == begin
    touches_after = at < n and nand[base + U(2) * at] == end
    if touches_before and touches_after:
        nand[base + U(2) * at - U(1)] = nand[base + U(2) * at + U(1)]
        n -= U(1)
        for i in range(U(2) * at, U(2) * n):
            nand[base + i] = nand[base + i + U(2)]
    elif touches_before:
        nand[base + U(2) * at - U(1)] = end
    elif touches_after:
        nand[base + U(2) * at] = begin
    elif n == U(CHANNEL_SLOTS):
        last = base + U(2) * n - U(1)
        begin = max(ready, nand[last])
        nand[last] = begin + length
    else:
        i = U(2) * n
        while i > U(2) * at:
            i -= U(1)
            nand[base + i + U(2)] = nand[base + i]
        nand[base + U(2) * at], nand[base + U(2) * at + U(1)] = begin, end
        n += U(1)
    nand[count_at] = n
    return begin


@inline
def remainder(value, divisor):
    """value mod divisor; a power of two, the common case, costs no division."""
    mask = divisor - U(1)
    if divisor & mask == U(0):
        return value & mask
    return value % divisor


@inline
def page_type(cfg, page, types):
    """Which of the cell's `types` pages this is; one type, the common case, costs no division."""
    if types == U(1):
        return U(0)
    return (page // cfg[C_DIES]) % types


@inline
def read(cfg, g, nand, times, page, now):
    """Issue a read of a page; when its data is there. g holds its queue, sense and transfer time."""
    die = remainder(page, cfg[C_DIES])
    sense = times[READ_ROW, page_type(cfg, page, cfg[C_N_READ])]
    begin = max(nand[die], now)
    sensed = begin + sense
    transfer = _book(cfg, nand, remainder(die, cfg[C_CHANNELS]), now, sensed)
    end = transfer + cfg[C_TRANSFER_NS]
    nand[die] = end
    g[G_NAND_READS] += U(1)
    g[G_QUEUE_NS], g[G_SENSE_NS], g[G_TRANSFER_NS] = begin - now + transfer - sensed, sense, cfg[C_TRANSFER_NS]
    return end


@outline
def program(cfg, g, nand, times, log, thread, page, now):
    """Issue a program of a page; when it ends. Each full block of programs is followed by an erase on the die."""
    die = remainder(page, cfg[C_DIES])
    begin = _book(cfg, nand, remainder(die, cfg[C_CHANNELS]), now, max(nand[die], now))
    end = begin + cfg[C_TRANSFER_NS] + times[PROGRAM_ROW, page_type(cfg, page, cfg[C_N_PROGRAM])]
    nand[die] = end
    g[G_NAND_PROGRAMS] += U(1)
    emit(g, log, now, thread, page, EV_PROGRAM)
    nand[cfg[C_DIES] + die] += U(1)
    if nand[cfg[C_DIES] + die] == cfg[C_BLOCK_PAGES]:
        nand[cfg[C_DIES] + die] = U(0)
        nand[die] = end + cfg[C_ERASE_NS]
        g[G_NAND_ERASES] += U(1)
        emit(g, log, now, thread, page, EV_ERASE)
    return end
