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

/* A page on its way out, whose word was `word`: 1 if its program must be waited for. */
static int count_victim(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 victim, cxd_u32 word)
{
	struct cxd_counters *c = core->counters;
	cxd_u32 back = thread == CXD_BACKGROUND;
	int dirty = (word & CXD_DIRTY) != 0;
	if (word & CXD_PREFETCHED)
		cxd_add(&c->prefetch_wasted, 1);
	cxd_add(&c->evict_begun, 1);
	if (dirty)
		cxd_add(back ? &c->dirty_background : &c->dirty_foreground, 1);
	else
		cxd_add(back ? &c->clean_background : &c->clean_foreground, 1);
	cxd_emit(core, now, thread, victim, dirty ? CXD_EV_EVICT_DIRTY : CXD_EV_EVICT_CLEAN);
	return dirty && !core->config.writeback_free;
}

/* CXD_SLEEPERS stays with a page that goes from one state to another one that is waited for; nobody sleeps on CACHED. */
static cxd_u32 leave(struct cxd_core *core, cxd_u32 clear, cxd_u32 *word)
{
	cxd_u32 victim = cxd_leave(core);
	*word = cxd_swap(&core->words[victim], CXD_STATE | CXD_REFERENCED | clear, CXD_EVICTING);
	cxd_store(&core->counters->resident, core->resident);
	return victim;
}

cxd_u32 cxd_evict(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, int *slow)
{
	cxd_u32 word, victim = leave(core, CXD_DIRTY | CXD_PREFETCHED, &word);
	*slow = count_victim(core, now, thread, victim, word);
	return victim;
}

cxd_u32 cxd_ask(struct cxd_core *core)
{
	cxd_u32 word;
	return leave(core, 0, &word);
}

/* What the page costs: a read of the NAND, or nothing, where the semantics say so. */
static void read_step(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, int write, struct cxd_answer *answer)
{
	const struct cxd_config *config = &core->config;
	struct cxd_counters *c = core->counters;
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

/* With its victim settled: wait for its program, or read. */
static void victim_step(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, int write, int slow, struct cxd_answer *answer)
{
	if (slow) {
		answer->kind = CXD_VICTIM;
		answer->at = cxd_nand_program(core, thread, answer->victim, now);
	} else {
		read_step(core, now, thread, write, answer);
	}
}

static struct cxd_answer frame_step(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write)
{
	struct cxd_answer answer = answer_of(CXD_STARVED, page, now);
	int slow = 0;
	if (core->free) {
		core->free--;
		read_step(core, now, thread, write, &answer);
	} else if (core->resident && core->config.asks) {
		answer.kind = CXD_ASK;
		answer.victim = cxd_ask(core);
	} else if (core->resident) {
		answer.victim = cxd_evict(core, now, thread, &slow);
		victim_step(core, now, thread, write, slow, &answer);
	}
	return answer;
}

struct cxd_answer cxd_unmapped(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write,
			       cxd_u32 victim, int dirty)
{
	struct cxd_answer answer = answer_of(CXD_READ, page, now);
	cxd_u32 word;
	int slow;
	cxd_lock(&core->lock);
	word = cxd_swap(&core->words[victim], CXD_DIRTY | CXD_PREFETCHED, dirty ? CXD_WRITTEN : 0);
	slow = count_victim(core, now, thread, victim, word | (dirty ? CXD_DIRTY : 0));
	answer.victim = victim;
	if (thread == CXD_BACKGROUND)
		cxd_behind(core, now, page, victim, slow, &answer);
	else
		victim_step(core, now, thread, write, slow, &answer);
	cxd_unlock(&core->lock);
	return answer;
}

struct cxd_answer cxd_spared(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write, cxd_u32 victim)
{
	struct cxd_answer answer = answer_of(CXD_ASK, page, now);
	cxd_lock(&core->lock);
	cxd_swap(&core->words[victim], CXD_STATE | CXD_SLEEPERS, CXD_CACHED);
	cxd_join(core, victim);
	cxd_store(&core->counters->resident, core->resident);
	if (thread == CXD_BACKGROUND)
		cxd_evict_behind(core, now, page, &answer);
	else
		answer = frame_step(core, now, thread, page, write);
	cxd_unlock(&core->lock);
	return answer;
}

struct cxd_answer cxd_access(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write)
{
	struct cxd_counters *c = core->counters;
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
			/* one that is asked about keeps its mark until that is settled */
			if ((old & CXD_PREFETCHED) && (old & CXD_STATE) == CXD_LOADING) {
				if (!cxd_cas(word, &old, old & ~CXD_PREFETCHED))
					continue;
				cxd_add(&c->prefetch_late, 1);
			}
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
	cxd_add(&core->counters->evict_ended, 1);
	return cxd_swap(&core->words[victim], CXD_STATE | CXD_SLEEPERS, CXD_NOT_CACHED);
}

cxd_u32 cxd_filled(struct cxd_core *core, cxd_u64 now, cxd_u32 thread, cxd_u32 page, int write)
{
	cxd_u32 old;
	cxd_lock(&core->lock);
	old = cxd_swap(&core->words[page], CXD_STATE | CXD_SLEEPERS, CXD_CACHED | (write ? CXD_DIRTY | CXD_WRITTEN : 0));
	cxd_join(core, page);
	cxd_add(&core->counters->fills, 1);
	cxd_store(&core->counters->resident, core->resident);
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

const struct cxd_counters *cxd_counters(const struct cxd_core *core) { return core->counters; }
cxd_u32 cxd_prefetches_open(const struct cxd_core *core) { return cxd_load(&core->open); }
cxd_u64 cxd_logged(const struct cxd_core *core) { return core->logged; }

void cxd_keep_log(struct cxd_core *core, struct cxd_event *log, cxd_u64 size)
{
	core->log = log;
	core->log_size = size;
	core->logged = 0;
}
