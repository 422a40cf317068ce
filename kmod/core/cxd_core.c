// SPDX-License-Identifier: MIT
/*
 * Accesses and the states of pages.
 */
#include "cxd_internal.h"

cxd_u32 cxd_swap(cxd_u32 *word, cxd_u32 clear, cxd_u32 set)
{
	cxd_u32 old = cxd_load(word);
	while (!cxd_cas(word, &old, (old & ~clear) | set))
		;
	return old;
}

void cxd_emit(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, cxd_u32 kind)
{
	struct cxd_event *event;
	if (!core->log)
		return;
	if (core->logged < core->log_size) {
		event = &core->log[core->logged];
		event->t_ns = now;
		event->thread = thread;
		event->page = page;
		event->kind = kind;
	}
	core->logged++;
}

static struct cxd_answer answer_of(cxd_u32 kind, cxd_u32 page, cxd_u64 at)
{
	struct cxd_answer answer = {.kind = kind, .page = page, .victim = CXD_NO_PAGE, .at = at};
	return answer;
}

/* CXD_SLEEPERS stays with a page that goes from one state to another one that is waited for; nobody sleeps on CACHED. */
cxd_u32 cxd_evict(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, int *slow)
{
	struct cxd_counters *c = &core->counters;
	cxd_u32 victim = cxd_leave(core), back = thread == CXD_BACKGROUND;
	cxd_u32 word = cxd_swap(&core->words[victim], CXD_STATE | CXD_DIRTY | CXD_PREFETCHED | CXD_REFERENCED, CXD_EVICTING);
	int dirty = (word & CXD_DIRTY) != 0;
	if (word & CXD_PREFETCHED)
		cxd_add(&c->prefetch_wasted, 1);
	cxd_add(&c->evict_begun, 1);
	if (dirty)
		cxd_add(back ? &c->dirty_background : &c->dirty_foreground, 1);
	else
		cxd_add(back ? &c->clean_background : &c->clean_foreground, 1);
	cxd_store(&c->resident, core->resident);
	cxd_emit(core, now, thread, victim, dirty ? CXD_EV_EVICT_DIRTY : CXD_EV_EVICT_CLEAN);
	*slow = dirty && !core->config.writeback_free;
	return victim;
}

/* What the page costs: a read of the NAND, or nothing, where the semantics say so. */
static void read_step(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, int write, struct cxd_answer *answer)
{
	const struct cxd_config *config = &core->config;
	struct cxd_counters *c = &core->counters;
	cxd_u32 page = answer->page;
	answer->kind = CXD_READ;
	answer->at = now;
	if (write && config->write_miss_none) {
		cxd_add(&c->uncharged_write, 1);
	} else if (config->unwritten == CXD_UNWRITTEN_CHARGE || (cxd_load(&core->words[page]) & CXD_WRITTEN)) {
		cxd_add(&c->charged, 1);
		answer->charged = 1;
		answer->at = cxd_nand_read(core, page, now, answer);
	} else if (config->unwritten == CXD_UNWRITTEN_FREE) {
		cxd_add(&c->uncharged_unwritten, 1);
	} else {
		cxd_add(&c->charged_program, 1);
		cxd_swap(&core->words[page], 0, CXD_WRITTEN);
		answer->at = cxd_nand_program(core, thread, page, now);
		answer->sense_ns = answer->at - now;
	}
}

static struct cxd_answer frame_step(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write)
{
	struct cxd_answer answer = answer_of(CXD_STARVED, page, now);
	int slow = 0;
	if (core->free) {
		core->free--;
	} else if (core->resident) {
		answer.victim = cxd_evict(core, now, thread, &slow);
		if (slow) {
			answer.kind = CXD_VICTIM;
			answer.at = cxd_nand_program(core, thread, answer.victim, now);
			return answer;
		}
	} else {
		return answer;
	}
	read_step(core, now, thread, write, &answer);
	return answer;
}

struct cxd_answer cxd_access(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write)
{
	struct cxd_counters *c = &core->counters;
	cxd_u32 *word = &core->words[page], old = cxd_load(word), new, touch = cxd_load(&core->touch);
	struct cxd_answer answer;
	for (;;) {
		switch (old & CXD_STATE) {
		case CXD_CACHED:
			new = (old & ~CXD_PREFETCHED) | (write ? CXD_DIRTY | CXD_WRITTEN : 0);
			if (touch == CXD_T_MARK)
				new |= CXD_REFERENCED;
			if (new != old && !cxd_cas(word, &old, new))
				continue;
			cxd_emit(core, now, thread, page, CXD_EV_HIT);
			if (old & CXD_PREFETCHED)
				cxd_add(&c->prefetch_useful, 1);
			if (touch == CXD_T_MOVE)
				cxd_move(core, page);
			return answer_of(CXD_HIT, page, now);
		case CXD_NOT_CACHED:
			if (!cxd_cas(word, &old, (old & CXD_WRITTEN) | CXD_LOADING))
				continue;
			cxd_add(&c->claims, 1);
			cxd_emit(core, now, thread, page, CXD_EV_FILL);
			cxd_lock(&core->lock);
			answer = frame_step(core, now, thread, page, write);
			cxd_unlock(&core->lock);
			return answer;
		default:
			if ((old & CXD_PREFETCHED) && !cxd_cas(word, &old, old & ~CXD_PREFETCHED))
				continue;
			if (old & CXD_PREFETCHED)
				cxd_add(&c->prefetch_late, 1);
			cxd_emit(core, now, thread, page, CXD_EV_WAIT);
			return answer_of(CXD_WAIT, page, CXD_NEVER);
		}
	}
}

struct cxd_answer cxd_frame(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write)
{
	struct cxd_answer answer;
	cxd_lock(&core->lock);
	answer = frame_step(core, now, thread, page, write);
	cxd_unlock(&core->lock);
	return answer;
}

struct cxd_answer cxd_read(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write)
{
	struct cxd_answer answer = answer_of(CXD_READ, page, now);
	cxd_lock(&core->lock);
	read_step(core, now, thread, write, &answer);
	cxd_unlock(&core->lock);
	return answer;
}

cxd_u32 cxd_evicted(struct cxd_core *core, cxd_u64 now, cxd_u32 victim)
{
	(void)now;
	cxd_add(&core->counters.evict_ended, 1);
	return cxd_swap(&core->words[victim], CXD_STATE | CXD_SLEEPERS, CXD_NOT_CACHED);
}

cxd_u32 cxd_filled(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write)
{
	cxd_u32 old;
	cxd_lock(&core->lock);
	old = cxd_swap(&core->words[page], CXD_STATE | CXD_SLEEPERS, CXD_CACHED | (write ? CXD_DIRTY | CXD_WRITTEN : 0));
	cxd_join(core, page);
	cxd_add(&core->counters.fills, 1);
	cxd_store(&core->counters.resident, core->resident);
	cxd_emit(core, now, thread, page, CXD_EV_INSTALL);
	if (thread == CXD_BACKGROUND)
		cxd_store(&core->open, core->open - 1);
	else if (core->config.prefetch_pages)
		cxd_ask_ahead(core, page, now);
	cxd_unlock(&core->lock);
	return old;
}

int cxd_written(struct cxd_core *core, cxd_u32 page)
{
	cxd_u32 *word = &core->words[page], old = cxd_load(word);
	do {
		if ((old & CXD_STATE) != CXD_CACHED)
			return 0;
	} while (!cxd_cas(word, &old, old | CXD_DIRTY | CXD_WRITTEN));
	return 1;
}

const struct cxd_counters *cxd_counters(const struct cxd_core *core) { return &core->counters; }
cxd_u32 cxd_prefetches_open(const struct cxd_core *core) { return cxd_load(&core->open); }
cxd_u64 cxd_logged(const struct cxd_core *core) { return core->logged; }

void cxd_keep_log(struct cxd_core *core, struct cxd_event *log, cxd_u64 size)
{
	core->log = log;
	core->log_size = size;
	core->logged = 0;
}
