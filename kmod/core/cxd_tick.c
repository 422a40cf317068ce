// SPDX-License-Identifier: MIT
/*
 * What happens behind the threads: prefetches and the drain, as events in a heap by (time, when asked for).
 */
#include "cxd_internal.h"

static int earlier(const struct cxd_due *a, const struct cxd_due *b)
{
	return a->at < b->at || (a->at == b->at && a->sequence < b->sequence);
}

static void note_next(struct cxd_core *core) { cxd_store(&core->next, core->heap_n ? core->heap[0].at : CXD_NEVER); }

static void push_as(struct cxd_core *core, cxd_u64 sequence, cxd_u64 at, cxd_u32 what, cxd_u32 page, cxd_u32 victim)
{
	struct cxd_due due = {at, sequence, what, page, victim, 0};
	cxd_u32 i = core->heap_n++;
	for (; i && earlier(&due, &core->heap[(i - 1) / 2]); i = (i - 1) / 2)
		core->heap[i] = core->heap[(i - 1) / 2];
	core->heap[i] = due;
	note_next(core);
}

static void push(struct cxd_core *core, cxd_u64 at, cxd_u32 what, cxd_u32 page, cxd_u32 victim)
{
	push_as(core, ++core->sequence, at, what, page, victim);
}

static void pop(struct cxd_core *core)
{
	struct cxd_due *heap = core->heap, last = heap[--core->heap_n];
	cxd_u32 i = 0, child;
	while ((child = 2 * i + 1) < core->heap_n) {
		if (child + 1 < core->heap_n && earlier(&heap[child + 1], &heap[child]))
			child++;
		if (earlier(&last, &heap[child]))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	note_next(core);
}

/* Each prefetch that is open, each page that the drain may have on its way out, the tick, and one to spare. */
cxd_u32 cxd_heap_cells(const struct cxd_config *config) { return config->prefetch_queue + config->cache_pages + 4; }

void cxd_ask_ahead(struct cxd_core *core, cxd_u32 page, cxd_u64 now)
{
	cxd_u32 i;
	for (i = 1; i <= core->config.prefetch_pages; i++) {
		cxd_add(&core->counters->prefetch_asked, 1);
		if (page + i >= core->limit || core->open >= core->config.prefetch_queue) {
			cxd_add(&core->counters->prefetch_dropped, 1);
			continue;
		}
		cxd_store(&core->open, core->open + 1);
		push(core, now + core->config.prefetch_delay_ns, CXD_W_PREFETCH, page + i, CXD_NO_PAGE);
	}
}

/* The read step of a prefetch, whose page is then due to be mapped. */
static void prefetch_read(struct cxd_core *core, cxd_u32 page, cxd_u64 now)
{
	struct cxd_answer parts;
	int written = (cxd_load(&core->words[page]) & CXD_WRITTEN) || core->config.unwritten == CXD_UNWRITTEN_CHARGE;
	cxd_u64 ready = now;
	if (!core->config.prefetch_free && written) {
		cxd_add(&core->counters->prefetch_charged, 1);
		ready = cxd_nand_read(core, page, now, &parts);
	} else {
		cxd_add(&core->counters->prefetch_uncharged, 1);
		if (!core->config.prefetch_free && core->config.unwritten == CXD_UNWRITTEN_PROGRAM) {
			cxd_swap(&core->words[page], 0, CXD_WRITTEN);
			ready = cxd_nand_program(core, CXD_BACKGROUND, page, now);
		}
	}
	/* what takes no time belongs to the event at hand: it goes before all that is due at the same time */
	push_as(core, ready > now ? ++core->sequence : 0, ready, CXD_W_PREFETCH_MAP, page, CXD_NO_PAGE);
}

void cxd_behind(struct cxd_core *core, cxd_u64 now, cxd_u32 page, cxd_u32 victim, int slow, struct cxd_answer *answer)
{
	cxd_u32 drained = page == CXD_NO_PAGE;
	cxd_u64 end = slow ? cxd_nand_program(core, CXD_BACKGROUND, victim, now) : now;
	answer->kind = CXD_UNMAP;
	answer->victim = victim;
	answer->done = end <= now;
	if (!answer->done)
		push(core, end, drained ? CXD_W_DRAINED : CXD_W_PREFETCH_READ, page, victim);
	else if (drained)
		core->free++; /* a moment before the caller has unmapped it */
	else
		prefetch_read(core, page, now);
}

void cxd_evict_behind(struct cxd_core *core, cxd_u64 now, cxd_u32 page, struct cxd_answer *answer)
{
	cxd_u32 victim;
	int slow;
	if (core->config.asks) {
		answer->kind = CXD_ASK;
		answer->page = page;
		answer->victim = cxd_ask(core);
	} else {
		victim = cxd_evict(core, now, CXD_BACKGROUND, &slow);
		cxd_behind(core, now, page, victim, slow, answer);
	}
}

static void prefetch_start(struct cxd_core *core, cxd_u32 page, cxd_u64 now, struct cxd_answer *answer)
{
	cxd_u32 *word = &core->words[page], old = cxd_load(word);
	for (;;) {
		if ((old & CXD_STATE) != CXD_NOT_CACHED) {
			cxd_add(&core->counters->prefetch_already, 1);
			cxd_store(&core->open, core->open - 1);
			return;
		}
		if (!core->free && !core->resident) {
			cxd_add(&core->counters->prefetch_dropped, 1);
			cxd_store(&core->open, core->open - 1);
			return;
		}
		if (cxd_cas(word, &old, (old & CXD_WRITTEN) | CXD_PREFETCHED | CXD_LOADING))
			break;
	}
	cxd_add(&core->counters->prefetch_issued, 1);
	cxd_emit(core, now, CXD_BACKGROUND, page, CXD_EV_PREFETCH);
	if (core->free) {
		core->free--;
		prefetch_read(core, page, now);
	} else {
		cxd_evict_behind(core, now, page, answer);
	}
}

static void next_tick(struct cxd_core *core, cxd_u64 now)
{
	pop(core);
	core->taken = 0;
	if (core->drains)
		push(core, now + core->config.drain_period_ns, CXD_W_TICK, CXD_NO_PAGE, CXD_NO_PAGE);
}

/* One victim of a tick of the drain; the tick stays first in the heap until it has its last. */
static void drain_step(struct cxd_core *core, cxd_u64 now, struct cxd_answer *answer)
{
	const struct cxd_config *config = &core->config;
	if (!core->drains) {
		next_tick(core, now);
		return;
	}
	if (!core->taken && core->resident >= config->drain_high)
		core->draining = 1;
	if (!core->draining || core->resident <= config->drain_stop || core->taken >= config->drain_pages) {
		if (core->resident <= config->drain_stop)
			core->draining = 0;
		next_tick(core, now);
		return;
	}
	core->taken++;
	cxd_evict_behind(core, now, CXD_NO_PAGE, answer);
}

/* A dirty victim of the background is programmed: its frame is free, or the prefetch's that took it. */
static void ended(struct cxd_core *core, const struct cxd_due *due, struct cxd_answer *answer)
{
	cxd_evicted(core, due->at, due->victim);
	answer->kind = CXD_WAKE;
	answer->page = due->victim;
	if (due->what == CXD_W_DRAINED)
		core->free++;
	else
		prefetch_read(core, due->page, due->at);
}

struct cxd_answer cxd_tick(struct cxd_core *core, cxd_u64 now)
{
	struct cxd_answer answer = {.kind = CXD_IDLE, .page = CXD_NO_PAGE, .victim = CXD_NO_PAGE};
	cxd_lock(&core->lock);
	while (answer.kind == CXD_IDLE && core->heap_n && core->heap[0].at <= now) {
		struct cxd_due due = core->heap[0];
		answer.at = due.at;
		if (due.what == CXD_W_TICK) {
			drain_step(core, due.at, &answer);
			continue;
		}
		pop(core);
		if (due.what == CXD_W_PREFETCH) {
			prefetch_start(core, due.page, due.at, &answer);
		} else if (due.what == CXD_W_PREFETCH_MAP) {
			answer.kind = CXD_MAP;
			answer.page = due.page;
		} else {
			ended(core, &due, &answer);
		}
	}
	if (answer.kind == CXD_IDLE)
		answer.at = core->heap_n ? core->heap[0].at : CXD_NEVER;
	cxd_unlock(&core->lock);
	return answer;
}

void cxd_drain(struct cxd_core *core, cxd_u64 now, int on)
{
	cxd_u64 period;
	cxd_lock(&core->lock);
	period = core->config.drain_period_ns;
	if (on && !core->drains && core->config.drain_pages) {
		cxd_u32 i, there = 0;
		for (i = 0; i < core->heap_n; i++)
			there |= core->heap[i].what == CXD_W_TICK; /* switched off and on again before it was due */
		core->drains = 1;
		if (!there)
			push(core, (now / period + 1) * period, CXD_W_TICK, CXD_NO_PAGE, CXD_NO_PAGE);
	} else if (!on) {
		core->drains = 0;
	}
	cxd_unlock(&core->lock);
}

cxd_u64 cxd_next(const struct cxd_core *core) { return cxd_load(&core->next); }
