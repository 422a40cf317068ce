/* SPDX-License-Identifier: MIT
 *
 * The measured workloads: the model's addresses in the model's order, each access a dependent load or a store, timed
 * by the cycle counter.
 */
#include "internal.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#define ALWAYS (1ull << 32)
#define TRACK_NS 16
enum { STAGE_EXIT, STAGE_LOCK, STAGE_REFAULT, STAGE_REENTRY, STAGE_VICTIM, STAGE_FTL, STAGE_QUEUE, STAGE_SENSE,
       STAGE_TRANSFER, STAGE_INSTALL };

struct runner {
	pthread_t thread;
	struct cxd_device *device;
	char *base;
	struct cxd_phase *phase;
	struct cxd_stream *stream;
	struct seen *seen;
	_Atomic uint32_t *go; /* a futex: 0 wait, 1 run, 2 go home */
	int leads;
};

static inline uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15ull;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
	return (z ^ (z >> 31)) >> 32;
}

/* The bins of cxdbench/bins.py. */
static inline uint64_t bin_of(uint64_t v)
{
	if (v < 128)
		return v;
	if (v >= 1ull << 40)
		v = (1ull << 40) - 1;
	int shift = 56 - __builtin_clzll(v);
	return ((uint64_t)shift << 7) + (v >> shift);
}

/* The next access, as the model makes it; its place in the page goes round the page's nodes. */
static inline char *next(struct runner *r, int *write)
{
	struct cxd_phase *p = r->phase;
	struct cxd_stream *s = r->stream;
	uint64_t page, position = s->position, by_trace = 0;
	s->position = position + 1 < s->length ? position + 1 : 0;
	if (p->kind == CXD_STREAM_ARRAY) {
		uint32_t entry = p->entries[s->first + position];
		page = entry & 0x7FFFFFFFu;
		by_trace = entry >> 31;
	} else if (p->kind == CXD_STREAM_SEQUENTIAL) {
		page = s->first + (position >> p->shift);
	} else {
		page = (draw(&s->rng_address) * s->length) >> 32;
		if (p->kind == CXD_STREAM_ZIPF && draw(&s->rng_address) >= p->zipf_keep[page])
			page = p->zipf_alias[page];
		page += s->first;
	}
	uint64_t below = p->write_below;
	*write = (int)by_trace | (below >= ALWAYS || (below && draw(&s->rng_write) < below));
	return r->base + page * CXD_PAGE + (position * p->node_bytes & (CXD_PAGE - 1));
}

static void count_apart(uint64_t (*rows)[CXD_N_BINS], uint64_t value, uint64_t base)
{
	if (value >= base)
		rows[1][bin_of(value - base)]++;
	else
		rows[0][bin_of(base - value)]++;
}

static uint64_t between(uint64_t value, uint64_t low, uint64_t high) { return value < low ? low : value > high ? high : value; }

/* Where the time of an access that faulted went: parts that add up to it, since each is a step between two stamps. */
static void split(struct cxd_stream *s, const struct seen *seen, uint64_t began, uint64_t ended, int miss)
{
	uint64_t b = bin_of(ended - began);
	uint64_t entered = between(seen->entered, began, ended);
	if (!miss) {
		uint64_t left = between(seen->left, entered, ended);
		s->stage[STAGE_EXIT][b] += entered - began;
		s->stage[STAGE_QUEUE][b] += left - entered;
		s->stage[STAGE_INSTALL][b] += ended - left;
		return;
	}
	uint64_t claimed = between(seen->claimed, entered, ended), issued = between(seen->issued, claimed, ended);
	uint64_t mapped = between(seen->mapped, issued, ended), waited = mapped - issued;
	uint64_t transfer = seen->transfer_ns < waited ? seen->transfer_ns : waited;
	uint64_t queue = seen->queue_ns < waited - transfer ? seen->queue_ns : waited - transfer;
	s->stage[STAGE_EXIT][b] += entered - began + (seen->waits ? 0 : claimed - entered);
	s->stage[STAGE_QUEUE][b] += queue + (seen->waits ? claimed - entered : 0);
	s->stage[STAGE_VICTIM][b] += issued - claimed;
	s->stage[STAGE_TRANSFER][b] += transfer;
	s->stage[STAGE_SENSE][b] += waited - transfer - queue;
	s->stage[STAGE_INSTALL][b] += ended - mapped;
}

static void record(struct runner *r, uint64_t began, uint64_t ended, unsigned window)
{
	struct cxd_stream *s = r->stream;
	struct seen *seen = r->seen;
	uint64_t took = ended - began;
	int outcome = seen->claims ? 1 : seen->waits ? 2 : 0;
	s->count[outcome]++;
	s->window[window][outcome]++;
	s->sum_ns[outcome] += took;
	if (took < s->min_ns[outcome])
		s->min_ns[outcome] = took;
	if (took > s->max_ns[outcome])
		s->max_ns[outcome] = took;
	if (seen->claims) {
		s->charged += seen->charged_claims;
		s->refills += seen->claims - 1;
		s->refills_charged += seen->charged_claims - seen->charged;
	}
	if (!s->latency)
		return;
	s->latency[outcome][bin_of(took)]++;
	if (!outcome)
		return;
	split(s, seen, began, ended, outcome == 1);
	if (outcome == 1 && seen->charged) {
		count_apart(s->excess, took, seen->sense_ns + seen->transfer_ns);
		count_apart(s->residual, took, seen->modelled_ns);
	}
}

/* What a fault costs moves with the machine's clock and its other guests. A thread that knows when its accesses began
 * and ended follows it: each miss moves the estimates a step towards their medians. One that came too late to wait
 * says nothing about the way out. */
static void track(struct seen *seen, uint64_t began, uint64_t ended)
{
	if (!seen->tracks || seen->claims != 1 || seen->waits)
		return;
	if (seen->entered - began > seen->entry_ns)
		seen->entry_ns += TRACK_NS;
	else if (seen->entry_ns >= TRACK_NS)
		seen->entry_ns -= TRACK_NS;
	if (seen->late)
		return;
	if (ended - began > seen->due_ns)
		seen->exit_ns += TRACK_NS;
	else if (seen->exit_ns >= TRACK_NS)
		seen->exit_ns -= TRACK_NS;
}

static void note_window(struct runner *r, unsigned window)
{
	if (!r->device)
		return;
	const struct cxd_counters *c = cxd_counters(r->device->core);
	r->phase->evictions[window] = cxd_load(&c->evict_begun);
	r->phase->resident[window] = cxd_load(&c->resident);
}

static void walk(struct runner *r)
{
	struct cxd_phase *p = r->phase;
	struct cxd_stream *s = r->stream;
	uint64_t value = 0, zero = 0, started = now_ns();
	unsigned window = 0;
	uint64_t edge = (s->quota + CXD_WINDOWS - 1) / CXD_WINDOWS;
	__asm__ volatile("" : "+r"(zero)); /* nobody knows that it is 0, so each load needs the one before */
	for (uint64_t i = 0; i < s->quota; i++) {
		int write;
		char *at = next(r, &write) + (value & zero);
		memset(r->seen, 0, SEEN_CLEARED);
		atomic_fetch_add_explicit(&r->seen->turn, 1, memory_order_release);
		uint64_t before = cycles_fenced();
		if (write)
			*(volatile uint64_t *)at = i;
		else
			value = *(volatile uint64_t *)at;
		uint64_t after = cycles_fenced();
		uint64_t began = ns_at(before), ended = ns_at(after);
		record(r, began, ended, window);
		track(r->seen, began, ended);
		while (i + 1 == edge && window < CXD_WINDOWS) {
			if (r->leads)
				note_window(r, window);
			window++;
			edge = ((window + 1) * s->quota + CXD_WINDOWS - 1) / CXD_WINDOWS;
		}
		if (r->leads && !(i & 255))
			p->control[0] = (long long)((i + 1) * p->threads);
		if (p->control[1] || (r->device && r->device->fault))
			break;
		if (p->think_ns) {
			uint64_t until = now_ns() + p->think_ns;
			while (now_ns() < until && !p->control[1])
				pause_cpu();
		}
	}
	s->run_ns = now_ns() - started;
}

static void *run(void *argument)
{
	struct runner *r = argument;
	sigset_t faults;
	cpu_set_t one;
	CPU_ZERO(&one);
	if (r->stream->cpu < CPU_SETSIZE) {
		CPU_SET(r->stream->cpu, &one);
		pthread_setaffinity_np(pthread_self(), sizeof(one), &one); /* a cpu that has gone: unpinned */
	}
	sigemptyset(&faults);
	sigaddset(&faults, SIGBUS);
	sigaddset(&faults, SIGSEGV);
	pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
	r->seen = &seen_here;
	r->seen->tracks = r->device && r->device->compensate && r->phase->threads <= r->device->cores;
	if (r->seen->tracks) {
		r->seen->entry_ns = r->device->entry_ns;
		r->seen->exit_ns = r->device->exit_ns;
	}
	int served = r->device && r->device->mode == CXD_MODE_THREAD;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	if (served)
		server_register(tid, r->seen);
	while (!*r->go)
		futex(r->go, FUTEX_WAIT, 0, 0);
	if (*r->go == 1)
		walk(r);
	if (served)
		server_register(tid, NULL);
	return NULL;
}

int cxd_run(struct cxd_device *device, void *base, struct cxd_phase *phase, char *error)
{
	_Atomic uint32_t go = 0;
	int failed = 0;
	struct runner *runners = calloc(phase->threads, sizeof(*runners));
	clock_start();
	if (!runners) {
		snprintf(error, CXD_ERROR_BYTES, "out of memory");
		return ENOMEM;
	}
	uint32_t started = 0;
	for (; started < phase->threads; started++) {
		struct runner *r = &runners[started];
		struct cxd_stream *s = &phase->streams[started];
		*r = (struct runner){.device = device, .base = device ? device->base : base, .phase = phase, .stream = s,
			.go = &go, .leads = started == 0};
		for (int outcome = 0; outcome < 3; outcome++) {
			s->count[outcome] = s->sum_ns[outcome] = s->max_ns[outcome] = 0;
			s->min_ns[outcome] = ~0ull;
		}
		s->charged = s->refills = s->refills_charged = s->run_ns = 0;
		memset(s->window, 0, sizeof(s->window));
		int refused = pthread_create(&r->thread, NULL, run, r);
		if (refused) {
			snprintf(error, CXD_ERROR_BYTES, "thread %u cannot be started (%s): raise `ulimit -u`", started, strerror(refused));
			failed = refused;
			break;
		}
	}
	if (device) {
		device->crowded = phase->threads > device->cores;
		device->control = phase->control;
	}
	go = failed ? 2 : 1;
	futex(&go, FUTEX_WAKE, 1 << 30, 0);
	for (uint32_t i = 0; i < started; i++)
		pthread_join(runners[i].thread, NULL);
	if (device) {
		device->crowded = 0;
		device->control = NULL;
	}
	free(runners);
	return failed;
}
