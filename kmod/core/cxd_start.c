// SPDX-License-Identifier: MIT
/*
 * A device's settings, checked field by field, and its memory, laid out.
 */
#include "cxd_internal.h"

/* What a field may be: below `most`, and how far it lies in the struct. A time is below 2^40 ns, some 18 minutes. */
struct range { const char *name; cxd_u32 offset, bytes; cxd_u64 least, most; int stays; };

#define FIELD(field, least, most, stays) \
	{#field, __builtin_offsetof(struct cxd_config, field), sizeof(((struct cxd_config *)0)->field), least, most, stays}
#define MOST_NS ((1ull << 40) - 1)

static const struct range ranges[] = {
	FIELD(cache_pages, 1, (1u << 24) - 1, 1),
	FIELD(capacity_pages, 1, (1u << 31) - 1, 1),
	FIELD(policy, CXD_FIFO, CXD_LRU, 1),
	FIELD(protect, 0, 1u << 24, 1),
	FIELD(sees_hits, 0, 1, 1),
	FIELD(asks, 0, 1, 1),
	FIELD(unwritten, CXD_UNWRITTEN_CHARGE, CXD_UNWRITTEN_PROGRAM, 0),
	FIELD(writeback_free, 0, 1, 0),
	FIELD(write_miss_none, 0, 1, 0),
	FIELD(prefetch_free, 0, 1, 0),
	FIELD(prefetch_pages, 0, 256, 0),
	FIELD(prefetch_queue, 1, 1u << 16, 1),
	FIELD(prefetch_delay_ns, 0, MOST_NS, 0),
	FIELD(drain_pages, 0, 1u << 24, 0),
	FIELD(drain_high, 0, 1u << 24, 0),
	FIELD(drain_stop, 0, 1u << 24, 0),
	FIELD(drain_period_ns, 1000, MOST_NS, 0),
	FIELD(channels, 1, CXD_MAX_CHANNELS, 1),
	FIELD(ways, 1, 64, 1),
	FIELD(channel_model, CXD_CHANNEL_EVENT, CXD_CHANNEL_NONE, 0),
	FIELD(block_pages, 1, 1u << 20, 0),
	FIELD(transfer_ns, 0, MOST_NS, 0),
	FIELD(erase_ns, 0, MOST_NS, 0),
	FIELD(read_types, 1, CXD_MAX_TYPES, 0),
	FIELD(program_types, 1, CXD_MAX_TYPES, 0),
};
enum { FIELDS = sizeof(ranges) / sizeof(ranges[0]), CAPACITY = 2, PROTECT = 4, READ_NS = FIELDS + 1, PROGRAM_NS };

static cxd_u64 value_of(const struct cxd_config *config, const struct range *range)
{
	const char *at = (const char *)config + range->offset;
	return range->bytes == 4 ? *(const cxd_u32 *)at : *(const cxd_u64 *)at;
}

int cxd_check(const struct cxd_config *config)
{
	cxd_u32 i;
	for (i = 0; i < FIELDS; i++) {
		cxd_u64 value = value_of(config, &ranges[i]);
		if (value < ranges[i].least || value > ranges[i].most)
			return (int)i + 1;
	}
	if (config->capacity_pages < config->cache_pages)
		return CAPACITY;
	if (config->policy == CXD_LIFO && config->protect >= config->cache_pages)
		return PROTECT;
	for (i = 0; i < config->read_types; i++)
		if (config->read_ns[i] > MOST_NS)
			return READ_NS;
	for (i = 0; i < config->program_types; i++)
		if (config->program_ns[i] > MOST_NS)
			return PROGRAM_NS;
	return 0;
}

const char *cxd_field(int number)
{
	if (number >= 1 && number <= FIELDS)
		return ranges[number - 1].name;
	return number == READ_NS ? "read_ns" : number == PROGRAM_NS ? "program_ns" : "no field";
}

static cxd_u64 rounded(cxd_u64 bytes) { return (bytes + 63) & ~63ull; }

/* The parts of the memory in their order; with a core, its pointers are set. */
static cxd_u64 lay_out(const struct cxd_config *config, struct cxd_core *core)
{
	char *memory = (char *)core;
	cxd_u64 at = rounded(sizeof(struct cxd_core));
	if (core)
		core->queue = (cxd_u32 *)(memory + at);
	at += rounded(cxd_queue_cells(config) * sizeof(cxd_u32));
	if (core)
		core->dies = (struct cxd_die *)(memory + at);
	at += rounded((cxd_u64)config->channels * config->ways * sizeof(struct cxd_die));
	if (core)
		core->channels = (struct cxd_channel *)(memory + at);
	at += rounded(config->channels * sizeof(struct cxd_channel));
	if (core)
		core->heap = (struct cxd_due *)(memory + at);
	return at + rounded(cxd_heap_cells(config) * sizeof(struct cxd_due));
}

cxd_u64 cxd_memory(const struct cxd_config *config) { return lay_out(config, 0); }

struct cxd_core *cxd_start(const struct cxd_config *config, void *memory, cxd_u32 *words, struct cxd_counters *counters)
{
	struct cxd_core *core = memory;
	__builtin_memset(memory, 0, cxd_memory(config));
	__builtin_memset(counters, 0, sizeof(*counters));
	lay_out(config, core);
	core->config = *config;
	core->words = words;
	core->counters = counters;
	core->touch = cxd_touch_of(config);
	core->free = config->cache_pages;
	core->limit = config->capacity_pages;
	core->next = CXD_NEVER;
	cxd_lock_init(&core->lock);
	cxd_queue_start(core);
	return core;
}

void cxd_limit(struct cxd_core *core, cxd_u32 pages)
{
	cxd_lock(&core->lock);
	core->limit = pages < core->config.capacity_pages ? pages : core->config.capacity_pages;
	cxd_unlock(&core->lock);
}

int cxd_change(struct cxd_core *core, const struct cxd_config *config)
{
	int field = cxd_check(config);
	cxd_u32 i;
	for (i = 0; !field && i < FIELDS; i++)
		if (ranges[i].stays && value_of(config, &ranges[i]) != value_of(&core->config, &ranges[i]))
			field = (int)i + 1;
	if (field)
		return field;
	cxd_lock(&core->lock);
	/* field by field: those that stay are read without the lock */
	for (i = 0; i < FIELDS; i++)
		if (!ranges[i].stays)
			__builtin_memcpy((char *)&core->config + ranges[i].offset, (const char *)config + ranges[i].offset, ranges[i].bytes);
	__builtin_memcpy(core->config.read_ns, config->read_ns, sizeof(config->read_ns));
	__builtin_memcpy(core->config.program_ns, config->program_ns, sizeof(config->program_ns));
	cxd_unlock(&core->lock);
	return 0;
}

void cxd_zero_counters(struct cxd_core *core)
{
	struct cxd_counters *c = core->counters;
	cxd_u64 *counter = (cxd_u64 *)c, ended;
	cxd_u32 page, i;
	cxd_lock(&core->lock);
	for (i = 0; i < sizeof(*c) / sizeof(*counter); i++)
		if (&counter[i] != &c->resident && &counter[i] != &c->evict_begun && &counter[i] != &c->evict_ended)
			cxd_store(&counter[i], 0);
	ended = cxd_load(&c->evict_ended); /* evictions under way stay begun, so that their end can be waited for */
	cxd_add(&c->evict_begun, -ended);
	cxd_add(&c->evict_ended, -ended);
	for (page = 0; page < core->config.capacity_pages; page++)
		if (cxd_load(&core->words[page]) & CXD_PREFETCHED)
			cxd_swap(&core->words[page], CXD_PREFETCHED, 0);
	cxd_unlock(&core->lock);
}

void cxd_census(const struct cxd_core *core, cxd_u64 counts[5])
{
	cxd_u32 page;
	__builtin_memset(counts, 0, 5 * sizeof(*counts));
	for (page = 0; page < core->config.capacity_pages; page++) {
		cxd_u32 word = cxd_load(&core->words[page]);
		counts[word & CXD_STATE]++;
		counts[4] += (word & CXD_PREFETCHED) != 0;
	}
}
