/* SPDX-License-Identifier: MIT
 *
 * What the parts of libcxd share.
 */
#ifndef CXD_INTERNAL_H
#define CXD_INTERNAL_H

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "arch.h"
#include "cxd_user.h"

#define CXD_MAX_DEVICES 64
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* What the handler tells the access it serves; one a thread, cleared by whoever measures. */
struct seen {
	uint64_t claims, waits;      /* times this access claimed a page, and waited for one */
	uint64_t entered, claimed, issued, mapped, left; /* last but `entered`, which is the first */
	uint64_t queue_ns, sense_ns, transfer_ns, modelled_ns, due_ns; /* due: from the access to its end, as modelled */
	uint64_t charged, charged_claims, late;
	/* what follows stays from one access to the next: this thread's own costs of a fault, where it tracks them */
	uint64_t entry_ns, exit_ns;
	int tracks;
	_Atomic uint64_t turn; /* counts accesses, so that a server can tell whether the thread still waits for it */
};
#define SEEN_CLEARED offsetof(struct seen, entry_ns)

struct cxd_device {
	struct cxd_core *core;
	struct cxd_counters counters;
	cxd_u32 *words;
	void *memory;
	cxd_u64 memory_bytes, words_bytes;
	int mode, memfd, uffd;
	pid_t owner;
	char *base, *alias;
	uint64_t pages, there; /* of the region; of these, with memory behind them */
	uint32_t cores;
	int compensate;
	_Atomic int prefetches;
	_Atomic uint64_t entry_ns, exit_ns, map_ns;

	_Atomic int crowded;         /* more threads measure than there are cores: waits hand theirs on */
	_Atomic int hurry;           /* waits end at once: the region is plain memory */
	volatile long long *_Atomic control; /* of the run at hand: [1] not 0 ends all waits */
	_Atomic uint32_t inside;     /* threads in a wait now */
	_Atomic uint32_t frames;     /* a futex: moves when a frame may be had */
	_Atomic uint32_t starving;
	struct cxd_seen_by_device seen;

	pthread_t worker, server;    /* background; CXD_MODE_THREAD's handler */
	int has_worker, has_server;
	_Atomic uint32_t poke;       /* a futex: moves when the worker has something new to look at */
	_Atomic int worker_sleeps;
	_Atomic int stop, kill;
	_Atomic int worker_alive;
	_Atomic int fault;           /* errno of what went wrong for good, 0 while all is well */
	const char *fault_what;
};

/* clock.c */
void clock_start(void);

/* wait.c */
long futex(_Atomic uint32_t *word, int op, uint32_t value, uint64_t timeout_ns);
/* Wait until cxd_now() reaches `until`; yields instead of spinning when cores are short. */
void wait_until(struct cxd_device *device, uint64_t until);
/* Wait until the page's word leaves LOADING or EVICTING. */
void wait_for_page(struct cxd_device *device, uint32_t page);
void wake_page(struct cxd_device *device, uint32_t page, uint32_t former);
void frame_may_be_had(struct cxd_device *device);
void wait_for_frame(struct cxd_device *device, uint32_t seen);

/* pages.c: the page tables, by mode. 0 or an errno. */
int pages_open(struct cxd_device *device, char *error);
void pages_plain(struct cxd_device *device);
int page_map(struct cxd_device *device, uint32_t page, int write);
int page_unmap(struct cxd_device *device, uint32_t page, int was_dirty);
void page_plain(struct cxd_device *device, uint32_t page);
int page_let_write(struct cxd_device *device, uint32_t page);

/* fault.c */
void fault_broke(struct cxd_device *device, int error, const char *what);
void on_fault(struct cxd_device *device, uint32_t page, int write, uint64_t entered, struct seen *seen);
/* Unmap an answer's victim; `end` tells the core that it is gone. */
void drop_victim(struct cxd_device *device, uint64_t now, uint32_t victim, int dirty, int end);

/* signals.c */
int signals_add(struct cxd_device *device, char *error);
void signals_remove(struct cxd_device *device); /* waits for the handlers that serve it */
void signals_forget(const void *base);
void server_after_fork(void);
extern __thread struct seen seen_here __attribute__((tls_model("initial-exec")));

/* server.c: CXD_MODE_THREAD */
int server_start(struct cxd_device *device, char *error);
void server_register(uint32_t tid, struct seen *seen); /* NULL takes the thread out */

/* worker.c */
int worker_start(struct cxd_device *device, char *error);
/* A thread of the device's own, which takes none of the program's signals. 0, or `error` says what it was for. */
int start_quietly(pthread_t *thread, void *(*work)(void *), struct cxd_device *device, const char *purpose, char *error);
void worker_poke(struct cxd_device *device);

extern uint64_t clock_mult, clock_zero;
static inline uint64_t ns_at(uint64_t count) { return (uint64_t)(((unsigned __int128)(count - clock_zero) * clock_mult) >> 32); }
static inline uint64_t now_ns(void) { return ns_at(cycles()); }

#endif
