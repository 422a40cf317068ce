/* SPDX-License-Identifier: MIT
 *
 * Threads against one live device: storm MODE SECONDS. First each page carries a number and words that follow from
 * it, and threads read and write whole pages while evictions, prefetch and drain run; then all threads touch one page
 * at once, again and again. Prints what it saw; ends with 1 if a byte, a fill or a count is wrong.
 */
#include "../../kmod/user/internal.h"

#include <sched.h>

#define PAGES 1024u
#define CACHE 256u
#define THREADS 8
#define STORMS 2000

static struct cxd_device *device;
static _Atomic uint32_t locks[PAGES];
static uint64_t truth[PAGES];
static _Atomic int stop;
static _Atomic uint64_t wrong, done, writes;
static pthread_barrier_t together;
static _Atomic uint32_t target;

static uint64_t draw(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	return *s ^= *s << 17;
}

static uint64_t word_of(uint64_t version, uint64_t page, uint64_t i) { return (version + 1) * 0x9E3779B97F4A7C15ull ^ page << 20 ^ i; }

static void check_page(volatile uint64_t *at, uint64_t page)
{
	uint64_t version = at[0];
	if (version != truth[page])
		wrong++;
	for (uint64_t i = 1; i < 512; i += 37)
		if (at[i] != word_of(version, page, i))
			wrong++;
}

static void write_page(volatile uint64_t *at, uint64_t page)
{
	uint64_t version = ++truth[page];
	at[0] = version;
	for (uint64_t i = 1; i < 512; i++)
		at[i] = word_of(version, page, i);
	writes++;
}

static void *mix(void *argument)
{
	uint64_t s = 88172645463325252ull + (uint64_t)argument * 7919;
	while (!stop) {
		/* half of the threads fight over few pages */
		uint64_t page = (uint64_t)argument & 1 ? draw(&s) % 48 * 17 : draw(&s) % PAGES;
		while (atomic_exchange(&locks[page], 1))
			sched_yield();
		volatile uint64_t *at = (void *)((char *)cxd_base(device) + page * CXD_PAGE);
		check_page(at, page);
		if (draw(&s) % 4 == 0)
			write_page(at, page);
		atomic_store(&locks[page], 0);
		done++;
	}
	return NULL;
}

static void *storm(void *argument)
{
	(void)argument;
	for (int i = 0; i < STORMS; i++) {
		pthread_barrier_wait(&together);
		(void)*(volatile uint64_t *)((char *)cxd_base(device) + target * CXD_PAGE);
		pthread_barrier_wait(&together);
	}
	return NULL;
}

static int one_fill_each(void)
{
	const struct cxd_counters *c = cxd_counters(cxd_core_of(device));
	pthread_t threads[THREADS];
	int bad = 0;
	uint32_t page = 0;
	pthread_barrier_init(&together, NULL, THREADS + 1);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, storm, NULL);
	for (int i = 0; i < STORMS; i++) {
		do
			page = (page + 1) % PAGES;
		while (cxd_load(&device->words[page]) & CXD_STATE);
		target = page;
		uint64_t before = cxd_load(&c->fills);
		pthread_barrier_wait(&together);
		pthread_barrier_wait(&together);
		bad += cxd_load(&c->fills) - before != 1;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&together);
	return bad;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"sigbus", "thread", "guard", "mprotect"};
	char error[CXD_ERROR_BYTES] = "";
	struct cxd_setup setup = {.node = -1, .cores = 2, .core = {
		.cache_pages = CACHE, .capacity_pages = PAGES, .channels = 8, .ways = 4, .transfer_ns = 3200, .block_pages = 256,
		.read_types = 1, .program_types = 1, .read_ns = {3000}, .program_ns = {20000}, .erase_ns = 100000,
		.prefetch_pages = 2, .prefetch_queue = 64, .prefetch_delay_ns = 10000, .drain_pages = 16, .drain_high = CACHE * 95 / 100,
		.drain_stop = CACHE * 85 / 100, .drain_period_ns = 1000000}};
	for (int i = 0; argc > 2 && i < CXD_MODES; i++)
		if (!strcmp(argv[1], names[i]))
			setup.mode = (cxd_u32)i;
	device = cxd_open(&setup, error);
	if (!device || cxd_populate(device, 0, PAGES, error)) {
		fprintf(stderr, "storm: %s\n", error);
		return 2;
	}
	for (uint64_t page = 0; page < PAGES; page++) {
		uint64_t *at = (void *)((char *)cxd_alias(device) + page * CXD_PAGE);
		for (uint64_t i = 1; i < 512; i++)
			at[i] = word_of(0, page, i);
	}
	cxd_set_drain(device, 1);
	pthread_t threads[THREADS];
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, mix, (void *)(i + 1));
	usleep((useconds_t)(atof(argv[2]) * 1e6));
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cxd_set_drain(device, 0);
	int unsettled = cxd_settle(device, 10000000000ull);
	cxd_u64 census[5], differ = 0;
	const struct cxd_counters *live = cxd_counters(cxd_core_of(device));
	struct cxd_counters copy, *c = &copy;
	for (size_t i = 0; i < sizeof(copy) / 8; i++)
		((uint64_t *)c)[i] = cxd_load((const uint64_t *)live + i);
	cxd_census(cxd_core_of(device), census);
	for (uint64_t page = 0; page < PAGES; page++)
		differ += *(uint64_t *)((char *)cxd_alias(device) + page * CXD_PAGE) != truth[page];
	uint64_t evictions = c->clean_foreground + c->clean_background + c->dirty_foreground + c->dirty_background;
	int counts = unsettled || c->claims + c->prefetch_issued != c->fills || c->evict_begun != c->evict_ended
		|| evictions != c->evict_begun || c->fills - evictions != census[CXD_CACHED] || c->resident != census[CXD_CACHED]
		|| census[CXD_LOADING] || census[CXD_EVICTING];
	printf("%s: %lu visits, %lu writes, %lu wrong, %lu pages differ, counts %s; %lu fills, %lu evictions (%lu dirty), %lu prefetched\n",
	       names[setup.mode], done, writes, wrong, differ, counts ? "contradict" : "agree", c->fills, evictions,
	       c->dirty_foreground + c->dirty_background, c->prefetch_issued);
	struct cxd_config quiet = setup.core;
	quiet.prefetch_pages = 0;
	cxd_reconfigure(device, &quiet, error);
	int bad = one_fill_each();
	printf("%s: %d storms of %d threads on one page, %d without exactly one fill\n", names[setup.mode], STORMS, THREADS, bad);
	void *base = cxd_base(device);
	int failed = cxd_close(device, error);
	if (failed)
		fprintf(stderr, "storm: %s\n", error);
	cxd_forget(base, PAGES);
	return wrong || differ || counts || bad || failed;
}
