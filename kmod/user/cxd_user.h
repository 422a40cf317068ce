/* SPDX-License-Identifier: MIT
 *
 * libcxd.so: the device in user space. A page of the region that is not cached faults; the fault waits out the time
 * the core answers and maps the page; an eviction takes the mapping away. The bytes lie in a memfd throughout and
 * are never copied. This header is the contract with cxdbench/live/binding.py, held by cxd_abi().
 *
 * Times are ns of cxd_now(). Functions that can fail return 0, or fill `error` with one sentence.
 */
#ifndef CXD_USER_H
#define CXD_USER_H

#include "../core/cxd_core.h"

#define CXD_USER_ABI 2
#define CXD_PAGE 4096ul
#define CXD_ERROR_BYTES 256
#define CXD_N_BINS 4352
#define CXD_N_STAGES 10
#define CXD_WINDOWS 64

/* How a miss is caught. */
enum cxd_mode {
	CXD_MODE_SIGBUS,   /* userfaultfd, minor faults, handled in the thread that faults */
	CXD_MODE_THREAD,   /* userfaultfd, minor faults, handled in a thread of the device's own */
	CXD_MODE_GUARD,    /* guard pages and SIGSEGV; read-only pages for the first write */
	CXD_MODE_MPROTECT, /* no access and SIGSEGV; read-only pages for the first write */
	CXD_MODES,
};

struct cxd_device;

struct cxd_setup {
	struct cxd_config core;
	cxd_u32 mode;
	cxd_u32 compensate; /* spend the fault's own cost out of the wait */
	int node;           /* NUMA node of the pages, or -1 */
	cxd_u32 cores;      /* this process may use; with more waiting threads than these, waits yield */
};

/* What the device saw beside the core's counters; all since the last cxd_zero. */
struct cxd_seen_by_device {
	cxd_u64 late;          /* misses whose time had passed before the page could be mapped */
	cxd_u64 write_notify;  /* first writes to pages mapped for reading */
	cxd_u64 spurious;      /* faults on pages that were there by then */
	cxd_u64 slept;         /* waits that went to sleep */
	cxd_u64 unmaps, unmap_ns;
	cxd_u64 background, background_late_ns; /* steps of the background, and how late they were in sum */
};

struct cxd_calibration {
	cxd_u64 entry_ns, exit_ns; /* from the access to the handler, and from its end to the access's */
	cxd_u64 raw_p50_ns;        /* excess of an uncompensated miss */
	cxd_u64 map_ns;
};

cxd_u64 cxd_abi(cxd_u64 *sizes, cxd_u64 n); /* sizeof of each struct here, in order; returns CXD_USER_ABI */
cxd_u64 cxd_now(void);
double cxd_cycles_per_ns(void);

struct cxd_device *cxd_open(const struct cxd_setup *setup, char *error);
/* Everything but the region: it stays, as plain memory, until cxd_forget. Errors of its life go to `error`. */
int cxd_close(struct cxd_device *device, char *error);
void cxd_forget(void *base, cxd_u64 pages);
void *cxd_base(struct cxd_device *device);
void *cxd_alias(struct cxd_device *device);
struct cxd_core *cxd_core_of(struct cxd_device *device);
/* Give the pages [first, first + n) bytes to hold, from the first page up. Only such pages may be touched. */
int cxd_populate(struct cxd_device *device, cxd_u64 first, cxd_u64 n, char *error);
/* Access each page as a load or a store would, for whoever then goes through the alias. */
void cxd_touch(struct cxd_device *device, cxd_u64 first, cxd_u64 n, int write);
void cxd_mark_written(struct cxd_device *device, cxd_u64 first, cxd_u64 n);
int cxd_reconfigure(struct cxd_device *device, const struct cxd_config *config, char *error);
void cxd_set_drain(struct cxd_device *device, int on);
/* Wait until the background has nothing unfinished. 0, or ETIMEDOUT. */
int cxd_settle(struct cxd_device *device, cxd_u64 timeout_ns);
void cxd_zero(struct cxd_device *device);
void cxd_seen(struct cxd_device *device, struct cxd_seen_by_device *seen);
/* 0, or `error` says what has gone wrong in the background or with the signal's handler. */
int cxd_health(struct cxd_device *device, char *error);
void cxd_set_compensation(struct cxd_device *device, cxd_u64 entry_ns, cxd_u64 exit_ns);
/* Whoever took SIGBUS or SIGSEGV since gives it back, and stays behind us: 1 if somebody had. */
int cxd_rearm(void);
/* For tests: the background thread (or the handler's, in CXD_MODE_THREAD) ends as if it had died. */
void cxd_kill_worker(struct cxd_device *device);

/* Whether a mode works here: 0, or an errno and `error`. */
int cxd_probe(int mode, char *error);
/* Measure with a small device of its own, with this setup's NAND: `rounds` misses a step. */
int cxd_calibrate(const struct cxd_setup *setup, cxd_u64 rounds, struct cxd_calibration *found, char *error);
/* n waits of `wait_ns` with no fault: how much later each ended, ascending, into late_ns[n]. */
void cxd_noise(cxd_u64 wait_ns, cxd_u64 n, cxd_u64 *late_ns);

/* One thread's part of a measured workload. */
struct cxd_stream {
	cxd_u64 first, length, position, rng_address, rng_write, quota;
	cxd_u64 cpu; /* to be pinned to, or ~0 */
	/* out; outcomes in the order hit, miss, wait */
	cxd_u64 count[3], sum_ns[3], min_ns[3], max_ns[3], run_ns, charged, refills, refills_charged;
	cxd_u64 window[CXD_WINDOWS][3];
	cxd_u64 (*latency)[CXD_N_BINS];  /* [3]; these four NULL in an untimed phase */
	cxd_u64 (*stage)[CXD_N_BINS];    /* [CXD_N_STAGES] */
	cxd_u64 (*excess)[CXD_N_BINS];   /* [2]: below 0, and the rest */
	cxd_u64 (*residual)[CXD_N_BINS]; /* [2] */
};

enum cxd_stream_kind { CXD_STREAM_ARRAY, CXD_STREAM_SEQUENTIAL, CXD_STREAM_RANDOM, CXD_STREAM_ZIPF };

struct cxd_phase {
	cxd_u32 threads, kind, shift, node_bytes;
	cxd_u64 write_below, think_ns;
	const cxd_u32 *entries, *zipf_keep, *zipf_alias;
	volatile long long *control; /* [0] accesses done, out; [1] not 0 cancels */
	struct cxd_stream *streams;
	cxd_u64 evictions[CXD_WINDOWS], resident[CXD_WINDOWS]; /* out, at the end of each window of thread 0 */
};

/* Run a phase on a device, or on plain memory at `base` with device NULL. 0, or `error`. Blocks; another thread may cancel. */
int cxd_run(struct cxd_device *device, void *base, struct cxd_phase *phase, char *error);
/* Plain memory of 4 KiB pages, touched, on a NUMA node or -1. */
void *cxd_plain(cxd_u64 pages, int node, char *error);

#endif
