/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic: single words that threads and processes share, and hints to the compiler. A load
 * acquires, a store releases; a function that reads and writes is a full barrier.
 */
#ifndef SHMV_ATOMIC_H
#define SHMV_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline bool shmv_likely(bool x)
{
	return __builtin_expect(x, 1);
}

static inline bool shmv_unlikely(bool x)
{
	return __builtin_expect(x, 0);
}

static inline uint32_t shmv_load32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline uint64_t shmv_load64(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void shmv_store32(uint32_t *p, uint32_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}

static inline void shmv_store64(uint64_t *p, uint64_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}

static inline uint32_t shmv_swap32(uint32_t *p, uint32_t value)
{
	return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);
}

/* Both return the sum. */
static inline uint32_t shmv_add32(uint32_t *p, uint32_t by)
{
	return __atomic_add_fetch(p, by, __ATOMIC_SEQ_CST);
}

static inline uint64_t shmv_add64(uint64_t *p, uint64_t by)
{
	return __atomic_add_fetch(p, by, __ATOMIC_SEQ_CST);
}

/* Both return true if *p was old; it is new now. */
static inline bool shmv_replace32(uint32_t *p, uint32_t old, uint32_t new)
{
	return __atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static inline bool shmv_replace64(uint64_t *p, uint64_t old, uint64_t new)
{
	return __atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* One turn of a loop that waits for another processor. */
static inline void shmv_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * Fetches the cache line of memory that is written soon, for this processor alone. The builtin
 * does that with -mprfchw only.
 */
static inline void shmv_prefetch(const void *p)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/* Nanoseconds of CLOCK_MONOTONIC. All processes of a machine share this clock. */
static inline uint64_t shmv_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

#endif
