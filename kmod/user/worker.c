/* SPDX-License-Identifier: MIT
 *
 * The background thread: prefetches and the drain, each step at its time; and a look now and then at whether the
 * signals are still ours.
 */
#include "internal.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#define NAP_NS 20000000
#define NEAR_NS 80000 /* a sleeper comes back late by as much */

void worker_poke(struct cxd_device *device)
{
	atomic_fetch_add(&device->poke, 1);
	if (atomic_load(&device->worker_sleeps))
		futex(&device->poke, FUTEX_WAKE, 1, 0);
}

static void step(struct cxd_device *device, struct cxd_answer answer, uint64_t now)
{
	cxd_add(&device->seen.background, 1);
	cxd_add(&device->seen.background_late_ns, now - answer.at);
	switch (answer.kind) {
	case CXD_UNMAP:
		drop_victim(device, answer.at, answer.victim, !answer.done, answer.done);
		break;
	case CXD_MAP: {
		int failed = page_map(device, answer.page, 0);
		if (failed && !device->fault)
			fault_broke(device, failed, "a prefetched page could not be mapped");
		wake_page(device, answer.page, cxd_filled(device->core, answer.at, CXD_BACKGROUND, answer.page, 0));
		break;
	}
	case CXD_WAKE:
		wake_page(device, answer.page, CXD_SLEEPERS);
		break;
	}
	frame_may_be_had(device);
}

static void dead(void *argument)
{
	struct cxd_device *device = argument;
	atomic_store(&device->worker_alive, 0);
}

static void rest(struct cxd_device *device, uint64_t next, uint64_t now)
{
	if (next - now < NEAR_NS) {
		sched_yield();
		return;
	}
	uint64_t nap = next - now - NEAR_NS / 2;
	uint32_t seen = device->poke;
	atomic_store(&device->worker_sleeps, 1);
	if (cxd_next(device->core) == next && !device->stop)
		futex(&device->poke, FUTEX_WAIT, seen, nap < NAP_NS ? nap : NAP_NS);
	atomic_store(&device->worker_sleeps, 0);
}

static void *work(void *argument)
{
	struct cxd_device *device = argument;
	volatile uint64_t looked = 0; /* volatile: the cleanup handler may jump */
	prctl(PR_SET_TIMERSLACK, 1ul);
	prctl(PR_SET_NAME, "cxd-background");
	pthread_cleanup_push(dead, device);
	while (!device->stop && !device->kill) {
		uint64_t now = now_ns();
		if (now - looked > NAP_NS) {
			cxd_rearm();
			looked = now;
		}
		uint64_t next = cxd_next(device->core);
		if (next > now || device->fault) {
			rest(device, device->fault ? CXD_NEVER : next, now);
			continue;
		}
		struct cxd_answer answer = cxd_tick(device->core, now);
		if (answer.kind != CXD_IDLE)
			step(device, answer, now);
	}
	pthread_cleanup_pop(1);
	return NULL;
}

int start_quietly(pthread_t *thread, void *(*work)(void *), struct cxd_device *device, const char *purpose, char *error)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int failed = pthread_create(thread, NULL, work, device);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed)
		snprintf(error, CXD_ERROR_BYTES, "no thread can be started %s (%s): raise `ulimit -u`", purpose, strerror(failed));
	return failed;
}

int worker_start(struct cxd_device *device, char *error)
{
	atomic_store(&device->worker_alive, 1);
	int failed = start_quietly(&device->worker, work, device, "for the background", error);
	device->has_worker = !failed;
	return failed;
}
