/*
 * The model's loop in C, for the price of Numba: the same algorithm over the same arrays (cxdbench/model/layout.py,
 * whose names arrive as macros in layout.h), for the plain settings alone: FIFO, the ideal path, event channels, no
 * background work, no log. What it writes must equal what Numba writes, cell for cell, before it is timed.
 */
#include <stdint.h>
#include <string.h>
#include "layout.h"

typedef uint64_t u64;
typedef uint32_t u32;

struct run {
	const u64 *cfg;
	u64 *g, *th, *nand, *order, *hist, *stage, *window;
	u32 *word, *queue;
	const u64 *times;
	const u32 *entries;
	int64_t *ctl;
	u64 windows; /* none: an untimed phase, which records nothing */
};

#define MASK (MAX_THREADS - 1ull)
#define NO_PAGE (~0ull)
#define ANY_FRAME (~0ull - 1)
#define NEVER (1ull << 63)
#define GOLD 0x9E3779B97F4A7C15ull

static inline u64 max64(u64 a, u64 b) { return a > b ? a : b; }
static inline u64 min64(u64 a, u64 b) { return a < b ? a : b; }

static inline u64 remainder64(u64 value, u64 divisor)
{
	return divisor & (divisor - 1) ? value % divisor : value & (divisor - 1);
}

#include "nand.h"

static inline u64 bin_of(u64 v)
{
	if (v < 128)
		return v;
	if (v > (1ull << 40) - 1)
		v = (1ull << 40) - 1;
	u64 shift = 56 - __builtin_clzll(v);
	return (shift << 7) + (v >> shift);
}

static inline u64 draw(u64 *row, int stream)
{
	u64 z = row[stream] += GOLD;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return (z ^ z >> 31) >> 32;
}

static inline void put(struct run *r, u64 now, u64 t)
{
	u64 key = now << THREAD_BITS | t, head = r->g[G_ORDER_HEAD], n = r->g[G_ORDER_N], i = head + n;
	while (i > head && r->order[(i - 1) & MASK] > key) {
		r->order[i & MASK] = r->order[(i - 1) & MASK];
		i--;
	}
	r->order[i & MASK] = key;
	r->g[G_ORDER_N] = n + 1;
}

static inline void wake(struct run *r, u64 page, u64 now)
{
	if (!r->g[G_ASLEEP])
		return;
	for (u64 t = 0; t < r->cfg[C_THREADS]; t++) {
		u64 *row = r->th + t * TH_CELLS;
		if (row[T_SLEEPS_ON] == page) {
			row[T_SLEEPS_ON] = NO_PAGE;
			row[T_QUEUE] += now - row[T_SINCE];
			r->g[G_ASLEEP]--;
			put(r, now, t);
		}
	}
}

static inline void frame_may_be_had(struct run *r, u64 now)
{
	if (!r->g[G_STARVED])
		return;
	r->g[G_STARVED] = 0;
	for (u64 t = 0; t < r->cfg[C_THREADS]; t++) {
		u64 *row = r->th + t * TH_CELLS;
		if (row[T_SLEEPS_ON] == ANY_FRAME) {
			row[T_SLEEPS_ON] = NO_PAGE;
			row[T_VICTIM_NS] += now - row[T_SINCE];
			put(r, now, t);
		}
	}
}

static inline void spread(struct run *r, u64 row, u64 value, u64 base)
{
	if (value >= base)
		r->hist[(row + 1) * N_BINS + bin_of(value - base)]++;
	else
		r->hist[row * N_BINS + bin_of(base - value)]++;
}

static inline u64 install_step(struct run *r, u64 *row, u64 now)
{
	u64 *g = r->g, page = row[T_PAGE], mask = r->cfg[C_RING_MASK];
	if (row[T_WRITE])
		r->word[page] |= DIRTY | WRITTEN;
	r->word[page] = (r->word[page] & (FLAGS ^ STATE)) | CACHED;
	g[G_FILLS]++;
	g[G_CACHED]++;
	r->queue[g[G_Q_TAIL]++ & mask] = page;
	wake(r, page, now);
	frame_may_be_had(r, now);
	u64 latency = now - row[T_START], b = bin_of(latency);
	if (r->windows) {
		r->hist[MISS_ROW * N_BINS + b]++;
		for (int i = 0; i < N_STAGES; i++)
			r->stage[b * N_STAGES + i] += row[FIRST_STAGE + i];
		spread(r, EXCESS_ROW, latency, r->times[page_type(r, page, r->cfg[C_N_READ])] + r->cfg[C_TRANSFER_NS]);
		spread(r, RESIDUAL_ROW, latency, row[T_READ_NS]);
	}
	memset(row + FIRST_STAGE, 0, 8 * N_STAGES);
	g[G_MISSES]++;
	g[G_MISS_SUM] += latency;
	g[G_MISS_MIN] = min64(g[G_MISS_MIN], latency);
	g[G_MISS_MAX] = max64(g[G_MISS_MAX], latency);
	row[T_MISSES]++;
	row[T_SUM_NS] += latency;
	row[T_LEFT]--;
	g[G_DONE]++;
	row[T_PHASE] = P_ACCESS;
	return now;
}

static inline u64 frame_step(struct run *r, u64 *row, u64 now)
{
	u64 *g = r->g;
	if (g[G_FREE]) {
		g[G_FREE]--;
	} else if (g[G_CACHED]) {
		g[G_CACHED]--;
		u64 victim = r->queue[g[G_Q_HEAD]++ & r->cfg[C_RING_MASK]];
		u32 w = r->word[victim];
		g[G_EVICT_BEGUN]++;
		if (w & DIRTY) {
			g[G_DIRTY_FORE]++;
			row[T_VICTIM] = victim;
		} else {
			g[G_CLEAN_FORE]++;
			g[G_EVICT_ENDED]++;
		}
		r->word[victim] = (w & (FLAGS ^ STATE ^ DIRTY ^ PREFETCHED ^ REFERENCED)) | (w & DIRTY ? EVICTING : NOT_CACHED);
	} else {
		row[T_SLEEPS_ON] = ANY_FRAME;
		row[T_SINCE] = now;
		g[G_STARVED]++;
		return NEVER;
	}
	row[T_PHASE] = P_ISSUE;
	return now;
}

static inline u64 step(struct run *r, u64 *row, u64 due)
{
	u64 now = due;
	while (due == now) {
		u64 phase = row[T_PHASE];
		if (phase == P_FRAME) {
			due = frame_step(r, row, now);
		} else if (phase == P_ISSUE && row[T_VICTIM] != NO_PAGE) {
			due = program(r, row[T_VICTIM], now);
			row[T_VICTIM_NS] += due - now;
			row[T_PHASE] = P_VICTIM_DONE;
		} else if (phase == P_READ_DONE) {
			return install_step(r, row, now);
		} else {
			if (phase == P_VICTIM_DONE) {
				r->g[G_EVICT_ENDED]++;
				r->word[row[T_VICTIM]] = (r->word[row[T_VICTIM]] & (FLAGS ^ STATE)) | NOT_CACHED;
				wake(r, row[T_VICTIM], now);
			}
			due = read_step(r, row, now);
		}
	}
	return due;
}

static u64 checkpoint(struct run *r)
{
	u64 done = r->g[G_DONE], total = r->g[G_TOTAL], *g = r->g;
	u64 upcoming = (done / CANCEL_EVERY + 1) * CANCEL_EVERY;
	r->ctl[0] = done;
	for (u64 w = 0; w < r->windows; w++) {
		u64 edge = ((w + 1) * total + WINDOWS - 1) / WINDOWS, *cell = r->window + 5 * w;
		if (edge > done)
			return min64(upcoming, edge);
		if (cell[4] == NEVER) {
			cell[0] = 0;
			for (u64 t = 0; t < r->cfg[C_THREADS]; t++)
				cell[0] += r->th[t * TH_CELLS + T_HITS];
			cell[1] = g[G_MISSES];
			cell[2] = g[G_WAITS];
			cell[3] = g[G_CLEAN_FORE] + g[G_DIRTY_FORE] + g[G_CLEAN_BACK] + g[G_DIRTY_BACK];
			cell[4] = g[G_CACHED];
		}
	}
	return upcoming;
}

static inline u64 finish_wait(struct run *r, u64 *row, u64 now)
{
	u64 latency = now - row[T_START] + r->cfg[C_HIT_NS], b = bin_of(latency), *g = r->g;
	if (r->windows) {
		r->hist[WAIT_ROW * N_BINS + b]++;
		r->stage[b * N_STAGES + T_QUEUE - FIRST_STAGE] += row[T_QUEUE];
		r->stage[b * N_STAGES + T_INSTALL - FIRST_STAGE] += r->cfg[C_HIT_NS];
	}
	row[T_QUEUE] = 0;
	row[T_WAITED] = 0;
	g[G_WAITS]++;
	g[G_WAIT_SUM] += latency;
	g[G_WAIT_MIN] = min64(g[G_WAIT_MIN], latency);
	g[G_WAIT_MAX] = max64(g[G_WAIT_MAX], latency);
	row[T_WAITS]++;
	row[T_SUM_NS] += latency;
	row[T_LEFT]--;
	g[G_DONE]++;
	return row[T_START] + latency;
}

static inline void next_address(struct run *r, u64 *row, u64 *to_page, u64 *to_write)
{
	u64 stream = r->cfg[C_STREAM], write = 0, page;
	if (stream == STREAM_ARRAY || stream == STREAM_SEQUENTIAL) {
		u64 position = row[T_POS], following = position + 1;
		row[T_POS] = following < row[T_LENGTH] ? following : 0;
		if (stream == STREAM_SEQUENTIAL) {
			page = row[T_FIRST] + (position >> r->cfg[C_SHIFT]);
		} else {
			u64 entry = r->entries[row[T_FIRST] + position];
			__builtin_prefetch(r->word + (r->entries[row[T_FIRST] + row[T_POS]] & 0x7FFFFFFF));
			page = entry & 0x7FFFFFFF;
			write = entry >> 31;
		}
	} else {
		page = row[T_FIRST] + (row[T_LENGTH] * draw(row, T_RNG_ADDRESS) >> 32);
	}
	u64 below = r->cfg[C_WRITE_BELOW];
	if (below && (below >= 1ull << 32 || draw(row, T_RNG_WRITE) < below))
		write = 1;
	*to_page = page;
	*to_write = write;
}

static inline void plain_hits(struct run *r, u64 stop, u64 limit)
{
	u64 *g = r->g, head = g[G_ORDER_HEAD], n = g[G_ORDER_N], done = g[G_DONE];
	u64 between = r->cfg[C_HIT_NS] + r->cfg[C_THINK_NS];
	while (n) {
		u64 key = r->order[head & MASK], *row = r->th + (key & MASK) * TH_CELLS, left = row[T_LEFT] - 1, page, write;
		if (key >= limit || !row[T_FRESH] || !left || done + 1 == stop)
			break;
		next_address(r, row, &page, &write);
		u32 w = r->word[page];
		if ((w & (STATE | PREFETCHED)) != CACHED) {
			row[T_PAGE] = page;
			row[T_WRITE] = write;
			row[T_START] = key >> THREAD_BITS;
			row[T_FRESH] = 0;
			break;
		}
		done++;
		if (write)
			r->word[page] = w | DIRTY | WRITTEN;
		row[T_HITS]++;
		row[T_LEFT] = left;
		key += between << THREAD_BITS;
		u64 i = ++head + n - 1;
		for (; i > head && r->order[(i - 1) & MASK] > key; i--)
			r->order[i & MASK] = r->order[(i - 1) & MASK];
		r->order[i & MASK] = key;
	}
	g[G_ORDER_HEAD] = head;
	g[G_DONE] = done;
}

void run_phase(struct run *arg)
{
	struct run copy = *arg, *r = &copy;
	u64 *g = r->g, start = g[G_NOW], latest = start, think = r->cfg[C_THINK_NS];
	for (u64 t = 0; t < r->cfg[C_THREADS]; t++) {
		u64 *row = r->th + t * TH_CELLS;
		row[T_END_NS] = start;
		if (row[T_LEFT]) {
			row[T_FRESH] = 1;
			g[G_LIVE]++;
			put(r, start, t);
		}
	}
	u64 stop = checkpoint(r);
	while (g[G_LIVE]) {
		plain_hits(r, stop, NEVER);
		u64 head = g[G_ORDER_HEAD], key = r->order[head & MASK], t = key & MASK, now = key >> THREAD_BITS, due = now;
		u64 *row = r->th + t * TH_CELLS;
		g[G_ORDER_HEAD] = head + 1;
		g[G_ORDER_N]--;
		if (row[T_PHASE] == P_ACCESS) {
			if (row[T_FRESH]) {
				next_address(r, row, &row[T_PAGE], &row[T_WRITE]);
				row[T_START] = now;
				row[T_FRESH] = 0;
			}
			u64 page = row[T_PAGE], write = row[T_WRITE];
			u32 w = r->word[page], state = w & STATE;
			if (state == CACHED) {
				if (row[T_WAITED]) {
					due = finish_wait(r, row, now);
				} else {
					due = now + r->cfg[C_HIT_NS];
					row[T_HITS]++;
					row[T_LEFT]--;
					g[G_DONE]++;
				}
				if (write)
					r->word[page] = w | DIRTY | WRITTEN;
			} else {
				row[T_AGAIN] = NO_PAGE;
				if (state != NOT_CACHED) {
					row[T_WAITED] = 1;
					row[T_SLEEPS_ON] = page;
					row[T_SINCE] = now;
					g[G_ASLEEP]++;
					continue;
				}
				row[T_WAITED] = 0;
				r->word[page] = (w & WRITTEN) | LOADING;
				g[G_CLAIMS]++;
				row[T_VICTIM] = NO_PAGE;
				row[T_PHASE] = P_FRAME;
			}
		}
		if (row[T_PHASE] != P_ACCESS)
			due = step(r, row, due);
		if (row[T_PHASE] != P_ACCESS) {
			if (due != NEVER)
				put(r, due, t);
			continue;
		}
		row[T_FRESH] = 1;
		latest = max64(latest, due);
		if (g[G_DONE] == stop) {
			stop = checkpoint(r);
			if (r->ctl[1])
				return;
		}
		if (row[T_LEFT]) {
			put(r, due + think, t);
		} else {
			row[T_END_NS] = due;
			g[G_LIVE]--;
		}
	}
	g[G_NOW] = latest;
}
