/* SPDX-License-Identifier: MIT
 *
 * The device, exactly, in freestanding C: page states, eviction, prefetch, drain and NAND timing.
 *
 * The core never waits, reads a clock or allocates. Its caller hands it memory and the time (unsigned ns from any
 * start, the same for all callers), does what an answer asks for, and comes back. One source serves libcxd.so, the
 * kernel module and the tests that hold it, event for event, against the model; cxdbench/model/README.md says what
 * happens when. The caller maps and unmaps pages, waits and wakes; the core only decides.
 *
 * A page's word moves by compare-and-swap alone. A hit and a wait take no lock. One lock guards the queues and
 * the NAND and is held for some hundred ns, never across a wait.
 */
#ifndef CXD_CORE_H
#define CXD_CORE_H

#include "cxd_port.h"

/* A page's word: state in the low bits, flags, and under LRU the frame above them. */
enum cxd_state { CXD_NOT_CACHED, CXD_LOADING, CXD_CACHED, CXD_EVICTING };
#define CXD_STATE 3u
#define CXD_DIRTY 4u
#define CXD_REFERENCED 8u
#define CXD_PREFETCHED 16u /* its fate (useful, late, wasted) is still open */
#define CXD_WRITTEN 32u    /* has content, here or in the NAND */
#define CXD_SLEEPERS 64u   /* the caller's: somebody sleeps on this word and must be woken at the next change of state */
#define CXD_FLAGS 0xFFu
#define CXD_FRAME_SHIFT 8

enum cxd_policy { CXD_FIFO, CXD_LIFO, CXD_CLOCK, CXD_LRU };
enum cxd_unwritten { CXD_UNWRITTEN_CHARGE, CXD_UNWRITTEN_FREE, CXD_UNWRITTEN_PROGRAM };
enum cxd_channel_model { CXD_CHANNEL_EVENT, CXD_CHANNEL_NONE };
enum cxd_event_kind { CXD_EV_HIT, CXD_EV_WAIT, CXD_EV_FILL, CXD_EV_INSTALL, CXD_EV_EVICT_CLEAN, CXD_EV_EVICT_DIRTY,
		      CXD_EV_PREFETCH, CXD_EV_PROGRAM, CXD_EV_ERASE };

#define CXD_NO_PAGE (~0u)
#define CXD_BACKGROUND (~0u) /* as a thread */
#define CXD_NEVER (1ull << 63)
#define CXD_MAX_TYPES 16     /* page types of a multi-bit cell */
#define CXD_CHANNEL_SLOTS 64 /* busy intervals remembered a channel */
#define CXD_MAX_CHANNELS 64

/* Settings, all integers; ranges are checked by cxd_check. */
struct cxd_config {
	cxd_u32 cache_pages, capacity_pages;
	cxd_u32 policy, protect;             /* protect: LIFO's newest pages that are never the victim */
	cxd_u32 sees_hits;                   /* CLOCK and LRU are told of hits (else of installs only) */
	cxd_u32 asks;                        /* the caller knows more of a victim than its word: answers are CXD_ASK */
	cxd_u32 unwritten, writeback_free, write_miss_none, prefetch_free;
	cxd_u32 prefetch_pages, prefetch_queue;
	cxd_u64 prefetch_delay_ns;
	cxd_u32 drain_pages, drain_high, drain_stop; /* pages a period; levels in pages */
	cxd_u64 drain_period_ns;
	cxd_u32 channels, ways, channel_model, block_pages;
	cxd_u64 transfer_ns, erase_ns;
	cxd_u32 read_types, program_types;
	cxd_u64 read_ns[CXD_MAX_TYPES], program_ns[CXD_MAX_TYPES];
};

/* Counters by the result's names. All but `resident` only grow, until cxd_zero_counters. */
struct cxd_counters {
	cxd_u64 claims, fills, evict_begun, evict_ended;
	cxd_u64 clean_foreground, clean_background, dirty_foreground, dirty_background;
	cxd_u64 charged, charged_program, uncharged_unwritten, uncharged_write;
	cxd_u64 nand_reads, nand_programs, nand_erases;
	cxd_u64 prefetch_asked, prefetch_dropped, prefetch_already, prefetch_issued, prefetch_charged, prefetch_uncharged;
	cxd_u64 prefetch_useful, prefetch_late, prefetch_wasted;
	cxd_u64 resident; /* pages CACHED now */
};

struct cxd_event { cxd_u64 t_ns; cxd_u32 thread, page; cxd_u32 kind, pad; };

/* What the caller does next. */
enum cxd_answer_kind {
	CXD_IDLE,    /* tick: nothing is due; come again at `at` (CXD_NEVER: when something was asked) */
	CXD_HIT,     /* access: the page is there */
	CXD_WAIT,    /* access: it is on its way in or out; look again when its word has changed state */
	CXD_VICTIM,  /* unmap `victim`, a dirty page, now; when `at` has come call cxd_evicted, then cxd_read */
	CXD_READ,    /* unmap `victim` (clean, or written back free) now if there is one and call cxd_evicted; when `at`
			has come map the page and call cxd_filled */
	CXD_ASK,     /* of `victim`, which waits: either look at the CPU's accessed bits and call cxd_spared, or unmap it now
			and call cxd_unmapped; from a tick, with CXD_BACKGROUND, the answer's `page` and `at` */
	CXD_STARVED, /* every frame is loading or evicting; call cxd_frame again after any cxd_filled or cxd_evicted */
	CXD_UNMAP,   /* tick: unmap `victim` now, and then call cxd_evicted if `done` (else the core ends it at its time) */
	CXD_MAP,     /* tick: a prefetched `page` is there: map it and call cxd_filled with CXD_BACKGROUND */
	CXD_WAKE,    /* tick: `page` became NOT_CACHED: wake its sleepers, and whoever starves */
};

struct cxd_answer {
	cxd_u32 kind, page, victim, done;
	cxd_u64 at;
	cxd_u64 queue_ns, sense_ns, transfer_ns; /* CXD_READ: the parts of the NAND's time */
	cxd_u32 charged, pad;                    /* CXD_READ: a NAND read was charged */
};

struct cxd_core;

/* 0, or the 1-based number of the first field of the config that is out of range; and the name of such a field. */
int cxd_check(const struct cxd_config *config);
const char *cxd_field(int number);
/* Bytes of `memory` for cxd_start; the words are capacity_pages * 4 bytes more. */
cxd_u64 cxd_memory(const struct cxd_config *config);
/* An empty device in memory (8-byte aligned, cxd_memory bytes) over words (capacity_pages, all 0), counting from 0. */
struct cxd_core *cxd_start(const struct cxd_config *config, void *memory, cxd_u32 *words, struct cxd_counters *counters);
/* Change NAND times, semantics, prefetch and drain of a device at rest or at work. 0, or the field that is refused
 * (cache_pages, capacity_pages, policy, protect, sees_hits, asks, prefetch_queue, channels and ways must stay). */
int cxd_change(struct cxd_core *core, const struct cxd_config *config);
/* Prefetch no page from this one on: the caller has nothing behind them yet. A device starts with its capacity. */
void cxd_limit(struct cxd_core *core, cxd_u32 pages);
/* Keep events in log[0 … size), or none with NULL; cxd_logged tells how many there were. For a single thread: it takes
 * no lock. A hit is logged also at the end of a wait, where the model logs none; who has waited knows. */
void cxd_keep_log(struct cxd_core *core, struct cxd_event *log, cxd_u64 size);
cxd_u64 cxd_logged(const struct cxd_core *core);

/* An access by `thread`: HIT, WAIT, or, having claimed the page, VICTIM, READ or STARVED. */
struct cxd_answer cxd_access(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write);
/* The frame step again, by a thread that starved: VICTIM, READ or STARVED. */
struct cxd_answer cxd_frame(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write);
/* The read step, after a VICTIM's cxd_evicted: READ. */
struct cxd_answer cxd_read(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write);
/* The victim that was asked about is unmapped, and `dirty` if the CPU's own bits say so: VICTIM or READ with nothing
 * left to unmap, or for the background UNMAP likewise. */
struct cxd_answer cxd_unmapped(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write,
			       cxd_u32 victim, int dirty);
/* It goes back into the queue as the newest, and another is taken. */
struct cxd_answer cxd_spared(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write, cxd_u32 victim);
/* The victim is unmapped and, if dirty, its program has ended: EVICTING → NOT_CACHED. Returns its former word. */
cxd_u32 cxd_evicted(struct cxd_core *core, cxd_u64 now, cxd_u32 victim);
/* The page is mapped: LOADING → CACHED; prefetches are asked for (unless by the background). Returns its former word. */
cxd_u32 cxd_filled(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write);
/* A first write to a page that was mapped for reading: 1 if it is now dirty (let it be written), 0 if it is no longer
 * CACHED (look again). */
int cxd_written(struct cxd_core *core, cxd_u32 page);

/* When the background has something to do, CXD_NEVER if not before something is asked for. No lock is taken. */
cxd_u64 cxd_next(const struct cxd_core *core);
/* One step of the background due at or before `now`, at its own time `at`; IDLE when there is none. A tick of the
 * drain with n victims is n answers. */
struct cxd_answer cxd_tick(struct cxd_core *core, cxd_u64 now);
/* The drain ticks from the next whole period after `now` on, or not at all; a device starts without. */
void cxd_drain(struct cxd_core *core, cxd_u64 now, int on);
/* Prefetches asked for and not finished. */
cxd_u32 cxd_prefetches_open(const struct cxd_core *core);

const struct cxd_counters *cxd_counters(const struct cxd_core *core);
/* Counters to 0 (`resident` stays) and open prefetch fates closed: the timed part begins. */
void cxd_zero_counters(struct cxd_core *core);
/* Walk the words: pages in each state, and those whose prefetch fate is open. counts[5]. */
void cxd_census(const struct cxd_core *core, cxd_u64 counts[5]);

#endif
