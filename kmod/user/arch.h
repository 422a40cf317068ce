/* SPDX-License-Identifier: MIT
 *
 * What differs between processors: the cycle counter, a pause, and how a fault says that it was a write.
 */
#ifndef CXD_ARCH_H
#define CXD_ARCH_H

#include <stdint.h>
#include <ucontext.h>

#if !defined(__x86_64__) || !defined(__linux__)
#error "libcxd is written for Linux on x86-64; the rest of cxdbench works without it"
#endif

#include <x86intrin.h>

static inline uint64_t cycles(void) { return __rdtsc(); }

/* The counter once everything before it is done, and before anything after it begins. */
static inline uint64_t cycles_fenced(void)
{
	_mm_lfence();
	uint64_t now = __rdtsc();
	_mm_lfence();
	return now;
}

static inline void pause_cpu(void) { _mm_pause(); }

/* Bit 1 of the page fault's error code. */
static inline int fault_was_write(const ucontext_t *context)
{
	return (context->uc_mcontext.gregs[REG_ERR] & 2) != 0;
}

#endif
