/* SPDX-License-Identifier: MIT
 *
 * Waits: a load that stalls on a device blocks its core, and so does a spin; only where threads outnumber cores is
 * the core handed on. Those who wait for a page spin first and then sleep on its word.
 */
#include "internal.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#define SPIN_NS 30000   /* a fill is mostly over by then; going to sleep and being woken costs as much */
#define DEAD_NS 500000000
#define SLEEP_NS 200000 /* a wait so long may sleep for its first part; waking is late by tens of us */

long futex(_Atomic uint32_t *word, int op, uint32_t value, uint64_t timeout_ns)
{
	struct timespec t = {(time_t)(timeout_ns / 1000000000ull), (long)(timeout_ns % 1000000000ull)};
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout_ns ? &t : NULL, NULL, 0);
}

void cxd_lock_slow(cxd_lock_t *lock)
{
	for (int i = 0;; i++) {
		cxd_u32 free = 0;
		if (!cxd_load(&lock->word) && cxd_cas(&lock->word, &free, 1))
			return;
		if (i < 200)
			pause_cpu();
		else
			sched_yield(); /* its holder may have lost its core */
	}
}

static void relax(struct cxd_device *device)
{
	if (device->crowded || atomic_load_explicit(&device->inside, memory_order_relaxed) >= device->cores)
		sched_yield();
	else
		pause_cpu();
}

static int hurried(struct cxd_device *device)
{
	volatile long long *control = device->control;
	return device->hurry || (control && control[1]);
}

void wait_until(struct cxd_device *device, uint64_t until)
{
	uint64_t now = now_ns();
	if (now >= until || hurried(device))
		return;
	atomic_fetch_add(&device->inside, 1);
	while ((now = now_ns()) < until && !hurried(device)) {
		if (until - now > SLEEP_NS && device->inside > device->cores) {
			/* in slices, so that a cancelled run ends soon */
			uint64_t nap = until - now - SLEEP_NS / 2;
			struct timespec t = {0, (long)(nap < 50000000 ? nap : 50000000)};
			cxd_add(&device->seen.slept, 1);
			nanosleep(&t, NULL);
		} else {
			relax(device);
		}
	}
	atomic_fetch_sub(&device->inside, 1);
}

static int on_its_way(cxd_u32 word)
{
	return (word & CXD_STATE) == CXD_LOADING || (word & CXD_STATE) == CXD_EVICTING;
}

void wait_for_page(struct cxd_device *device, uint32_t page)
{
	cxd_u32 *word = &device->words[page];
	uint64_t began = now_ns();
	atomic_fetch_add(&device->inside, 1);
	for (;;) {
		cxd_u32 now = cxd_load(word);
		if (!on_its_way(now) || device->hurry)
			break;
		if (!device->worker_alive && now_ns() - began > DEAD_NS) {
			fault_broke(device, EPIPE, "the background thread died with a page on its way in");
			break;
		}
		if (now_ns() - began < SPIN_NS) {
			relax(device);
		} else if ((now & CXD_SLEEPERS) || cxd_cas(word, &now, now | CXD_SLEEPERS)) {
			cxd_add(&device->seen.slept, 1);
			/* the time limit mends a wake that a dying thread never sent */
			futex((_Atomic uint32_t *)word, FUTEX_WAIT, now | CXD_SLEEPERS, 100000000);
		}
	}
	atomic_fetch_sub(&device->inside, 1);
}

void wake_page(struct cxd_device *device, uint32_t page, uint32_t former)
{
	if (former & CXD_SLEEPERS)
		futex((_Atomic uint32_t *)&device->words[page], FUTEX_WAKE, 1 << 30, 0);
}

void frame_may_be_had(struct cxd_device *device)
{
	if (atomic_load(&device->starving)) {
		atomic_fetch_add(&device->frames, 1);
		futex(&device->frames, FUTEX_WAKE, 1 << 30, 0);
	}
}

void wait_for_frame(struct cxd_device *device, uint32_t seen)
{
	futex(&device->frames, FUTEX_WAIT, seen, 1000000);
}
