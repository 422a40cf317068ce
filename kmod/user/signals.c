/* SPDX-License-Identifier: MIT
 *
 * SIGBUS and SIGSEGV: whose fault it is. What is not ours goes to whoever had the signal before.
 */
#include "internal.h"

#include <signal.h>

__thread struct seen seen_here __attribute__((tls_model("initial-exec")));

/* A region keeps its place here after its device is closed, until it is unmapped: a fault that was under way is then
 * tried again on plain memory. `users` are handlers at work in it. */
static struct slot {
	_Atomic(struct cxd_device *) device;
	_Atomic uintptr_t base;
	_Atomic size_t bytes;
	_Atomic uint32_t users;
} slots[CXD_MAX_DEVICES];
static _Atomic int highest;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before[2];
static const int caught[2] = {SIGBUS, SIGSEGV};
static _Atomic int armed;

static struct slot *slot_of(const void *address)
{
	for (int i = 0; i < highest; i++)
		if ((uintptr_t)address - slots[i].base < slots[i].bytes)
			return &slots[i];
	return NULL;
}

static void say(const char *text)
{
	ssize_t ignored = write(2, text, strlen(text));
	(void)ignored;
}

static void handler(int signal, siginfo_t *info, void *context);

/* Hand on what is not ours. faulthandler prints, puts back whom it replaced and raises the signal anew: that one, sent
 * by this thread after a fault of its own was handed on, ends the process. */
static void hand_on(int signal, siginfo_t *info, void *context)
{
	static __thread int handed __attribute__((tls_model("initial-exec")));
	struct sigaction *old = &before[signal == SIGSEGV];
	int sent = info->si_code <= 0;
	int raised = handed && info->si_code == SI_TKILL && info->si_pid == getpid();
	int real = (old->sa_flags & SA_SIGINFO) ? old->sa_sigaction && old->sa_sigaction != handler
		: old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN;
	if (sent && !(old->sa_flags & SA_SIGINFO) && old->sa_handler == SIG_IGN)
		return;
	if (real && !raised) {
		handed |= !sent;
		if (old->sa_flags & SA_SIGINFO)
			old->sa_sigaction(signal, info, context);
		else
			old->sa_handler(signal);
		return;
	}
	struct sigaction fatal = {.sa_handler = SIG_DFL};
	sigaction(signal, &fatal, NULL);
	if (sent)
		raise(signal);
}

/* What a forked process does not inherit: kept for the message, since its own devices may come to lie there. */
static struct { uintptr_t base; size_t bytes; } foreign[CXD_MAX_DEVICES];

static void before_fork(void) { pthread_mutex_lock(&changing); }
static void after_fork(void) { pthread_mutex_unlock(&changing); }

static void in_the_child(void)
{
	pthread_mutex_init(&changing, NULL);
	server_after_fork();
	for (int i = 0; i < CXD_MAX_DEVICES; i++) {
		foreign[i].base = slots[i].base;
		foreign[i].bytes = slots[i].bytes;
		slots[i].device = NULL;
		slots[i].base = slots[i].bytes = slots[i].users = 0;
	}
	armed = 0;
}

static int not_inherited(int signal, const siginfo_t *info)
{
	for (int i = 0; signal == SIGSEGV && info->si_code == SEGV_MAPERR && i < CXD_MAX_DEVICES; i++)
		if ((uintptr_t)info->si_addr - foreign[i].base < foreign[i].bytes)
			return 1;
	return 0;
}

static void handler(int signal, siginfo_t *info, void *context)
{
	uint64_t entered = now_ns();
	struct slot *slot = info->si_code > 0 ? slot_of(info->si_addr) : NULL;
	if (!slot) {
		if (not_inherited(signal, info))
			say("cxdbench: a forked process touched the memory of a live device, which it does not inherit: start processes with `spawn`, or open the device in the child\n");
		hand_on(signal, info, context);
		return;
	}
	int saved = errno;
	atomic_fetch_add(&slot->users, 1);
	struct cxd_device *device = slot->device;
	if (device)
		on_fault(device, (uint32_t)(((char *)info->si_addr - device->base) / CXD_PAGE), fault_was_write(context), entered,
			 &seen_here);
	atomic_fetch_sub(&slot->users, 1);
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
	static int prepared;
	int failed = ENOSPC;
	pthread_mutex_lock(&changing);
	if (!prepared)
		prepared = !pthread_atfork(before_fork, after_fork, in_the_child);
	for (int i = 0; failed && i < CXD_MAX_DEVICES; i++) {
		if (slots[i].device || slots[i].bytes || slots[i].users)
			continue;
		slots[i].device = device;
		slots[i].base = (uintptr_t)device->base;
		slots[i].bytes = device->pages * CXD_PAGE;
		if (i >= highest)
			highest = i + 1;
		failed = 0;
	}
	if (failed)
		snprintf(error, CXD_ERROR_BYTES, "%d live devices are open or have arrays left in this process, and no more can be: close one and let its arrays go", CXD_MAX_DEVICES);
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
		if (slots[i].device != device)
			continue;
		slots[i].device = NULL;
		armed--;
		while (slots[i].users) /* they hurry */
			usleep(50);
	}
	pthread_mutex_unlock(&changing);
}

void signals_forget(const void *base)
{
	pthread_mutex_lock(&changing);
	for (int i = 0; i < CXD_MAX_DEVICES; i++)
		if (slots[i].base == (uintptr_t)base)
			slots[i].bytes = slots[i].base = 0;
	pthread_mutex_unlock(&changing);
}
