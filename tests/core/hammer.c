/* SPDX-License-Identifier: MIT
 *
 * Eight threads and a ticker against one core of 16 frames and 64 pages: hammer ACCESSES. The caller's side is played
 * with flags: a page is mapped, unmapped, slept on and woken as the answers say, and nothing else wakes a sleeper, so
 * that a lost wake-up hangs (and ends after a minute). Every policy, several semantics. Ends with 1 if anything is wrong.
 */
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "cxd_core.h"

enum { THREADS = 8, FRAMES = 16, PAGES = 64 };

static struct {
	struct cxd_core *core;
	struct cxd_counters counters;
	struct cxd_config config;
	cxd_u32 words[PAGES], mapped[PAGES], filling[PAGES], written[PAGES];
	cxd_u32 woken[PAGES]; /* grows when the page's sleepers are woken */
	cxd_u32 frame_news;   /* grows when a thread that starves may look again */
	cxd_u32 all_mapped, most_mapped, working;
	cxd_u64 clock, accesses, claims, waits, starved;
} it;
static int wrong;

#define CHECK(condition, ...) ((condition) ? (void)0 : failed(__LINE__, #condition, __VA_ARGS__))

__attribute__((format(printf, 3, 4))) static void failed(int line, const char *condition, const char *format, ...)
{
	char text[200];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "hammer.c:%d: %s: %s\n", line, condition, text);
	__atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
}

void cxd_lock_slow(cxd_lock_t *lock)
{
	cxd_u32 free = 0;
	while (!cxd_cas(&lock->word, &free, 1)) {
		free = 0;
		sched_yield();
	}
}

static cxd_u32 swap(cxd_u32 *cell, cxd_u32 value) { return __atomic_exchange_n(cell, value, __ATOMIC_ACQ_REL); }
static cxd_u64 time_now(void) { return __atomic_fetch_add(&it.clock, 20, __ATOMIC_RELAXED); }

static void wait_until(cxd_u64 at)
{
	while (time_now() < at)
		sched_yield();
}

static void unmap(cxd_u32 page)
{
	CHECK((cxd_load(&it.words[page]) & CXD_STATE) == CXD_EVICTING, "page %u is unmapped as %x", page, it.words[page]);
	CHECK(swap(&it.mapped[page], 0) == 1, "page %u is unmapped twice", page);
	__atomic_fetch_sub(&it.all_mapped, 1, __ATOMIC_ACQ_REL);
}

static void map(cxd_u32 page)
{
	cxd_u32 most = cxd_load(&it.most_mapped), all = __atomic_add_fetch(&it.all_mapped, 1, __ATOMIC_ACQ_REL);
	CHECK((cxd_load(&it.words[page]) & CXD_STATE) == CXD_LOADING, "page %u is mapped as %x", page, it.words[page]);
	CHECK(swap(&it.mapped[page], 1) == 0, "page %u is mapped twice", page);
	while (all > most && !cxd_cas(&it.most_mapped, &most, all))
		;
}

static void wake(cxd_u32 page, cxd_u32 former)
{
	if (former & CXD_SLEEPERS)
		cxd_add(&it.woken[page], 1);
	cxd_add(&it.frame_news, 1);
}

static void evicted(cxd_u32 page, int mapped)
{
	cxd_u32 former;
	if (mapped)
		unmap(page);
	former = cxd_evicted(it.core, time_now(), page);
	CHECK((former & CXD_STATE) == CXD_EVICTING && !(former & CXD_DIRTY), "page %u was evicted as %x", page, former);
	wake(page, former);
}

static void filled(cxd_u32 thread, cxd_u32 page, int write)
{
	cxd_u32 former;
	map(page);
	CHECK(swap(&it.filling[page], 0) == (thread != CXD_BACKGROUND), "page %u is filled by another", page);
	former = cxd_filled(it.core, time_now(), thread, page, write);
	CHECK((former & CXD_STATE) == CXD_LOADING, "page %u was filled as %x", page, former);
	wake(page, former);
	if (write)
		cxd_store(&it.written[page], 1);
}

static void sleep_on(cxd_u32 page)
{
	for (;;) {
		cxd_u32 woken = cxd_load(&it.woken[page]), word = cxd_load(&it.words[page]), state = word & CXD_STATE;
		if (state == CXD_CACHED || state == CXD_NOT_CACHED)
			return;
		if (!cxd_cas(&it.words[page], &word, word | CXD_SLEEPERS))
			continue;
		while (cxd_load(&it.woken[page]) == woken)
			sched_yield();
		return;
	}
}

/* The path of a miss. The frame news are read before the core is asked, so that none is missed. */
static void fill(cxd_u32 thread, struct cxd_answer answer, cxd_u32 news, cxd_u32 page, int write)
{
	CHECK(swap(&it.filling[page], 1) == 0, "page %u is claimed twice", page);
	while (answer.kind == CXD_STARVED) {
		cxd_add(&it.starved, 1);
		while (cxd_load(&it.frame_news) == news)
			sched_yield();
		news = cxd_load(&it.frame_news);
		answer = cxd_frame(it.core, time_now(), thread, page, write);
	}
	if (answer.kind == CXD_VICTIM) {
		unmap(answer.victim);
		wait_until(answer.at);
		evicted(answer.victim, 0);
		answer = cxd_read(it.core, time_now(), thread, page, write);
	} else if (answer.victim != CXD_NO_PAGE) {
		evicted(answer.victim, 1);
	}
	CHECK(answer.kind == CXD_READ && answer.page == page, "answer %u for page %u", answer.kind, answer.page);
	wait_until(answer.at);
	filled(thread, page, write);
}

static void access_page(cxd_u32 thread, cxd_u32 page, int write, int first_read)
{
	for (;;) {
		cxd_u32 news = cxd_load(&it.frame_news);
		struct cxd_answer answer = cxd_access(it.core, time_now(), thread, page, write && !first_read);
		if (answer.kind == CXD_WAIT) {
			cxd_add(&it.waits, 1);
			sleep_on(page);
			continue;
		}
		if (answer.kind != CXD_HIT) {
			cxd_add(&it.claims, 1);
			fill(thread, answer, news, page, write);
			return;
		}
		if (!write)
			return;
		if (first_read && !cxd_written(it.core, page))
			continue;
		cxd_store(&it.written[page], 1);
		return;
	}
}

static void *work(void *arg)
{
	cxd_u32 thread = (cxd_u32)(size_t)arg;
	cxd_u64 draw = 88172645463325252ull + thread, i;
	for (i = 0; i < it.accesses; i++) {
		draw ^= draw << 13, draw ^= draw >> 7, draw ^= draw << 17;
		/* half to a few pages, so that threads meet on them */
		access_page(thread, (cxd_u32)(draw >> 8) % (draw & 1 ? 6 : PAGES), (draw >> 40 & 3) == 0, draw >> 43 & 1);
	}
	__atomic_fetch_sub(&it.working, 1, __ATOMIC_ACQ_REL);
	return 0;
}

static void *tick(void *arg)
{
	cxd_u32 round = !!arg;
	while (cxd_load(&it.working) || cxd_next(it.core) != CXD_NEVER) {
		struct cxd_answer answer = cxd_tick(it.core, time_now());
		switch (answer.kind) {
		case CXD_UNMAP:
			answer.done ? evicted(answer.victim, 1) : unmap(answer.victim);
			break;
		case CXD_MAP:
			filled(CXD_BACKGROUND, answer.page, 0);
			break;
		case CXD_WAKE:
			wake(answer.page, CXD_SLEEPERS);
			break;
		default:
			CHECK(answer.kind == CXD_IDLE, "answer %u of a tick", answer.kind);
			if (!cxd_load(&it.working))
				cxd_drain(it.core, time_now(), 0);
			sched_yield();
		}
		if (++round % 64 == 0) { /* settings change under way */
			it.config.read_ns[0] ^= 256;
			CHECK(cxd_change(it.core, &it.config) == 0, "a change of read_ns is refused");
		}
	}
	return 0;
}

static void check_counts(const char *name)
{
	const struct cxd_counters *c = cxd_counters(it.core);
	cxd_u64 census[5];
	cxd_u32 page;
	cxd_census(it.core, census);
#define LONG(value) ((unsigned long long)(value))
#define SAME(a, b) CHECK((a) == (b), "%s: %llu, %llu", name, LONG(a), LONG(b))
	SAME(c->claims, it.claims);
	SAME(c->claims + c->prefetch_issued, c->fills);
	SAME(c->claims, c->charged + c->charged_program + c->uncharged_unwritten + c->uncharged_write);
	SAME(c->evict_begun, c->evict_ended);
	SAME(c->evict_begun, c->clean_foreground + c->clean_background + c->dirty_foreground + c->dirty_background);
	SAME(c->fills - c->evict_ended, c->resident);
	SAME(c->nand_reads, c->charged + c->prefetch_charged);
	SAME(c->prefetch_asked, c->prefetch_dropped + c->prefetch_already + c->prefetch_issued);
	SAME(c->prefetch_issued, c->prefetch_charged + c->prefetch_uncharged);
	SAME(c->prefetch_issued, c->prefetch_useful + c->prefetch_late + c->prefetch_wasted + census[4]);
	SAME(c->resident, census[CXD_CACHED]);
	SAME(c->resident, it.all_mapped);
	SAME(census[CXD_LOADING] + census[CXD_EVICTING], 0);
	SAME(cxd_prefetches_open(it.core), 0);
	CHECK(it.most_mapped <= FRAMES + 1, "%s: %u pages were mapped at once", name, it.most_mapped); /* 1: on its way out */
	for (page = 0; page < PAGES; page++) {
		cxd_u32 word = it.words[page];
		cxd_u32 none = CXD_SLEEPERS | (word & CXD_STATE ? 0 : CXD_DIRTY | CXD_REFERENCED | CXD_PREFETCHED);
		CHECK(((word & CXD_STATE) == CXD_CACHED) == it.mapped[page], "%s: page %u is %x", name, page, word);
		CHECK((word & CXD_WRITTEN) || !it.written[page], "%s: page %u lost what was written", name, page);
		CHECK(!(word & none), "%s: page %u is %x", name, page, word);
	}
}

static void run(const char *policy, const char *variant, struct cxd_config config)
{
	char name[64];
	pthread_t threads[THREADS + 1];
	cxd_u64 accesses = it.accesses;
	void *memory;
	size_t t;
	__builtin_memset(&it, 0, sizeof(it));
	snprintf(name, sizeof(name), "%s%s", policy, variant);
	it.accesses = accesses;
	it.config = config;
	CHECK(cxd_check(&config) == 0, "%s: %s", name, cxd_field(cxd_check(&config)));
	memory = malloc(cxd_memory(&config));
	it.core = cxd_start(&config, memory, it.words, &it.counters);
	it.working = THREADS;
	cxd_drain(it.core, 0, 1);
	alarm(60);
	for (t = 0; t < THREADS; t++)
		pthread_create(&threads[t], 0, work, (void *)t);
	pthread_create(&threads[THREADS], 0, tick, 0);
	for (t = 0; t <= THREADS; t++)
		pthread_join(threads[t], 0);
	check_counts(name);
	printf("%s: %llu claims, %llu waits, %llu starved, %llu prefetched\n", name, LONG(it.claims), LONG(it.waits),
	       LONG(it.starved), LONG(cxd_counters(it.core)->prefetch_issued));
	/* no frame was lost or won: one thread, all pages, no drain */
	it.config.prefetch_pages = 0;
	CHECK(cxd_change(it.core, &it.config) == 0, "%s: a change is refused", name);
	for (t = 0; t < PAGES; t++)
		access_page(0, (cxd_u32)t, 0, 0);
	check_counts(name);
	SAME(cxd_counters(it.core)->resident, FRAMES);
	free(memory);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"fifo", "lifo", "clock", "lru"};
	struct cxd_config plain = {
		.cache_pages = FRAMES, .capacity_pages = PAGES, .protect = 4, .sees_hits = 1,
		.prefetch_pages = 2, .prefetch_queue = 6, .prefetch_delay_ns = 100,
		.drain_pages = 4, .drain_high = 14, .drain_stop = 10, .drain_period_ns = 3000,
		.channels = 2, .ways = 2, .block_pages = 16, .transfer_ns = 40, .erase_ns = 900,
		.read_types = 1, .program_types = 1, .read_ns = {300}, .program_ns = {700}};
	it.accesses = argc > 1 ? strtoull(argv[1], 0, 10) : 10000;
	for (plain.policy = CXD_FIFO; plain.policy <= CXD_LRU; plain.policy++) {
		struct cxd_config config = plain;
		run(names[plain.policy], "", config);
		config.writeback_free = config.write_miss_none = config.prefetch_free = 1;
		config.unwritten = CXD_UNWRITTEN_FREE;
		config.prefetch_delay_ns = config.transfer_ns = 0;
		run(names[plain.policy], ", all free", config);
		config = plain;
		config.unwritten = CXD_UNWRITTEN_PROGRAM;
		config.prefetch_pages = 16; /* so many in flight that threads starve */
		config.prefetch_queue = 32;
		run(names[plain.policy], ", starving", config);
	}
	return wrong;
}
