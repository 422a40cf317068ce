/* SPDX-License-Identifier: MIT
 *
 * The page tables of a region, one way for each mode: how a page becomes reachable, how it stops to be, and how its
 * first write shows. A page mapped for a read is mapped write-protected, so that whether a victim is dirty is known
 * and not guessed.
 */
#include "internal.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* Newer than some distributions' headers. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_MINOR_SHMEM
#define UFFD_FEATURE_MINOR_SHMEM (1 << 10)
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif
#ifndef UFFDIO_CONTINUE_MODE_WP
#define UFFDIO_CONTINUE_MODE_WP ((__u64)1 << 1)
#endif
#define GUARD_INSTALL 102
#define GUARD_REMOVE 103

static char *at(struct cxd_device *device, uint32_t page) { return device->base + page * CXD_PAGE; }

static int by_userfaultfd(const struct cxd_device *device)
{
	return device->mode == CXD_MODE_SIGBUS || device->mode == CXD_MODE_THREAD;
}

static int madvise_now(void *start, size_t bytes, int advice)
{
	for (;;) {
		if (!syscall(SYS_madvise, start, bytes, advice))
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return errno;
	}
}

static int uffd_ioctl(struct cxd_device *device, unsigned long request, void *argument)
{
	while (ioctl(device->uffd, request, argument))
		if (errno != EAGAIN && errno != EINTR)
			return errno;
	return 0;
}

static int open_uffd(struct cxd_device *device, char *error)
{
	int flags = O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY;
	/* page faults of the kernel's own on this memory fail with EFAULT in each mode, so nothing more is asked for */
	device->uffd = (int)syscall(SYS_userfaultfd, flags);
	if (device->uffd < 0) {
		snprintf(error, CXD_ERROR_BYTES, "userfaultfd cannot be opened here (%s): needs Linux 5.11 or newer and no seccomp filter that forbids it", strerror(errno));
		return errno;
	}
	struct uffdio_api api = {.api = UFFD_API,
		.features = UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_WP_HUGETLBFS_SHMEM
			| (device->mode == CXD_MODE_SIGBUS ? UFFD_FEATURE_SIGBUS : UFFD_FEATURE_THREAD_ID)};
	if (ioctl(device->uffd, UFFDIO_API, &api)) {
		snprintf(error, CXD_ERROR_BYTES, "userfaultfd lacks minor faults or write protection of shared memory (%s): needs Linux 5.19 or newer", strerror(errno));
		return errno;
	}
	struct uffdio_register range = {.range = {(uint64_t)device->base, device->pages * CXD_PAGE},
		.mode = UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP};
	int failed = uffd_ioctl(device, UFFDIO_REGISTER, &range);
	if (failed)
		snprintf(error, CXD_ERROR_BYTES, "userfaultfd does not take the region (%s): needs Linux 5.19 or newer", strerror(failed));
	return failed;
}

int pages_open(struct cxd_device *device, char *error)
{
	size_t bytes = device->pages * CXD_PAGE;
	int none = device->mode == CXD_MODE_MPROTECT, failed = 0;
	device->base = mmap(NULL, bytes, none ? PROT_NONE : PROT_READ | PROT_WRITE, MAP_SHARED, device->memfd, 0);
	if (device->base == MAP_FAILED) {
		device->base = NULL;
		snprintf(error, CXD_ERROR_BYTES, "%zu MiB of address space cannot be had (%s): lower capacity_pages or raise `ulimit -v`", bytes >> 20, strerror(errno));
		return errno;
	}
	/* a forked child has no handler thread and no counters of its own: it gets no such memory */
	madvise(device->base, bytes, MADV_DONTFORK);
	if (by_userfaultfd(device))
		return open_uffd(device, error);
	if (device->mode == CXD_MODE_GUARD)
		failed = madvise_now(device->base, bytes, GUARD_INSTALL);
	if (failed)
		snprintf(error, CXD_ERROR_BYTES, "guard pages in shared memory cannot be had (%s): needs Linux 6.15 or newer", strerror(failed));
	return failed;
}

void pages_plain(struct cxd_device *device)
{
	size_t bytes = device->pages * CXD_PAGE;
	if (device->uffd >= 0) {
		struct uffdio_range range = {(uint64_t)device->base, bytes};
		uffd_ioctl(device, UFFDIO_UNREGISTER, &range);
		uffd_ioctl(device, UFFDIO_WAKE, &range); /* the kernel wakes those who miss, not those in a minor fault */
	} else if (device->mode == CXD_MODE_GUARD) {
		mprotect(device->base, bytes, PROT_READ | PROT_WRITE);
		madvise_now(device->base, bytes, GUARD_REMOVE);
	} else {
		mprotect(device->base, bytes, PROT_READ | PROT_WRITE);
	}
}

static int protect(struct cxd_device *device, uint32_t page, int access)
{
	return mprotect(at(device, page), CXD_PAGE, access) ? errno : 0;
}

int page_map(struct cxd_device *device, uint32_t page, int write)
{
	int failed;
	switch (device->mode) {
	case CXD_MODE_MPROTECT:
		return protect(device, page, write ? PROT_READ | PROT_WRITE : PROT_READ);
	case CXD_MODE_GUARD:
		failed = write ? 0 : protect(device, page, PROT_READ);
		return failed ? failed : madvise_now(at(device, page), CXD_PAGE, GUARD_REMOVE);
	default: {
		struct uffdio_continue range = {.range = {(uint64_t)at(device, page), CXD_PAGE},
			.mode = (write ? 0 : UFFDIO_CONTINUE_MODE_WP)
				| (device->mode == CXD_MODE_THREAD ? UFFDIO_CONTINUE_MODE_DONTWAKE : 0)};
		failed = uffd_ioctl(device, UFFDIO_CONTINUE, &range);
		return failed == EEXIST ? 0 : failed;
	}
	}
}

int page_unmap(struct cxd_device *device, uint32_t page, int was_dirty)
{
	int failed;
	switch (device->mode) {
	case CXD_MODE_MPROTECT:
		return protect(device, page, PROT_NONE);
	case CXD_MODE_GUARD:
		failed = madvise_now(at(device, page), CXD_PAGE, GUARD_INSTALL);
		return failed || was_dirty ? failed : protect(device, page, PROT_READ | PROT_WRITE);
	default:
		return madvise_now(at(device, page), CXD_PAGE, MADV_DONTNEED);
	}
}

/* One page of a device that broke or closes: reachable for good. */
void page_plain(struct cxd_device *device, uint32_t page)
{
	if (by_userfaultfd(device)) {
		struct uffdio_continue range = {.range = {(uint64_t)at(device, page), CXD_PAGE}};
		uffd_ioctl(device, UFFDIO_CONTINUE, &range);
		page_let_write(device, page);
		return;
	}
	protect(device, page, PROT_READ | PROT_WRITE);
	if (device->mode == CXD_MODE_GUARD)
		madvise_now(at(device, page), CXD_PAGE, GUARD_REMOVE);
}

int page_let_write(struct cxd_device *device, uint32_t page)
{
	if (!by_userfaultfd(device))
		return protect(device, page, PROT_READ | PROT_WRITE);
	struct uffdio_writeprotect range = {.range = {(uint64_t)at(device, page), CXD_PAGE}};
	int failed = uffd_ioctl(device, UFFDIO_WRITEPROTECT, &range);
	return failed == ENOENT ? 0 : failed; /* evicted meanwhile: the access faults again */
}
