/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic memory operations: first the arithmetic of each operation, then the ways to exchange an
 * element in memory.
 */
#include "rma/amo.h"

#include <assert.h>
#include <complex.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

typedef __int128 int128;
typedef unsigned __int128 uint128;

/* One element, of any type. */
union value {
	uint8_t u8;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64[4];
	unsigned char bytes[32];
};
_Static_assert(sizeof(long double complex) <= sizeof(union value), "the longest type");

/*
 * The operations on v (the value in memory), o (operand) and c (compare), as fi_atomic(3) writes
 * them. These are macros because the text is the same for 16 types, and C has no other way to write
 * it once. T is the element's type, U the type of the calculation: for integers an unsigned type of
 * at least 64 bits, so that an overflow wraps around and is not undefined.
 */
#define ANY_TYPE(T, U)                                                                             \
	case VERVE_AMO_SUM:                                                                        \
		v = (T)((U)v + (U)o);                                                              \
		break;                                                                             \
	case VERVE_AMO_DIFF:                                                                       \
		v = (T)((U)v - (U)o);                                                              \
		break;                                                                             \
	case VERVE_AMO_PROD:                                                                       \
		v = (T)((U)v * (U)o);                                                              \
		break;                                                                             \
	case VERVE_AMO_LOR:                                                                        \
		v = (T)(v || o);                                                                   \
		break;                                                                             \
	case VERVE_AMO_LAND:                                                                       \
		v = (T)(v && o);                                                                   \
		break;                                                                             \
	case VERVE_AMO_LXOR:                                                                       \
		v = (T)(!v != !o);                                                                 \
		break;                                                                             \
	case VERVE_AMO_WRITE:                                                                      \
		v = o;                                                                             \
		break;                                                                             \
	case VERVE_AMO_CSWAP:                                                                      \
		v = c == v ? o : v;                                                                \
		break;                                                                             \
	case VERVE_AMO_CSWAP_NE:                                                                   \
		v = c != v ? o : v;                                                                \
		break;

#define ORDERED_TYPE                                                                               \
	case VERVE_AMO_MIN:                                                                        \
		v = o < v ? o : v;                                                                 \
		break;                                                                             \
	case VERVE_AMO_MAX:                                                                        \
		v = o > v ? o : v;                                                                 \
		break;                                                                             \
	case VERVE_AMO_CSWAP_LE:                                                                   \
		v = c <= v ? o : v;                                                                \
		break;                                                                             \
	case VERVE_AMO_CSWAP_LT:                                                                   \
		v = c < v ? o : v;                                                                 \
		break;                                                                             \
	case VERVE_AMO_CSWAP_GE:                                                                   \
		v = c >= v ? o : v;                                                                \
		break;                                                                             \
	case VERVE_AMO_CSWAP_GT:                                                                   \
		v = c > v ? o : v;                                                                 \
		break;

#define INTEGER_TYPE(T)                                                                            \
	case VERVE_AMO_BOR:                                                                        \
		v = (T)(v | o);                                                                    \
		break;                                                                             \
	case VERVE_AMO_BAND:                                                                       \
		v = (T)(v & o);                                                                    \
		break;                                                                             \
	case VERVE_AMO_BXOR:                                                                       \
		v = (T)(v ^ o);                                                                    \
		break;                                                                             \
	case VERVE_AMO_MSWAP:                                                                      \
		v = (T)((o & c) | (v & ~c));                                                       \
		break;

/* Defines a function that applies op to *value. The operands need not be aligned. */
#define COMBINE(name, T, cases)                                                                    \
	static void name(unsigned op, union value *value, const void *operand,                     \
			 const void *compare)                                                      \
	{                                                                                          \
		T v, o, c;                                                                         \
                                                                                                   \
		memcpy(&v, value, sizeof(v));                                                      \
		memcpy(&o, operand, sizeof(o));                                                    \
		memcpy(&c, compare, sizeof(c));                                                    \
		switch (op) {                                                                      \
			cases                                                                      \
		}                                                                                  \
		memcpy(value, &v, sizeof(v));                                                      \
	}

#define COMBINE_INTEGER(name, T, U) COMBINE(name, T, ANY_TYPE(T, U) ORDERED_TYPE INTEGER_TYPE(T))
#define COMBINE_REAL(name, T) COMBINE(name, T, ANY_TYPE(T, T) ORDERED_TYPE)
#define COMBINE_COMPLEX(name, T) COMBINE(name, T, ANY_TYPE(T, T))

COMBINE_INTEGER(combine_int8, int8_t, uint64_t)
COMBINE_INTEGER(combine_uint8, uint8_t, uint64_t)
COMBINE_INTEGER(combine_int16, int16_t, uint64_t)
COMBINE_INTEGER(combine_uint16, uint16_t, uint64_t)
COMBINE_INTEGER(combine_int32, int32_t, uint64_t)
COMBINE_INTEGER(combine_uint32, uint32_t, uint64_t)
COMBINE_INTEGER(combine_int64, int64_t, uint64_t)
COMBINE_INTEGER(combine_uint64, uint64_t, uint64_t)
COMBINE_INTEGER(combine_int128, int128, uint128)
COMBINE_INTEGER(combine_uint128, uint128, uint128)
COMBINE_REAL(combine_float, float)
COMBINE_REAL(combine_double, double)
COMBINE_REAL(combine_long_double, long double)
COMBINE_COMPLEX(combine_float_complex, float complex)
COMBINE_COMPLEX(combine_double_complex, double complex)
COMBINE_COMPLEX(combine_long_double_complex, long double complex)

#define BIT(op) (1u << VERVE_AMO_##op)

/*
 * All types support complex_ops, all types but the complex ones order_ops, and only integers
 * bit_ops: complex numbers have no order, floating-point numbers no bitwise operations.
 */
static const uint32_t complex_ops = BIT(SUM) | BIT(DIFF) | BIT(PROD) | BIT(LOR) | BIT(LAND) |
				    BIT(LXOR) | BIT(READ) | BIT(WRITE) | BIT(CSWAP) | BIT(CSWAP_NE);
static const uint32_t order_ops = BIT(MIN) | BIT(MAX) | BIT(CSWAP_LE) | BIT(CSWAP_LT) |
				  BIT(CSWAP_GE) | BIT(CSWAP_GT);
static const uint32_t bit_ops = BIT(BOR) | BIT(BAND) | BIT(BXOR) | BIT(MSWAP);

enum class { INTEGER, REAL, COMPLEX };

static const struct type {
	size_t size;
	enum class class;
	void (*combine)(unsigned op, union value *value, const void *operand, const void *compare);
} types[VERVE_AMO_TYPES] = {
	[VERVE_AMO_INT8] = {1, INTEGER, combine_int8},
	[VERVE_AMO_UINT8] = {1, INTEGER, combine_uint8},
	[VERVE_AMO_INT16] = {2, INTEGER, combine_int16},
	[VERVE_AMO_UINT16] = {2, INTEGER, combine_uint16},
	[VERVE_AMO_INT32] = {4, INTEGER, combine_int32},
	[VERVE_AMO_UINT32] = {4, INTEGER, combine_uint32},
	[VERVE_AMO_INT64] = {8, INTEGER, combine_int64},
	[VERVE_AMO_UINT64] = {8, INTEGER, combine_uint64},
	[VERVE_AMO_INT128] = {16, INTEGER, combine_int128},
	[VERVE_AMO_UINT128] = {16, INTEGER, combine_uint128},
	[VERVE_AMO_FLOAT] = {sizeof(float), REAL, combine_float},
	[VERVE_AMO_DOUBLE] = {sizeof(double), REAL, combine_double},
	[VERVE_AMO_LONG_DOUBLE] = {sizeof(long double), REAL, combine_long_double},
	[VERVE_AMO_FLOAT_COMPLEX] = {sizeof(float complex), COMPLEX, combine_float_complex},
	[VERVE_AMO_DOUBLE_COMPLEX] = {sizeof(double complex), COMPLEX, combine_double_complex},
	[VERVE_AMO_LONG_DOUBLE_COMPLEX] = {sizeof(long double complex), COMPLEX,
					   combine_long_double_complex},
};

size_t verve_amo_size(unsigned type)
{
	return type < VERVE_AMO_TYPES ? types[type].size : 0;
}

bool verve_amo_is_valid(enum verve_amo_form form, unsigned op, unsigned type)
{
	uint32_t ops = complex_ops;

	if (op >= VERVE_AMO_OPS || type >= VERVE_AMO_TYPES)
		return false;
	if (verve_amo_compares(op) != (form == VERVE_AMO_COMPARE) ||
	    (op == VERVE_AMO_READ && form != VERVE_AMO_FETCH))
		return false;
	if (types[type].class != COMPLEX)
		ops |= order_ops;
	if (types[type].class == INTEGER)
		ops |= bit_ops;
	return ops & 1u << op;
}

/*
 * Held while run_locked changes one element that no instruction can exchange. No other lock is
 * taken while it is held.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#ifdef __x86_64__
/*
 * An x86-64 processor with AVX guarantees that aligned 16-byte loads are atomic, and it has
 * cmpxchg16b.
 */
static bool has_exchange16(void)
{
	return __builtin_cpu_supports("avx");
}

static void load16(const void *target, union value *value)
{
	typedef long long vector __attribute__((vector_size(16)));
	vector v;

	/* Not cmpxchg16b: that instruction writes, and the target may be read-only memory. */
	__asm__ volatile("movdqa %1, %0" : "=x"(v) : "m"(*(const vector *)target) : "memory");
	memcpy(value, &v, sizeof(v));
}

static bool swap16(void *target, union value *old, const union value *new)
{
	bool swapped;

	/* In assembly, because compilers call libatomic for this, which not every host has. */
	__asm__ volatile("lock cmpxchg16b %1"
			 : "=@ccz"(swapped), "+m"(*(uint128 *)target), "+a"(old->u64[0]),
			   "+d"(old->u64[1])
			 : "b"(new->u64[0]), "c"(new->u64[1])
			 : "memory");
	return swapped;
}
#else
static bool has_exchange16(void)
{
	return false;
}

static void load16(const void *target, union value *value)
{
	memcpy(value, target, 16);
}

static bool swap16(void *target, union value *old, const union value *new)
{
	(void)target, (void)old, (void)new;
	return false;
}
#endif

/* Whether one instruction can exchange the element. */
static bool is_exchangeable(const void *target, size_t size)
{
	if ((uintptr_t)target & (size - 1))
		return false;
	return size <= 8 || (size == 16 && has_exchange16());
}

static void load(const void *target, union value *value, size_t size)
{
	switch (size) {
	case 1:
		value->u8 = __atomic_load_n((const uint8_t *)target, __ATOMIC_SEQ_CST);
		break;
	case 2:
		value->u16 = __atomic_load_n((const uint16_t *)target, __ATOMIC_SEQ_CST);
		break;
	case 4:
		value->u32 = __atomic_load_n((const uint32_t *)target, __ATOMIC_SEQ_CST);
		break;
	case 8:
		value->u64[0] = __atomic_load_n((const uint64_t *)target, __ATOMIC_SEQ_CST);
		break;
	default:
		load16(target, value);
		break;
	}
}

/*
 * Writes *new to the element if the element still equals *old. False: the element has changed, and
 * *old is now its value. The comparison is by bits, so that a NaN equals itself.
 */
static bool swap(void *target, union value *old, const union value *new, size_t size)
{
	switch (size) {
	case 1:
		return __atomic_compare_exchange_n((uint8_t *)target, &old->u8, new->u8, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	case 2:
		return __atomic_compare_exchange_n((uint16_t *)target, &old->u16, new->u16, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	case 4:
		return __atomic_compare_exchange_n((uint32_t *)target, &old->u32, new->u32, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	case 8:
		return __atomic_compare_exchange_n((uint64_t *)target, &old->u64[0], new->u64[0],
						   false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	default:
		return swap16(target, old, new);
	}
}

static void run_free(const struct type *type, unsigned op, void *target, const void *operand,
		     const void *compare, union value *old)
{
	union value new;

	load(target, old, type->size);
	if (op == VERVE_AMO_READ)
		return;
	do {
		new = *old;
		type->combine(op, &new, operand, compare);
	} while (!swap(target, old, &new, type->size));
}

/* The thread that held the lock is not in the child. */
static void in_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static void run_locked(const struct type *type, unsigned op, void *target, const void *operand,
		       const void *compare, union value *old)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_fork);
	pthread_mutex_lock(&lock);
	memcpy(old, target, type->size);
	if (op != VERVE_AMO_READ) {
		union value new = *old;

		type->combine(op, &new, operand, compare);
		memcpy(target, &new, type->size);
	}
	pthread_mutex_unlock(&lock);
}

void verve_amo_run(unsigned op, unsigned type, void *target, size_t count, const void *operand,
		   const void *compare, void *result)
{
	const struct type *info = &types[type];
	bool free = is_exchangeable(target, info->size), compares = verve_amo_compares(op);

	assert(op < VERVE_AMO_OPS && type < VERVE_AMO_TYPES);
	for (size_t at = 0; at < count * info->size; at += info->size) {
		const char *o = op == VERVE_AMO_READ ? NULL : (const char *)operand + at;
		/* combine copies both operands, even where op has one. So c must be readable. */
		const char *c = compares ? (const char *)compare + at : o;
		union value old = {.u8 = 0};

		if (free)
			run_free(info, op, (char *)target + at, o, c, &old);
		else
			run_locked(info, op, (char *)target + at, o, c, &old);
		if (result)
			memcpy((char *)result + at, &old, info->size);
	}
}
