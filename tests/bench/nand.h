/*
 * The dies and channels of loop.c, which includes this once it has named the arrays: cxdbench/model/nand.py in C.
 */
/* the first gap of a channel at or after `ready` */
static inline u64 book(struct run *r, u64 channel, u64 now, u64 ready)
{
	u64 length = r->cfg[C_TRANSFER_NS], dies = r->cfg[C_DIES];
	if (!length)
		return ready;
	u64 *count = r->nand + 2 * dies + channel;
	u64 *busy = r->nand + 2 * dies + r->cfg[C_CHANNELS] + channel * 2 * CHANNEL_SLOTS;
	u64 n = *count, past = 0, at = 0, begin = ready;
	while (past < n && busy[2 * past + 1] <= now)
		past++;
	if (past) {
		n -= past;
		memmove(busy, busy + 2 * past, 16 * n);
	}
	for (; at < n && begin + length > busy[2 * at]; at++)
		begin = max64(begin, busy[2 * at + 1]);
	u64 end = begin + length;
	int before = at > 0 && busy[2 * at - 1] == begin, after = at < n && busy[2 * at] == end;
	if (before && after) {
		busy[2 * at - 1] = busy[2 * at + 1];
		n--;
		memmove(busy + 2 * at, busy + 2 * at + 2, 16 * (n - at));
	} else if (before) {
		busy[2 * at - 1] = end;
	} else if (after) {
		busy[2 * at] = begin;
	} else if (n == CHANNEL_SLOTS) {
		begin = max64(ready, busy[2 * n - 1]);
		busy[2 * n - 1] = begin + length;
	} else {
		memmove(busy + 2 * at + 2, busy + 2 * at, 16 * (n - at));
		busy[2 * at] = begin;
		busy[2 * at + 1] = end;
		n++;
	}
	*count = n;
	return begin;
}

static inline u64 page_type(struct run *r, u64 page, u64 types)
{
	return types == 1 ? 0 : page / r->cfg[C_DIES] % types;
}

static u64 program(struct run *r, u64 page, u64 now)
{
	u64 die = remainder64(page, r->cfg[C_DIES]);
	u64 begin = book(r, remainder64(die, r->cfg[C_CHANNELS]), now, max64(r->nand[die], now));
	u64 end = begin + r->cfg[C_TRANSFER_NS] + r->times[16 + page_type(r, page, r->cfg[C_N_PROGRAM])];
	r->nand[die] = end;
	r->g[G_NAND_PROGRAMS]++;
	if (++r->nand[r->cfg[C_DIES] + die] == r->cfg[C_BLOCK_PAGES]) {
		r->nand[r->cfg[C_DIES] + die] = 0;
		r->nand[die] = end + r->cfg[C_ERASE_NS];
		r->g[G_NAND_ERASES]++;
	}
	return end;
}

static inline u64 read_step(struct run *r, u64 *row, u64 now)
{
	u64 page = row[T_PAGE], die = remainder64(page, r->cfg[C_DIES]);
	u64 sense = r->times[page_type(r, page, r->cfg[C_N_READ])];
	u64 begin = max64(r->nand[die], now), sensed = begin + sense;
	u64 transfer = book(r, remainder64(die, r->cfg[C_CHANNELS]), now, sensed), end = transfer + r->cfg[C_TRANSFER_NS];
	r->nand[die] = end;
	r->g[G_NAND_READS]++;
	r->g[G_CHARGED]++;
	row[T_QUEUE] += begin - now + transfer - sensed;
	row[T_SENSE] += sense;
	row[T_TRANSFER] += r->cfg[C_TRANSFER_NS];
	row[T_READ_NS] = end - now;
	row[T_PHASE] = P_READ_DONE;
	return end;
}
