/* SPDX-License-Identifier: MIT
 *
 * What this host does: which modes work, what a fault costs, how still a wait is.
 */
#include "internal.h"

#define PAGES 256
#define CACHE 128
#define LONG_NS 1000000

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int64_t median(int64_t *values, uint64_t n)
{
	qsort(values, n, sizeof(*values), by_size);
	return values[n / 2];
}

static int finish(struct cxd_device *device, char *error)
{
	void *base = device->base;
	int failed = cxd_close(device, error);
	cxd_forget(base, PAGES);
	return failed;
}

/* A small device of one thread's own, like `setup` in its NAND, on which a sequential walk never hits. */
static struct cxd_device *small(const struct cxd_setup *setup, char *error)
{
	struct cxd_setup own = *setup;
	own.core.cache_pages = CACHE;
	own.core.capacity_pages = PAGES;
	own.core.policy = CXD_FIFO;
	own.core.protect = own.core.prefetch_pages = own.core.drain_pages = 0;
	own.node = -1;
	/* what a fault costs no longer moves with a wait so long */
	for (int i = 0; i < CXD_MAX_TYPES; i++)
		if (own.core.read_ns[i] > LONG_NS)
			own.core.read_ns[i] = LONG_NS;
	if (own.core.transfer_ns > LONG_NS)
		own.core.transfer_ns = LONG_NS;
	struct cxd_device *device = cxd_open(&own, error);
	if (device && cxd_populate(device, 0, PAGES, error)) {
		char ignored[CXD_ERROR_BYTES];
		finish(device, ignored);
		device = NULL;
	}
	return device;
}

static uint64_t not_negative(int64_t value) { return value > 0 ? (uint64_t)value : 0; }

struct cost { int64_t over, entry, exit; }; /* observed less modelled; to the handler; and from its end on */

/* `n` misses one after another: the medians. */
static int misses(struct cxd_device *device, uint64_t n, struct cost *cost, int64_t *scratch)
{
	static const uint64_t skip = 2 * CACHE; /* until each miss evicts */
	struct seen *seen = device->mode == CXD_MODE_THREAD ? calloc(1, sizeof(*seen)) : &seen_here;
	uint64_t kept = 0;
	volatile long long hurried[2] = {0, 1};
	device->control = hurried; /* no waits until what is measured begins */
	if (device->mode == CXD_MODE_THREAD)
		server_register((uint32_t)gettid(), seen);
	for (uint64_t i = 0; i < skip + n; i++) {
		volatile uint64_t *at = (void *)(device->base + i % PAGES * CXD_PAGE);
		memset(seen, 0, sizeof(*seen));
		if (i == skip)
			device->control = NULL;
		uint64_t before = cycles_fenced();
		(void)*at;
		uint64_t after = cycles_fenced();
		uint64_t began = ns_at(before), ended = ns_at(after);
		if (i < skip || seen->claims != 1)
			continue;
		scratch[kept] = (int64_t)(ended - began - seen->modelled_ns);
		scratch[n + kept] = (int64_t)(seen->entered - began);
		scratch[2 * n + kept++] = (int64_t)(ended - seen->left);
	}
	if (device->mode == CXD_MODE_THREAD) {
		server_register((uint32_t)gettid(), NULL);
		free(seen);
	}
	if (!kept)
		return EIO;
	*cost = (struct cost){median(scratch, kept), median(scratch + n, kept), median(scratch + 2 * n, kept)};
	return 0;
}

int cxd_calibrate(const struct cxd_setup *setup, cxd_u64 rounds, struct cxd_calibration *found, char *error)
{
	char ignored[CXD_ERROR_BYTES];
	int64_t *scratch = calloc(3 * rounds, sizeof(*scratch));
	struct cxd_device *device = scratch ? small(setup, error) : NULL;
	struct cost raw, now;
	if (!device) {
		free(scratch);
		return ENOMEM;
	}
	memset(found, 0, sizeof(*found));
	device->compensate = 1;
	int failed = misses(device, rounds, &raw, scratch);
	if (!failed) {
		found->raw_p50_ns = not_negative(raw.over);
		found->entry_ns = not_negative(raw.entry);
		found->exit_ns = not_negative(raw.exit);
	}
	/* The cost moves a little with the wait that is left, so it is approached; but where half the waits have no
	 * time left, there is nothing to learn from how late they end. */
	for (int i = 0; !failed && i < 3; i++) {
		cxd_set_compensation(device, found->entry_ns, found->exit_ns);
		device->seen.late = 0;
		failed = misses(device, rounds, &now, scratch);
		if (failed || device->seen.late > rounds / 2)
			break;
		found->exit_ns = not_negative((int64_t)found->exit_ns + now.over);
	}
	found->map_ns = device->map_ns;
	if (failed)
		snprintf(error, CXD_ERROR_BYTES, "no miss was seen while measuring what one costs");
	if (finish(device, failed ? ignored : error))
		failed = EIO;
	free(scratch);
	return failed;
}

int cxd_probe(int mode, char *error)
{
	struct cxd_setup setup = {.mode = (cxd_u32)mode, .node = -1, .cores = 1, .core = {
		.channels = 1, .ways = 1, .block_pages = 256, .read_types = 1, .program_types = 1, .prefetch_queue = 1,
		.drain_period_ns = 1000000, .read_ns = {1000}, .program_ns = {1000}}};
	struct cxd_device *device = small(&setup, error);
	if (!device)
		return ENOTSUP;
	char *base = device->base;
	int wrong = 0;
	for (uint64_t page = 0; page < PAGES; page++) /* stores, so that both kinds of first access are tried */
		*(volatile uint64_t *)(base + page * CXD_PAGE) = page;
	for (uint64_t page = 0; page < PAGES; page++) {
		wrong |= *(volatile uint64_t *)(base + page * CXD_PAGE) != page;
		*(volatile uint64_t *)(base + page * CXD_PAGE + 8) = page;
	}
	const struct cxd_counters *c = cxd_counters(device->core);
	uint64_t dirty = c->dirty_foreground, all = c->evict_begun;
	wrong |= c->fills != 2 * PAGES || all != 2 * PAGES - CACHE || dirty != all;
	if (finish(device, error))
		wrong = 1;
	else if (wrong)
		snprintf(error, CXD_ERROR_BYTES, "faults are caught, but %llu of %llu evictions were seen as dirty", (unsigned long long)dirty, (unsigned long long)all);
	return wrong ? EIO : 0;
}

void cxd_noise(cxd_u64 wait_ns, cxd_u64 n, cxd_u64 *late_ns)
{
	clock_start();
	for (cxd_u64 i = 0; i < n; i++) {
		uint64_t until = now_ns() + wait_ns, now;
		while ((now = now_ns()) < until)
			pause_cpu();
		late_ns[i] = now - until;
	}
	qsort(late_ns, n, sizeof(*late_ns), by_size);
}
