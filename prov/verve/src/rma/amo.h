/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic memory operations: the arithmetic of fi_atomic(3) on memory of this process, one element
 * at a time. Any thread may call these functions.
 *
 * How far an operation on an element is atomic depends on the element's alignment and size:
 * - 1, 2, 4 or 8 bytes, naturally aligned: a lock-free compare and swap. The operation is atomic
 *   with respect to all code that uses the processor's atomics on the element: other requests,
 *   other domains, C11 atomics of the application, other processes that map the memory.
 * - 16 bytes, naturally aligned, on an x86-64 processor with AVX: the same, by cmpxchg16b.
 * - All other elements (misaligned, long double complex, 16 bytes on other processors): one lock of
 *   the process. The operation is atomic with respect to the requests that this process executes,
 *   and to nothing else.
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
	VERVE_AMO_UPDATE,  /* fi_atomic: returns no value */
	VERVE_AMO_FETCH,   /* fi_fetch_atomic: returns the value before the operation */
	VERVE_AMO_COMPARE, /* fi_compare_atomic: the same, with a second operand, the compare */
};

/* Size of an element in bytes; 0: there is no such type. type may be any number. */
size_t verve_amo_size(unsigned type);

/* Whether calls of this form support the operation on the type. op and type may be any numbers. */
bool verve_amo_is_valid(enum verve_amo_form form, unsigned op, unsigned type);

/* Whether the operation has a second operand, the compare. */
static inline bool verve_amo_compares(unsigned op)
{
	return op >= VERVE_AMO_CSWAP && op <= VERVE_AMO_MSWAP;
}

/*
 * Executes op on count elements at target. op and type are valid in some form. VERVE_AMO_READ
 * ignores operand; operations without a second operand ignore compare. result, if not NULL, gets
 * the elements as they were before. No pointer needs alignment. VERVE_AMO_READ never writes to the
 * target, not even the same value, because the memory may be read-only.
 */
void verve_amo_run(unsigned op, unsigned type, void *target, size_t count, const void *operand,
		   const void *compare, void *result);

#endif
