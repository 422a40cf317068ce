/* SPDX-License-Identifier: MIT
 *
 * SIGBUS and SIGSEGV: whose fault it is. What is not ours goes to whoever had the signal before.
 */
#include "internal.h"

#include <signal.h>

__thread struct seen seen_here __attribute__((tls_model("initial-exec")));

static _Atomic(struct cxd_device *) devices[CXD_MAX_DEVICES];
static _Atomic int highest;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before[2];
static const int caught[2] = {SIGBUS, SIGSEGV};
static _Atomic int armed;

static struct cxd_device *owner_of(const void *address)
{
	for (int i = 0; i < highest; i++) {
		struct cxd_device *device = devices[i];
		if (device && (uintptr_t)address - (uintptr_t)device->base < device->pages * CXD_PAGE)
			return device;
	}
	return NULL;
}

static void say(const char *text)
{
	ssize_t ignored = write(2, text, strlen(text));
	(void)ignored;
}

static void handler(int signal, siginfo_t *info, void *context);

/* Hand on what is not ours. Whoever had the signal may print and return; if the fault then comes again, it is fatal. */
static void hand_on(int signal, siginfo_t *info, void *context)
{
	static _Atomic(void *) last;
	static _Atomic int handed;
	struct sigaction *old = &before[signal == SIGSEGV];
	int sent = info->si_code <= 0; /* by kill or raise, as faulthandler does when it has printed */
	void *where = sent ? NULL : info->si_addr;
	int again = handed && (sent || atomic_load(&last) == where);
	last = where;
	handed = 1;
	if (!again && (old->sa_flags & SA_SIGINFO) && old->sa_sigaction && old->sa_sigaction != handler) {
		old->sa_sigaction(signal, info, context);
		return;
	}
	if (!again && !(old->sa_flags & SA_SIGINFO) && old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
		old->sa_handler(signal);
		return;
	}
	struct sigaction fatal = {.sa_handler = SIG_DFL};
	sigaction(signal, &fatal, NULL);
	if (sent)
		raise(signal);
}

static void handler(int signal, siginfo_t *info, void *context)
{
	uint64_t entered = now_ns();
	struct cxd_device *device = info->si_code > 0 ? owner_of(info->si_addr) : NULL;
	if (device && signal == SIGSEGV && info->si_code == SEGV_MAPERR && getpid() != device->owner) {
		say("cxdbench: a forked process touched the memory of a live device, which it does not inherit: start processes with `spawn`, or open the device in the child\n");
		device = NULL;
	}
	if (!device) {
		hand_on(signal, info, context);
		return;
	}
	int saved = errno;
	on_fault(device, (uint32_t)(((char *)info->si_addr - device->base) / CXD_PAGE), fault_was_write(context), entered,
		 &seen_here);
	errno = saved;
}

static int arm(void)
{
	struct sigaction now, ours = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	int mended = 0;
	sigfillset(&ours.sa_mask);
	for (int i = 0; i < 2; i++) {
		if (sigaction(caught[i], NULL, &now))
			return -errno;
		if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handler)
			continue;
		before[i] = now;
		if (sigaction(caught[i], &ours, NULL))
			return -errno;
		mended = 1;
	}
	return mended;
}

int cxd_rearm(void)
{
	int mended = 0;
	/* never from a thread that would wait for one that waits for this one to end */
	if (!pthread_mutex_trylock(&changing)) {
		mended = armed ? arm() : 0;
		pthread_mutex_unlock(&changing);
	}
	return mended;
}

int signals_add(struct cxd_device *device, char *error)
{
	int failed = ENOSPC;
	pthread_mutex_lock(&changing);
	for (int i = 0; failed && i < CXD_MAX_DEVICES; i++) {
		if (devices[i])
			continue;
		devices[i] = device;
		if (i >= highest)
			highest = i + 1;
		failed = 0;
	}
	if (failed)
		snprintf(error, CXD_ERROR_BYTES, "%d live devices are open in this process, and no more can be: close one", CXD_MAX_DEVICES);
	else if (!armed++ && arm() < 0)
		failed = errno;
	pthread_mutex_unlock(&changing);
	return failed;
}

/* The handlers stay once they are there: a chain that somebody else has built upon them cannot be taken apart. */
void signals_remove(struct cxd_device *device)
{
	pthread_mutex_lock(&changing);
	for (int i = 0; i < CXD_MAX_DEVICES; i++) {
		if (devices[i] == device) {
			devices[i] = NULL;
			armed--;
		}
	}
	pthread_mutex_unlock(&changing);
}
