/* SPDX-License-Identifier: MIT
 *
 * A device's life: memory, open, populate, reconfigure, close.
 */
#include "internal.h"

#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define POPULATE_WRITE 23

static const char *const modes[CXD_MODES] = {"sigbus", "thread", "guard", "mprotect"};

cxd_u64 cxd_abi(cxd_u64 *sizes, cxd_u64 n)
{
	const cxd_u64 ours[] = {sizeof(struct cxd_config), sizeof(struct cxd_counters), sizeof(struct cxd_setup),
		sizeof(struct cxd_seen_by_device), sizeof(struct cxd_calibration), sizeof(struct cxd_stream),
		sizeof(struct cxd_phase)};
	for (cxd_u64 i = 0; i < n && i < ARRAY_SIZE(ours); i++)
		sizes[i] = ours[i];
	return CXD_USER_ABI;
}

static void *zeroed(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static int bind_to(void *memory, size_t bytes, int node, char *error)
{
	unsigned long mask[16] = {0};
	if (node < 0)
		return 0;
	if (node < 1024)
		mask[node / 64] = 1ul << (node % 64);
	if (node >= 1024 || syscall(SYS_mbind, memory, bytes, MPOL_BIND, mask, 1024, 0)) {
		snprintf(error, CXD_ERROR_BYTES, "node is %d: memory cannot be placed there (%s)", node, strerror(node >= 1024 ? EINVAL : errno));
		return EINVAL;
	}
	return 0;
}

static int make_memory(struct cxd_device *device, const struct cxd_setup *setup, char *error)
{
	size_t bytes = device->pages * CXD_PAGE;
	device->memory_bytes = cxd_memory(&setup->core);
	device->words_bytes = device->pages * sizeof(*device->words);
	device->memory = zeroed(device->memory_bytes);
	device->words = zeroed(device->words_bytes);
	if (!device->memory || !device->words) {
		snprintf(error, CXD_ERROR_BYTES, "%zu MiB for the device's own tables cannot be had: lower capacity_pages",
			 (size_t)(device->memory_bytes + device->words_bytes) >> 20);
		return ENOMEM;
	}
	device->memfd = (int)syscall(SYS_memfd_create, "cxdbench", 1 /* MFD_CLOEXEC */);
	if (device->memfd < 0) {
		snprintf(error, CXD_ERROR_BYTES, "no memory file can be made (%s)%s", strerror(errno),
			 errno == EMFILE ? ": raise `ulimit -n`" : "");
		return errno;
	}
	if (ftruncate(device->memfd, (off_t)bytes)) {
		snprintf(error, CXD_ERROR_BYTES, "a memory file of %zu MiB cannot be made (%s)%s", bytes >> 20, strerror(errno),
			 errno == EFBIG ? ": raise `ulimit -f`" : "");
		return errno;
	}
	device->alias = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, device->memfd, 0);
	if (device->alias == MAP_FAILED) {
		device->alias = NULL;
		snprintf(error, CXD_ERROR_BYTES, "%zu MiB of address space cannot be had (%s): lower capacity_pages or raise `ulimit -v`", bytes >> 20, strerror(errno));
		return errno;
	}
	madvise(device->alias, bytes, MADV_NOHUGEPAGE);
	return bind_to(device->alias, bytes, setup->node, error);
}

static void free_all(struct cxd_device *device)
{
	if (device->alias)
		munmap(device->alias, device->pages * CXD_PAGE);
	if (device->uffd >= 0)
		close(device->uffd);
	if (device->memfd >= 0)
		close(device->memfd);
	if (device->memory)
		munmap(device->memory, device->memory_bytes);
	if (device->words)
		munmap(device->words, device->words_bytes);
	free(device);
}

static void stop_threads(struct cxd_device *device)
{
	atomic_store(&device->stop, 1);
	worker_poke(device);
	if (device->has_worker)
		pthread_join(device->worker, NULL);
	if (device->has_server)
		pthread_join(device->server, NULL);
}

struct cxd_device *cxd_open(const struct cxd_setup *setup, char *error)
{
	int field = cxd_check(&setup->core);
	error[0] = 0;
	clock_start();
	if (field || setup->mode >= CXD_MODES) {
		snprintf(error, CXD_ERROR_BYTES, "the device's settings are out of range: %s", field ? cxd_field(field) : "mode");
		return NULL;
	}
	struct cxd_device *device = calloc(1, sizeof(*device));
	if (!device) {
		snprintf(error, CXD_ERROR_BYTES, "out of memory");
		return NULL;
	}
	device->memfd = device->uffd = -1;
	device->mode = (int)setup->mode;
	device->prefetches = setup->core.prefetch_pages > 0;
	device->pages = setup->core.capacity_pages;
	device->cores = setup->cores ? setup->cores : 1;
	device->compensate = (int)setup->compensate;
	device->owner = getpid();
	int failed = make_memory(device, setup, error) || pages_open(device, error);
	if (!failed) {
		device->core = cxd_start(&setup->core, device->memory, device->words, &device->counters);
		cxd_limit(device->core, 0);
		failed = signals_add(device, error) || worker_start(device, error)
			|| (device->mode == CXD_MODE_THREAD && server_start(device, error));
	}
	if (!failed)
		return device;
	if (!error[0])
		snprintf(error, CXD_ERROR_BYTES, "a device cannot be opened in mode %s", modes[device->mode]);
	stop_threads(device);
	if (device->base) {
		signals_remove(device);
		cxd_forget(device->base, device->pages);
	}
	free_all(device);
	return NULL;
}

int cxd_close(struct cxd_device *device, char *error)
{
	int failed = cxd_health(device, error);
	atomic_store(&device->hurry, 1);
	stop_threads(device);
	signals_remove(device);
	pages_plain(device); /* last: whoever still had a page in hand could take it away again */
	free_all(device);
	return failed;
}

void cxd_forget(void *base, cxd_u64 pages)
{
	signals_forget(base);
	munmap(base, pages * CXD_PAGE);
}

void *cxd_base(struct cxd_device *device) { return device->base; }
void *cxd_alias(struct cxd_device *device) { return device->alias; }
struct cxd_core *cxd_core_of(struct cxd_device *device) { return device->core; }

int cxd_populate(struct cxd_device *device, cxd_u64 first, cxd_u64 n, char *error)
{
	if (first + n > device->pages || first + n < first) {
		snprintf(error, CXD_ERROR_BYTES, "pages %llu to %llu lie beyond the device's %llu", (unsigned long long)first,
			 (unsigned long long)(first + n), (unsigned long long)device->pages);
		return EINVAL;
	}
	char *start = device->alias + first * CXD_PAGE;
	for (cxd_u64 done = 0; done < n;) { /* in parts: a signal ends one early */
		cxd_u64 part = n - done < 4096 ? n - done : 4096;
		if (!syscall(SYS_madvise, start + done * CXD_PAGE, part * CXD_PAGE, POPULATE_WRITE)) {
			done += part;
		} else if (errno != EINTR && errno != EAGAIN) {
			snprintf(error, CXD_ERROR_BYTES, "%llu MiB of memory cannot be had (%s): lower the working set, or raise the limit of this process or container",
				 (unsigned long long)(n * CXD_PAGE >> 20), strerror(errno));
			return errno;
		}
	}
	if (first + n > device->there) {
		device->there = first + n;
		cxd_limit(device->core, (cxd_u32)device->there);
	}
	return 0;
}

void cxd_touch(struct cxd_device *device, cxd_u64 first, cxd_u64 n, int write)
{
	for (cxd_u64 page = first; page < first + n; page++) {
		_Atomic uint64_t *word = (_Atomic uint64_t *)(device->base + page * CXD_PAGE);
		if (write)
			atomic_fetch_or(word, 0); /* a store that changes nothing, whoever else stores there */
		else
			(void)atomic_load_explicit(word, memory_order_relaxed);
	}
}

void cxd_mark_written(struct cxd_device *device, cxd_u64 first, cxd_u64 n)
{
	for (cxd_u64 page = first; page < first + n; page++)
		__atomic_fetch_or(&device->words[page], CXD_WRITTEN, __ATOMIC_ACQ_REL);
}

int cxd_reconfigure(struct cxd_device *device, const struct cxd_config *config, char *error)
{
	int field = cxd_change(device->core, config);
	if (field)
		snprintf(error, CXD_ERROR_BYTES, "%s cannot be set, or not while the device is open", cxd_field(field));
	else
		device->prefetches = config->prefetch_pages > 0;
	worker_poke(device);
	return field;
}

void cxd_set_drain(struct cxd_device *device, int on)
{
	cxd_drain(device->core, now_ns(), on);
	worker_poke(device);
}

int cxd_settle(struct cxd_device *device, cxd_u64 timeout_ns)
{
	const struct cxd_counters *c = cxd_counters(device->core);
	uint64_t until = now_ns() + timeout_ns;
	do {
		if (!cxd_prefetches_open(device->core) && cxd_load(&c->evict_begun) == cxd_load(&c->evict_ended))
			return 0;
		usleep(100);
	} while (now_ns() < until && !device->fault && device->worker_alive);
	return ETIMEDOUT;
}

void cxd_zero(struct cxd_device *device)
{
	memset(&device->seen, 0, sizeof(device->seen));
	cxd_zero_counters(device->core);
}

void cxd_seen(struct cxd_device *device, struct cxd_seen_by_device *seen) { *seen = device->seen; }

int cxd_health(struct cxd_device *device, char *error)
{
	int failed = device->fault;
	if (failed)
		snprintf(error, CXD_ERROR_BYTES, "the device broke and its memory is plain from then on: %s (%s)%s", device->fault_what,
			 strerror(failed), failed == ENOMEM ? ": raise `sysctl vm.max_map_count`" : "");
	else if (!device->worker_alive && (failed = EPIPE))
		snprintf(error, CXD_ERROR_BYTES, "the device's background thread has died: no prefetch and no drain since; close it and open another");
	return failed;
}

void cxd_set_compensation(struct cxd_device *device, cxd_u64 entry_ns, cxd_u64 exit_ns)
{
	device->entry_ns = device->compensate ? entry_ns : 0;
	device->exit_ns = device->compensate ? exit_ns : 0;
	device->map_ns = device->compensate ? 400 : 0;
}

void cxd_kill_worker(struct cxd_device *device)
{
	atomic_store(&device->kill, 1);
	worker_poke(device);
}

void *cxd_plain(cxd_u64 pages, int node, char *error)
{
	size_t bytes = pages * CXD_PAGE;
	char *memory = zeroed(bytes);
	if (!memory) {
		snprintf(error, CXD_ERROR_BYTES, "%zu MiB of memory cannot be had (%s): lower the working set", bytes >> 20, strerror(errno));
		return NULL;
	}
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	if (bind_to(memory, bytes, node, error) || syscall(SYS_madvise, memory, bytes, POPULATE_WRITE)) {
		if (!error[0])
			snprintf(error, CXD_ERROR_BYTES, "%zu MiB of memory cannot be had (%s): lower the working set", bytes >> 20, strerror(errno));
		munmap(memory, bytes);
		return NULL;
	}
	return memory;
}
