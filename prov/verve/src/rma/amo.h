/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic memory operations: the arithmetic of fi_atomic(3) on memory of this process, one element
 * at a time. Any thread.
 *
 * What is guaranteed of one element depends on where it lies and how long it is:
 * - Naturally aligned, of 1, 2, 4 or 8 bytes: a lock-free compare and swap. Atomic with respect to
 *   everybody who uses the processor's atomics on it: other requests, other domains, C11 atomics of
 *   the application, other processes that map the memory.
 * - Naturally aligned, of 16 bytes, on an x86-64 processor with AVX: the same, by cmpxchg16b.
 * - Everything else (misaligned, long double complex, 16 bytes elsewhere): one lock of the process.
 *   Atomic with respect to all requests that this process executes, and to nothing else.
 */
#ifndef VERVE_RMA_AMO_H
#define VERVE_RMA_AMO_H

#include <stdbool.h>
#include <stddef.h>

/* Numerically libfabric's enum fi_datatype; api/atomic.c asserts it. Also on the wire. */
enum verve_amo_type {
	VERVE_AMO_INT8,
	VERVE_AMO_UINT8,
	VERVE_AMO_INT16,
	VERVE_AMO_UINT16,
	VERVE_AMO_INT32,
	VERVE_AMO_UINT32,
	VERVE_AMO_INT64,
	VERVE_AMO_UINT64,
	VERVE_AMO_FLOAT,
	VERVE_AMO_DOUBLE,
	VERVE_AMO_FLOAT_COMPLEX,
	VERVE_AMO_DOUBLE_COMPLEX,
	VERVE_AMO_LONG_DOUBLE,
	VERVE_AMO_LONG_DOUBLE_COMPLEX,
	VERVE_AMO_INT128,
	VERVE_AMO_UINT128,
	VERVE_AMO_TYPES,
};

/* Numerically libfabric's enum fi_op; api/atomic.c asserts it. Also on the wire. */
enum verve_amo_op {
	VERVE_AMO_MIN,
	VERVE_AMO_MAX,
	VERVE_AMO_SUM,
	VERVE_AMO_PROD,
	VERVE_AMO_LOR,
	VERVE_AMO_LAND,
	VERVE_AMO_BOR,
	VERVE_AMO_BAND,
	VERVE_AMO_LXOR,
	VERVE_AMO_BXOR,
	VERVE_AMO_READ,
	VERVE_AMO_WRITE,
	VERVE_AMO_CSWAP,
	VERVE_AMO_CSWAP_NE,
	VERVE_AMO_CSWAP_LE,
	VERVE_AMO_CSWAP_LT,
	VERVE_AMO_CSWAP_GE,
	VERVE_AMO_CSWAP_GT,
	VERVE_AMO_MSWAP,
	VERVE_AMO_DIFF, /* FI_DIFF of libfabric 2.0 */
	VERVE_AMO_OPS,
};

/* The three families of calls of fi_atomic(3). */
enum verve_amo_form {
	VERVE_AMO_UPDATE,  /* fi_atomic: nothing comes back */
	VERVE_AMO_FETCH,   /* fi_fetch_atomic: what was there comes back */
	VERVE_AMO_COMPARE, /* fi_compare_atomic: the same, and there is a second operand */
};

/* Bytes of an element; 0: no such type. Any value of type. */
size_t verve_amo_size(unsigned type);

/* Whether calls of this form take the operation on this type. Any value of op and type. */
bool verve_amo_is_valid(enum verve_amo_form form, unsigned op, unsigned type);

/* The operation has a second operand. */
static inline bool verve_amo_compares(unsigned op)
{
	return op >= VERVE_AMO_CSWAP && op <= VERVE_AMO_MSWAP;
}

/*
 * count elements at target, of a type and operation that are valid in some form. operand is ignored
 * by VERVE_AMO_READ and compare by all that do not compare; result, if not NULL, gets what was
 * there. No alignment is asked of any. VERVE_AMO_READ does not write to the target, not even the
 * same value.
 */
void verve_amo_run(unsigned op, unsigned type, void *target, size_t count, const void *operand,
		   const void *compare, void *result);

#endif
