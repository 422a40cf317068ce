"""Where things lie in the kernels' arrays: names for indices and codes, shared by all of model/.

The kernels are pure functions over plain arrays (a compiled function then depends on types alone, never on a
setting), so each array's cells get their names here.
"""
from __future__ import annotations

import numpy as np

U = np.uint64
NEVER = np.uint64(2**63)  # later than any event
GOLD = np.uint64(0x9E3779B97F4A7C15)

MAX_THREADS = 64
THREAD_BITS = 6
BACKGROUND = np.uint64(2**64 - 1)  # the thread of a background event in the log: -1 as int64

# cfg: settings of the device and the workload as integers
(C_THREADS, C_CACHE, C_CAPACITY, C_HIT_NS, C_THINK_NS, C_POLICY, C_PROTECT, C_RING_MASK, C_STACK_AT,
 C_SEES_HITS, C_UNWRITTEN, C_WRITEBACK_FREE, C_WRITE_MISS_NONE, C_PF_PAGES, C_PF_DELAY, C_PF_PUSH_NS,
 C_PF_QUEUE, C_PF_FREE, C_DRAIN_PAGES, C_DRAIN_PERIOD, C_DRAIN_HIGH, C_DRAIN_STOP, C_PATH, C_SERIAL_NS,
 C_EXIT_NS, C_REFAULT, C_HANDOVER_NS, C_SECOND_EXIT_NS, C_N_REST, C_N_GAP, C_DIES, C_CHANNELS,
 C_CHANNEL_MODEL, C_TRANSFER_NS, C_ERASE_NS, C_BLOCK_PAGES, C_N_READ, C_N_PROGRAM, C_STREAM, C_SHIFT,
 C_WRITE_BELOW) = range(41)

# g: the run's scalars and counters
(G_NOW, G_FREE, G_CACHED, G_LIVE, G_DONE, G_TOTAL, G_ORDER_HEAD, G_ORDER_N, G_HEAP_N, G_HEAP_SEQ, G_ASLEEP, G_STARVED,
 G_Q_HEAD, G_Q_TAIL, G_STACK_N, G_FRAMES_FREE, G_SERIAL_FREE, G_LOCK, G_KEPT_FOR,
 G_NEXT_OWNER, G_LOCK_HEAD, G_LOCK_N, G_DRAINING, G_PF_OPEN, G_LOG_N, G_QUEUE_NS, G_SENSE_NS, G_TRANSFER_NS,
 G_CLAIMS, G_FILLS, G_EVICT_BEGUN, G_EVICT_ENDED, G_CLEAN_FORE, G_DIRTY_FORE, G_CLEAN_BACK, G_DIRTY_BACK,
 G_CHARGED, G_CHARGED_PROGRAM, G_UNCHARGED_UNWRITTEN, G_UNCHARGED_WRITE, G_NAND_READS, G_NAND_PROGRAMS,
 G_NAND_ERASES, G_PF_ASKED, G_PF_DROPPED, G_PF_ALREADY, G_PF_ISSUED, G_PF_CHARGED, G_PF_UNCHARGED,
 G_PF_USEFUL, G_PF_LATE, G_PF_WASTED, G_MISSES, G_WAITS, G_SECOND_EXITS, G_MISS_SUM, G_MISS_MIN,
 G_MISS_MAX, G_WAIT_SUM, G_WAIT_MIN, G_WAIT_MAX, G_LOG_LOST) = range(62)

FIRST_COUNTER = G_CLAIMS

# th[t]: one thread's state. Rows are whole cache lines, so that threads do not share one
(T_PHASE, T_PAGE, T_WRITE, T_FRESH, T_START, T_SINCE, T_LEFT, T_POS, T_FIRST, T_LENGTH, T_SLEEPS_ON,
 T_AGAIN, T_WAITED, T_VICTIM, T_OVERHEAD, T_READ_NS, T_RNG_ADDRESS, T_RNG_WRITE, T_RNG_PATH,
 T_RNG_LOCK, T_KEEP_BELOW, T_HITS, T_MISSES, T_WAITS, T_SUM_NS, T_END_NS, T_EXIT, T_LOCK, T_REFAULT,
 T_REENTRY, T_VICTIM_NS, T_FTL, T_QUEUE, T_SENSE, T_TRANSFER, T_INSTALL, T_LOCK_QUEUE) = range(37)

FIRST_STAGE = T_EXIT
STAGES = ("exit", "lock", "refault", "reentry", "victim", "ftl", "queue", "sense", "transfer", "install")
N_STAGES = len(STAGES)

# th[t, PHASE]: what the thread's next event does
(P_ACCESS, P_FRAME, P_ISSUE, P_VICTIM_DONE, P_READ_DONE, P_LOCK_ASK, P_LOCK_TIMER) = range(7)

# eviction policies
(FIFO, LIFO, CLOCK, LRU) = range(4)

# fault paths
(PATH_IDEAL, PATH_CXDVIRT, PATH_CYLON) = range(3)

# how a thread's addresses come
(STREAM_ARRAY, STREAM_SEQUENTIAL, STREAM_RANDOM, STREAM_ZIPF) = range(4)

# unwritten_read
(UNWRITTEN_CHARGE, UNWRITTEN_FREE, UNWRITTEN_PROGRAM) = range(3)

# channel_model
(CHANNEL_EVENT, CHANNEL_NONE) = range(2)

# What a background event in the heap does
(W_TICK, W_PREFETCH, W_PREFETCH_READ, W_PREFETCH_INSTALL, W_DRAINED) = range(5)

# the cylon path's lock
(LOCK_FREE, LOCK_HELD, LOCK_PASSING) = range(3)

# Kinds in the log
(EV_HIT, EV_WAIT, EV_FILL, EV_INSTALL, EV_EVICT_CLEAN, EV_EVICT_DIRTY, EV_PREFETCH, EV_PROGRAM, EV_ERASE) = range(9)

# word[page], uint32: state in the low bits, flags, and the LRU frame above them
NOT_CACHED, LOADING, CACHED, EVICTING = 0, 1, 2, 3
STATE = 3
DIRTY, REFERENCED, PREFETCHED, WRITTEN = 4, 8, 16, 32
FLAGS = 0xFF
FRAME_SHIFT = 8

CHANNEL_SLOTS = 64  # busy intervals remembered a channel
WINDOWS = 64
TOO_LATE = np.uint64(2**57)  # ns, four years: an event's time and its thread share 64 bits
CANCEL_EVERY = 1 << 16  # finished accesses between looks at the cancel flag
