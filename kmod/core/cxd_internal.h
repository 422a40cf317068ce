/* SPDX-License-Identifier: MIT
 *
 * What the parts of the core share.
 */
#ifndef CXD_INTERNAL_H_
#define CXD_INTERNAL_H_

#include "cxd_core.h"

/* What a background event does when its time has come. */
enum cxd_work { CXD_W_TICK, CXD_W_PREFETCH, CXD_W_PREFETCH_READ, CXD_W_PREFETCH_MAP, CXD_W_DRAINED };

/* What the policy is told of a hit: nothing, a mark in the word, or (under the lock) a new place in the queue. */
enum cxd_touch { CXD_T_NOTHING, CXD_T_MARK, CXD_T_MOVE };

struct cxd_due { cxd_u64 at, sequence; cxd_u32 what, page, victim, pad; };
struct cxd_busy { cxd_u64 begin, end; };
struct cxd_channel { cxd_u32 n, pad; struct cxd_busy busy[CXD_CHANNEL_SLOTS]; };
struct cxd_die { cxd_u64 free_at, programs; };

struct cxd_core {
	struct cxd_config config;
	cxd_lock_t lock; /* guards all below but the words, `touch`, `next` and the counters that hits and waits move */
	cxd_u32 *words;
	cxd_u32 touch; /* what a hit does for the policy, enum cxd_touch; read without the lock */

	/* eviction: a ring, LIFO's stack behind it, or LRU's links over frames */
	cxd_u32 *queue;
	cxd_u32 ring_mask, stack_at;
	cxd_u64 head, tail;
	cxd_u32 stacked, frames_free; /* frames_free: LRU's names for frames */
	cxd_u32 free, resident;       /* frames that no page holds; pages in the queue */

	struct cxd_die *dies;
	struct cxd_channel *channels;

	/* the background: a heap by (at, sequence) */
	struct cxd_due *heap;
	cxd_u32 heap_n;
	cxd_u64 sequence;
	cxd_u64 next; /* the heap's earliest time; read without the lock */
	cxd_u32 open, draining, drains;
	cxd_u32 limit; /* pages from here on are not prefetched */
	cxd_u32 taken; /* pages of the tick at hand; the tick stays in the heap until it is done */

	struct cxd_counters *counters;
	struct cxd_event *log;
	cxd_u64 log_size, logged;
};

/* cxd_core.c */
void cxd_emit(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, cxd_u32 kind);
/* Clear and set bits of a word whatever others do to its other bits; its former value. */
cxd_u32 cxd_swap(cxd_u32 *word, cxd_u32 clear, cxd_u32 set);
/* Take the policy's victim: CACHED → EVICTING. Its program must be waited for if *slow. */
cxd_u32 cxd_evict(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, int *slow);
/* The same where the caller is to be asked first: nothing is counted, and the word keeps its flags. */
cxd_u32 cxd_ask(struct cxd_core *core);

/* cxd_evict.c */
cxd_u64 cxd_queue_cells(const struct cxd_config *config);
void cxd_queue_start(struct cxd_core *core);
void cxd_join(struct cxd_core *core, cxd_u32 page);
cxd_u32 cxd_touch_of(const struct cxd_config *config);
void cxd_move(struct cxd_core *core, cxd_u32 page);
cxd_u32 cxd_leave(struct cxd_core *core);

/* cxd_nand.c */
cxd_u64 cxd_nand_read(struct cxd_core *core, cxd_u32 page, cxd_u64 now, struct cxd_answer *answer);
cxd_u64 cxd_nand_program(struct cxd_core *core, cxd_u32 thread, cxd_u32 page, cxd_u64 now);

/* cxd_tick.c */
cxd_u32 cxd_heap_cells(const struct cxd_config *config);
/* A victim of the background is settled: the drain's (page CXD_NO_PAGE) or the one that makes room for a prefetch. */
void cxd_behind(struct cxd_core *core, cxd_u64 now, cxd_u32 page, cxd_u32 victim, int slow, struct cxd_answer *answer);
/* Take a victim in the background, or ask about one. */
void cxd_evict_behind(struct cxd_core *core, cxd_u64 now, cxd_u32 page, struct cxd_answer *answer);
void cxd_ask_ahead(struct cxd_core *core, cxd_u32 page, cxd_u64 now);

#endif
