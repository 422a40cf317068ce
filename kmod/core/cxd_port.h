/* SPDX-License-Identifier: MIT
 *
 * What the core takes from where it runs: integer types, atomics on words and counters, one lock. User space and
 * the single-threaded twin use the compiler's atomics; the kernel module its own.
 */
#ifndef CXD_PORT_H
#define CXD_PORT_H

#ifdef __KERNEL__
#include <linux/atomic.h>
#include <linux/spinlock.h>
#include <linux/types.h>
typedef u32 cxd_u32;
typedef u64 cxd_u64;
typedef spinlock_t cxd_lock_t;
#define cxd_lock_init(l) spin_lock_init(l)
#define cxd_lock(l) spin_lock(l)
#define cxd_unlock(l) spin_unlock(l)
#define cxd_load(p) smp_load_acquire(p)
#define cxd_store(p, v) smp_store_release(p, v)
#define cxd_cas(p, old, new) try_cmpxchg(p, old, new)
#define cxd_add(p, n) ((void)atomic64_add(n, (atomic64_t *)(p)))
#else
#include <stddef.h>
#include <stdint.h>
typedef uint32_t cxd_u32;
typedef uint64_t cxd_u64;
typedef struct { cxd_u32 word; } cxd_lock_t;
void cxd_lock_slow(cxd_lock_t *lock); /* by whoever links the core; a single-threaded user never gets there */
#define cxd_load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define cxd_store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define cxd_cas(p, old, new) __atomic_compare_exchange_n(p, old, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define cxd_add(p, n) ((void)__atomic_fetch_add(p, n, __ATOMIC_RELAXED))
static inline void cxd_lock_init(cxd_lock_t *lock) { lock->word = 0; }
static inline void cxd_lock(cxd_lock_t *lock)
{
	cxd_u32 free = 0;
	if (!cxd_cas(&lock->word, &free, 1))
		cxd_lock_slow(lock);
}
static inline void cxd_unlock(cxd_lock_t *lock) { cxd_store(&lock->word, 0); }
#endif

#endif
