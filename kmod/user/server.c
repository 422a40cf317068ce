/* SPDX-License-Identifier: MIT
 *
 * CXD_MODE_THREAD: faults are messages, and threads of the device's own serve them while the one that faulted sleeps
 * in the kernel. It costs two switches a miss, and works for threads that block SIGBUS.
 */
#include "internal.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define SERVERS 8
#define MEASURED 64

/* Threads that measure, by the kernel's number, and where each wants to be told what it saw; under the lock, since what
 * such a thread owns goes with it. */
static struct { uint32_t tid; struct seen *seen; } measured[MEASURED];
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;

void server_after_fork(void)
{
	pthread_mutex_init(&telling, NULL);
	memset(measured, 0, sizeof(measured));
}

void server_register(uint32_t tid, struct seen *seen)
{
	pthread_mutex_lock(&telling);
	for (int i = 0; i < MEASURED; i++) {
		if (measured[i].tid != (seen ? 0 : tid))
			continue;
		measured[i].tid = seen ? tid : 0;
		measured[i].seen = seen;
		break;
	}
	pthread_mutex_unlock(&telling);
}

/* What the thread has seen of its access so far, and which access that is. */
static uint64_t ask(uint32_t tid, struct seen *own)
{
	uint64_t turn = 0;
	pthread_mutex_lock(&telling);
	for (int i = 0; i < MEASURED; i++) {
		if (measured[i].tid == tid) {
			turn = atomic_load(&measured[i].seen->turn);
			memcpy(own, measured[i].seen, sizeof(*own));
		}
	}
	pthread_mutex_unlock(&telling);
	return turn;
}

static void tell(uint32_t tid, uint64_t turn, const struct seen *own)
{
	pthread_mutex_lock(&telling);
	for (int i = 0; i < MEASURED; i++)
		if (measured[i].tid == tid && atomic_load(&measured[i].seen->turn) == turn)
			memcpy(measured[i].seen, own, SEEN_CLEARED);
	pthread_mutex_unlock(&telling);
}

/* Waking a page wakes all who wait for it, also those whose message another server has in hand. Such a thread may be
 * at its next access by the time that one is done: what was seen is then nobody's. */
static void serve(struct cxd_device *device, const struct uffd_msg *message)
{
	uint64_t entered = now_ns(), address = message->arg.pagefault.address & ~(CXD_PAGE - 1);
	int write = !!(message->arg.pagefault.flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP));
	uint32_t tid = message->arg.pagefault.feat.ptid;
	struct seen own = {0};
	uint64_t turn = ask(tid, &own);
	on_fault(device, (uint32_t)((address - (uint64_t)device->base) / CXD_PAGE), write, entered, &own);
	tell(tid, turn, &own);
	struct uffdio_range range = {address, CXD_PAGE};
	ioctl(device->uffd, UFFDIO_WAKE, &range);
}

static void *work(void *argument)
{
	struct cxd_device *device = argument;
	prctl(PR_SET_NAME, "cxd-server");
	while (!device->stop && !device->kill) {
		struct pollfd ready = {device->uffd, POLLIN, 0};
		if (poll(&ready, 1, 20) <= 0)
			continue;
		struct uffd_msg message;
		if (read(device->uffd, &message, sizeof(message)) == sizeof(message)
		    && message.event == UFFD_EVENT_PAGEFAULT)
			serve(device, &message);
	}
	return NULL;
}

/* The first server starts and joins the rest, so that the device has one thread to wait for. */
static void *head(void *argument)
{
	struct cxd_device *device = argument;
	pthread_t threads[SERVERS];
	int started = 0;
	while (started < SERVERS && !pthread_create(&threads[started], NULL, work, device))
		started++;
	for (int i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	/* nobody serves any longer: if that was not asked for, let the sleepers go */
	if (!device->stop)
		fault_broke(device, EPIPE, "the threads that serve its faults have died");
	return NULL;
}

int server_start(struct cxd_device *device, char *error)
{
	int failed = start_quietly(&device->server, head, device, "to serve faults", error);
	device->has_server = !failed;
	return failed;
}
