// SPDX-License-Identifier: MIT
/*
 * Eviction policies over one array: who joins, who is touched, who gives up its frame. All under the core's lock.
 *
 * fifo, clock: a ring of pages. lifo: a ring with the newest `protect` pages, and a stack of the older ones behind it.
 * lru: a ring of links over frames, whose number a page keeps in its word; queue = [next | prev | page | free frames].
 */
#include "cxd_internal.h"

static cxd_u32 ring_size(const struct cxd_config *config)
{
	cxd_u32 most = config->cache_pages, size = 1;
	if (config->policy == CXD_LIFO && config->protect < most)
		most = config->protect;
	while (size <= most)
		size <<= 1;
	return size;
}

cxd_u64 cxd_queue_cells(const struct cxd_config *config)
{
	if (config->policy == CXD_LRU)
		return 4ull * (config->cache_pages + 1ull);
	return ring_size(config) + (config->policy == CXD_LIFO ? config->cache_pages : 0);
}

void cxd_queue_start(struct cxd_core *core)
{
	cxd_u32 cache = core->config.cache_pages, i;
	core->ring_mask = ring_size(&core->config) - 1;
	core->stack_at = core->ring_mask + 1;
	if (core->config.policy != CXD_LRU)
		return;
	for (i = 0; i < cache; i++)
		core->queue[3 * (cache + 1) + i] = cache - i;
	core->frames_free = cache;
}

static void link_behind(cxd_u32 *queue, cxd_u32 stride, cxd_u32 frame, cxd_u32 after)
{
	cxd_u32 successor = queue[after];
	queue[frame] = successor;
	queue[stride + frame] = after;
	queue[after] = frame;
	queue[stride + successor] = frame;
}

static void unlink_frame(cxd_u32 *queue, cxd_u32 stride, cxd_u32 frame)
{
	cxd_u32 successor = queue[frame], before = queue[stride + frame];
	queue[before] = successor;
	queue[stride + successor] = before;
}

static void onto_stack(struct cxd_core *core, cxd_u32 page)
{
	core->queue[core->stack_at + core->stacked++] = page;
}

void cxd_join(struct cxd_core *core, cxd_u32 page)
{
	const struct cxd_config *config = &core->config;
	cxd_u32 *queue = core->queue;
	core->resident++;
	if (config->policy == CXD_LRU) {
		cxd_u32 stride = config->cache_pages + 1;
		cxd_u32 frame = queue[3 * stride + --core->frames_free];
		cxd_swap(&core->words[page], ~CXD_FLAGS, frame << CXD_FRAME_SHIFT);
		queue[2 * stride + frame] = page;
		link_behind(queue, stride, frame, 0);
		return;
	}
	if (config->policy == CXD_LIFO) {
		if (!config->protect) {
			onto_stack(core, page);
			return;
		}
		if (core->tail - core->head == config->protect)
			onto_stack(core, queue[core->head++ & core->ring_mask]);
	}
	queue[core->tail++ & core->ring_mask] = page;
}

cxd_u32 cxd_touch_of(const struct cxd_config *config)
{
	if (!config->sees_hits)
		return CXD_T_NOTHING;
	return config->policy == CXD_CLOCK ? CXD_T_MARK : config->policy == CXD_LRU ? CXD_T_MOVE : CXD_T_NOTHING;
}

void cxd_move(struct cxd_core *core, cxd_u32 page)
{
	cxd_u32 word, stride = core->config.cache_pages + 1;
	cxd_lock(&core->lock);
	word = cxd_load(&core->words[page]);
	if ((word & CXD_STATE) == CXD_CACHED) { /* else it was evicted on the way to the lock */
		unlink_frame(core->queue, stride, word >> CXD_FRAME_SHIFT);
		link_behind(core->queue, stride, word >> CXD_FRAME_SHIFT, 0);
	}
	cxd_unlock(&core->lock);
}

cxd_u32 cxd_leave(struct cxd_core *core)
{
	cxd_u32 *queue = core->queue, page, stride, frame, spare = core->resident--;
	if (core->config.policy == CXD_LRU) {
		stride = core->config.cache_pages + 1;
		frame = queue[stride];
		unlink_frame(queue, stride, frame);
		queue[3 * stride + core->frames_free++] = frame;
		return queue[2 * stride + frame];
	}
	if (core->config.policy == CXD_LIFO && core->stacked)
		return queue[core->stack_at + --core->stacked];
	page = queue[core->head++ & core->ring_mask];
	if (core->config.policy == CXD_CLOCK) {
		/* once around at most: other threads may mark pages as fast as they are cleared here */
		for (; spare && (cxd_load(&core->words[page]) & CXD_REFERENCED); spare--) {
			cxd_swap(&core->words[page], CXD_REFERENCED, 0);
			queue[core->tail++ & core->ring_mask] = page;
			page = queue[core->head++ & core->ring_mask];
		}
	}
	return page;
}
