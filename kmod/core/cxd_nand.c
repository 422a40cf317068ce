// SPDX-License-Identifier: MIT
/*
 * NAND dies and channels: time in, time out. Every operation is booked when it is issued, in order of issue. A channel
 * remembers the busy intervals still ahead, so that a transfer may use a gap before one booked earlier but not due yet;
 * it never delays an earlier booking. All under the core's lock.
 */
#include "cxd_internal.h"

static void remove_busy(struct cxd_channel *channel, cxd_u32 at, cxd_u32 n)
{
	cxd_u32 i;
	channel->n -= n;
	for (i = at; i < channel->n; i++)
		channel->busy[i] = channel->busy[i + n];
}

/* Book one transfer at the first gap at or after `ready`; its begin. */
static cxd_u64 book(struct cxd_core *core, cxd_u32 number, cxd_u64 now, cxd_u64 ready)
{
	cxd_u64 length = core->config.transfer_ns, begin = ready;
	struct cxd_channel *channel = &core->channels[number];
	struct cxd_busy *busy = channel->busy;
	cxd_u32 past = 0, at = 0, i;
	int touches_before, touches_after;
	if (core->config.channel_model != CXD_CHANNEL_EVENT || !length)
		return ready;
	while (past < channel->n && busy[past].end <= now)
		past++;
	if (past)
		remove_busy(channel, 0, past);
	for (; at < channel->n && begin + length > busy[at].begin; at++)
		if (busy[at].end > begin)
			begin = busy[at].end;
	touches_before = at && busy[at - 1].end == begin;
	touches_after = at < channel->n && busy[at].begin == begin + length;
	if (touches_before && touches_after) {
		busy[at - 1].end = busy[at].end;
		remove_busy(channel, at, 1);
	} else if (touches_before) {
		busy[at - 1].end = begin + length;
	} else if (touches_after) {
		busy[at].begin = begin;
	} else if (channel->n == CXD_CHANNEL_SLOTS) {
		struct cxd_busy *last = &busy[channel->n - 1];
		begin = ready > last->end ? ready : last->end;
		last->end = begin + length;
	} else {
		for (i = channel->n++; i > at; i--)
			busy[i] = busy[i - 1];
		busy[at].begin = begin;
		busy[at].end = begin + length;
	}
	return begin;
}

static cxd_u32 dies(const struct cxd_core *core) { return core->config.channels * core->config.ways; }

cxd_u64 cxd_nand_read(struct cxd_core *core, cxd_u32 page, cxd_u64 now, struct cxd_answer *answer)
{
	const struct cxd_config *config = &core->config;
	struct cxd_die *die = &core->dies[page % dies(core)];
	cxd_u64 sense = config->read_ns[page / dies(core) % config->read_types];
	cxd_u64 begin = die->free_at > now ? die->free_at : now;
	cxd_u64 transfer = book(core, page % dies(core) % config->channels, now, begin + sense);
	die->free_at = transfer + config->transfer_ns;
	cxd_add(&core->counters->nand_reads, 1);
	answer->queue_ns = begin - now + transfer - (begin + sense);
	answer->sense_ns = sense;
	answer->transfer_ns = config->transfer_ns;
	return die->free_at;
}

/* Each full block of programs is followed by an erase on its die. */
cxd_u64 cxd_nand_program(struct cxd_core *core, cxd_u32 thread, cxd_u32 page, cxd_u64 now)
{
	const struct cxd_config *config = &core->config;
	struct cxd_die *die = &core->dies[page % dies(core)];
	cxd_u64 begin = book(core, page % dies(core) % config->channels, now, die->free_at > now ? die->free_at : now);
	cxd_u64 end = begin + config->transfer_ns + config->program_ns[page / dies(core) % config->program_types];
	die->free_at = end;
	cxd_add(&core->counters->nand_programs, 1);
	cxd_emit(core, now, thread, page, CXD_EV_PROGRAM);
	if (++die->programs >= config->block_pages) {
		die->programs = 0;
		die->free_at = end + config->erase_ns;
		cxd_add(&core->counters->nand_erases, 1);
		cxd_emit(core, now, thread, page, CXD_EV_ERASE);
	}
	return end;
}
