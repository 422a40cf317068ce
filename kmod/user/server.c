/* SPDX-License-Identifier: MIT
 *
 * CXD_MODE_THREAD: faults are messages, and threads of the device's own serve them while the one that faulted sleeps
 * in the kernel. It costs two switches a miss, and works for threads that block SIGBUS.
 */
#include "internal.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define SERVERS 8
#define MEASURED 64

/* Threads that measure, by the kernel's number, and where each wants to be told what it saw. */
static struct { _Atomic uint32_t tid; struct seen *seen; } measured[MEASURED];

struct servers {
	pthread_t threads[SERVERS];
	int started;
};

void server_register(uint32_t tid, struct seen *seen)
{
	for (int i = 0; i < MEASURED; i++) {
		uint32_t none = seen ? 0 : tid;
		if (seen) {
			if (atomic_compare_exchange_strong(&measured[i].tid, &none, ~0u)) {
				measured[i].seen = seen;
				atomic_store(&measured[i].tid, tid);
				return;
			}
		} else if (measured[i].tid == tid) {
			atomic_store(&measured[i].tid, 0);
			return;
		}
	}
}

static struct seen *seen_by(uint32_t tid, struct seen *nobody)
{
	for (int i = 0; i < MEASURED; i++)
		if (measured[i].tid == tid)
			return measured[i].seen;
	memset(nobody, 0, sizeof(*nobody));
	return nobody;
}

static void serve(struct cxd_device *device, const struct uffd_msg *message)
{
	uint64_t entered = now_ns(), address = message->arg.pagefault.address & ~(CXD_PAGE - 1);
	int write = !!(message->arg.pagefault.flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP));
	struct seen nobody;
	on_fault(device, (uint32_t)((address - (uint64_t)device->base) / CXD_PAGE), write, entered,
		 seen_by(message->arg.pagefault.feat.ptid, &nobody));
	struct uffdio_range range = {address, CXD_PAGE};
	ioctl(device->uffd, UFFDIO_WAKE, &range);
}

static void dead(void *argument)
{
	struct cxd_device *device = argument;
	atomic_fetch_sub(&device->server_alive, 1);
}

static void *work(void *argument)
{
	struct cxd_device *device = argument;
	prctl(PR_SET_NAME, "cxd-server");
	pthread_cleanup_push(dead, device);
	while (!device->stop && !device->kill) {
		struct pollfd ready = {device->uffd, POLLIN, 0};
		if (poll(&ready, 1, 20) <= 0)
			continue;
		struct uffd_msg message;
		if (read(device->uffd, &message, sizeof(message)) == sizeof(message)
		    && message.event == UFFD_EVENT_PAGEFAULT)
			serve(device, &message);
	}
	pthread_cleanup_pop(1);
	return NULL;
}

/* The first server starts and joins the rest, so that the device has one thread to wait for. */
static void *head(void *argument)
{
	struct cxd_device *device = argument;
	struct servers servers = {.started = 0};
	for (int i = 0; i < SERVERS; i++, servers.started++) {
		atomic_fetch_add(&device->server_alive, 1);
		if (pthread_create(&servers.threads[i], NULL, work, device)) {
			atomic_fetch_sub(&device->server_alive, 1);
			break;
		}
	}
	for (int i = 0; i < servers.started; i++)
		pthread_join(servers.threads[i], NULL);
	/* nobody serves any longer: if that was not asked for, let the sleepers go */
	if (!device->stop)
		fault_broke(device, EPIPE, "the threads that serve its faults have died");
	return NULL;
}

int server_start(struct cxd_device *device, char *error)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int failed = pthread_create(&device->server, NULL, head, device);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	device->has_server = !failed;
	if (failed)
		snprintf(error, CXD_ERROR_BYTES, "no thread can be started to serve faults (%s): raise `ulimit -u`", strerror(failed));
	return failed;
}
