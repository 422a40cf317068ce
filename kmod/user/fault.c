/* SPDX-License-Identifier: MIT
 *
 * The path of a miss: ask the core, make room, wait to the deadline, map. The time the fault itself takes is taken
 * out of the wait: the clock starts before the handler, and stops when the access will have ended.
 */
#include "internal.h"

void fault_broke(struct cxd_device *device, int error, const char *what)
{
	int none = 0;
	device->fault_what = what;
	if (!atomic_compare_exchange_strong(&device->fault, &none, error ? error : EIO))
		return;
	/* whoever stands in a fault goes on with plain memory; cxd_health tells */
	atomic_store(&device->hurry, 1);
	pages_plain(device);
}

void drop_victim(struct cxd_device *device, uint64_t now, uint32_t victim, int dirty, int end)
{
	uint64_t began = now_ns();
	int failed = page_unmap(device, victim, dirty);
	if (failed)
		fault_broke(device, failed, "a page could not be unmapped");
	cxd_add(&device->seen.unmaps, 1);
	cxd_add(&device->seen.unmap_ns, now_ns() - began);
	if (end)
		wake_page(device, victim, cxd_evicted(device->core, now, victim));
}

/* The page is mapped for reading and this is its first write. The core has it dirty by now. It must not become
 * writable and clean again: if it was evicted and read in anew meanwhile, it is made dirty again. Nor must it stay
 * reachable if it is gone: mprotect, unlike the other modes, would bring it back. */
static void let_write(struct cxd_device *device, uint32_t page)
{
	while (!device->hurry) {
		int failed = page_let_write(device, page);
		if (failed) {
			fault_broke(device, failed, "a page could not be made writable");
			return;
		}
		cxd_u32 word = cxd_load(&device->words[page]), state = word & CXD_STATE;
		if (state == CXD_CACHED && (word & CXD_DIRTY))
			return;
		if (state == CXD_NOT_CACHED || state == CXD_EVICTING) {
			if (device->mode == CXD_MODE_MPROTECT)
				page_unmap(device, page, 1);
			return;
		}
		if (state == CXD_LOADING)
			wait_for_page(device, page);
		cxd_written(device->core, page);
	}
}

/* It faulted although the page is there: another thread was faster, or somebody took the mapping away. */
static void map_again(struct cxd_device *device, uint32_t page)
{
	cxd_add(&device->seen.spurious, 1);
	cxd_u32 word = cxd_load(&device->words[page]);
	while ((word & CXD_STATE) == CXD_CACHED) {
		page_map(device, page, (word & CXD_DIRTY) != 0);
		if ((cxd_load(&device->words[page]) & CXD_STATE) == CXD_CACHED)
			return;
		page_unmap(device, page, 1);
		word = cxd_load(&device->words[page]); /* filled anew meanwhile: then that was its mapping */
	}
}

static void fill(struct cxd_device *device, struct cxd_answer answer, uint32_t page, int write, struct seen *seen)
{
	struct cxd_core *core = device->core;
	if (answer.victim != CXD_NO_PAGE)
		drop_victim(device, now_ns(), answer.victim, 0, 1);
	uint64_t exit_ns = seen->tracks ? seen->exit_ns : device->exit_ns, map_ns = device->map_ns, room = exit_ns + map_ns;
	uint64_t before_map = answer.at > room ? answer.at - room : 0;
	seen->late = answer.charged && now_ns() > before_map + map_ns / 2;
	if (seen->late)
		cxd_add(&device->seen.late, 1);
	wait_until(device, before_map);
	seen->mapped = now_ns();
	int failed = page_map(device, page, write);
	if (failed && !device->fault)
		fault_broke(device, failed, "a page could not be mapped");
	wake_page(device, page, cxd_filled(core, answer.at, 0, page, write));
	frame_may_be_had(device);
	if (device->prefetches)
		worker_poke(device);
	wait_until(device, answer.at > exit_ns ? answer.at - exit_ns : 0);
	seen->left = now_ns();
}

/* Returns when the access may be tried again. */
void on_fault(struct cxd_device *device, uint32_t page, int write, uint64_t entered, struct seen *seen)
{
	struct cxd_core *core = device->core;
	uint64_t start = entered - (seen->tracks ? seen->entry_ns : device->entry_ns);
	if (!(seen->claims | seen->waits))
		seen->entered = entered;
	for (;;) {
		if (device->hurry) {
			page_plain(device, page);
			return;
		}
		struct cxd_answer answer = cxd_access(core, start, 0, page, write);
		if (answer.kind == CXD_HIT) {
			if (write) {
				cxd_add(&device->seen.write_notify, 1);
				let_write(device, page);
			} else {
				map_again(device, page);
			}
			seen->left = now_ns();
			return;
		}
		if (answer.kind == CXD_WAIT) {
			seen->waits++;
			wait_for_page(device, page);
			start = seen->left = now_ns();
			cxd_u32 word = cxd_load(&device->words[page]);
			if ((word & CXD_STATE) == CXD_CACHED && !write)
				return;
			continue;
		}
		seen->claims++;
		seen->claimed = now_ns();
		while (answer.kind == CXD_STARVED) {
			if (device->hurry)
				return;
			atomic_fetch_add(&device->starving, 1);
			uint32_t frames = device->frames;
			answer = cxd_frame(core, now_ns(), 0, page, write);
			if (answer.kind == CXD_STARVED)
				wait_for_frame(device, frames);
			atomic_fetch_sub(&device->starving, 1);
		}
		uint64_t issued = start;
		if (answer.kind == CXD_VICTIM) {
			uint32_t victim = answer.victim;
			drop_victim(device, now_ns(), victim, 1, 0);
			wait_until(device, answer.at);
			wake_page(device, victim, cxd_evicted(core, answer.at, victim));
			issued = answer.at;
			answer = cxd_read(core, issued, 0, page, write);
		}
		seen->issued = now_ns();
		seen->charged = answer.charged;
		seen->charged_claims += answer.charged;
		seen->queue_ns = answer.queue_ns, seen->sense_ns = answer.sense_ns, seen->transfer_ns = answer.transfer_ns;
		seen->modelled_ns = answer.at - issued;
		seen->due_ns = answer.at - start;
		fill(device, answer, page, write, seen);
		return;
	}
}
