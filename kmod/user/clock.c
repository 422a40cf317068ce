/* SPDX-License-Identifier: MIT
 *
 * Cycles into ns: the counter's frequency is measured once, against the kernel's raw clock.
 */
#include "internal.h"

#include <sched.h>
#include <time.h>

uint64_t clock_mult, clock_zero;

static uint64_t raw_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Both clocks read as near together as a few tries give: a read that was interrupted shows as a long one. */
static void read_both(uint64_t *count, uint64_t *ns)
{
	uint64_t best = ~0ull;
	for (int i = 0; i < 16; i++) {
		uint64_t a = cycles_fenced(), t = raw_ns(), b = cycles_fenced();
		if (b - a < best) {
			best = b - a;
			*count = a + (b - a) / 2;
			*ns = t;
		}
	}
}

static void measure(void)
{
	uint64_t c0, n0, c1, n1;
	read_both(&c0, &n0);
	do {
		sched_yield();
		read_both(&c1, &n1);
	} while (n1 - n0 < 30000000);
	clock_mult = (uint64_t)(((unsigned __int128)(n1 - n0) << 32) / (c1 - c0));
	clock_zero = c0;
}

void clock_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, measure);
}

cxd_u64 cxd_now(void)
{
	clock_start();
	return now_ns();
}

double cxd_cycles_per_ns(void)
{
	clock_start();
	return 4294967296.0 / (double)clock_mult;
}
