/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic memory operations: every type and operation is compared with a simple model of numbers
 * without types, at every alignment of the target. Threads that use the same element lose no
 * update.
 */
#include "rma/amo.h"

#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef __int128 int128;
typedef unsigned __int128 uint128;

enum { GUARD = 0x5a, SIZE_MAX_OF_TYPES = 32 };

/* A number of any type: an integer, or a real and an imaginary part. */
struct number {
	int128 i;
	long double re, im;
};

static bool is_integer(unsigned type)
{
	return type <= VERVE_AMO_UINT64 || type >= VERVE_AMO_INT128;
}

static bool is_signed(unsigned type)
{
	return type % 2 == 0;
}

static bool is_complex(unsigned type)
{
	return type == VERVE_AMO_FLOAT_COMPLEX || type == VERVE_AMO_DOUBLE_COMPLEX ||
	       type == VERVE_AMO_LONG_DOUBLE_COMPLEX;
}

/* The integer i as the type stores it: two's complement, higher bits cut off. */
static int128 wrap(unsigned type, int128 i)
{
	unsigned bits = 8 * (unsigned)verve_amo_size(type);
	uint128 u = (uint128)i;

	if (bits == 128 || !is_integer(type))
		return i;
	u &= ((uint128)1 << bits) - 1;
	if (is_signed(type) && u >> (bits - 1))
		u |= ~(uint128)0 << bits;
	return (int128)u;
}

static void put(unsigned type, void *to, struct number n)
{
	float f[2] = {(float)n.re, (float)n.im};
	double d[2] = {(double)n.re, (double)n.im};
	long double l[2] = {n.re, n.im};

	memset(to, 0, verve_amo_size(type));
	switch (type) {
	case VERVE_AMO_FLOAT:
	case VERVE_AMO_FLOAT_COMPLEX:
		memcpy(to, f, verve_amo_size(type));
		break;
	case VERVE_AMO_DOUBLE:
	case VERVE_AMO_DOUBLE_COMPLEX:
		memcpy(to, d, verve_amo_size(type));
		break;
	case VERVE_AMO_LONG_DOUBLE:
	case VERVE_AMO_LONG_DOUBLE_COMPLEX:
		memcpy(to, l, verve_amo_size(type));
		break;
	default:
		memcpy(to, &n.i, verve_amo_size(type));
		break;
	}
}

static struct number get(unsigned type, const void *from)
{
	struct number n = {0};
	float f[2] = {0};
	double d[2] = {0};
	long double l[2] = {0};

	switch (type) {
	case VERVE_AMO_FLOAT:
	case VERVE_AMO_FLOAT_COMPLEX:
		memcpy(f, from, verve_amo_size(type));
		n.re = f[0];
		n.im = f[1];
		break;
	case VERVE_AMO_DOUBLE:
	case VERVE_AMO_DOUBLE_COMPLEX:
		memcpy(d, from, verve_amo_size(type));
		n.re = d[0];
		n.im = d[1];
		break;
	case VERVE_AMO_LONG_DOUBLE:
	case VERVE_AMO_LONG_DOUBLE_COMPLEX:
		memcpy(l, from, verve_amo_size(type));
		n.re = l[0];
		n.im = l[1];
		break;
	default:
		memcpy(&n.i, from, verve_amo_size(type));
		n.i = wrap(type, n.i);
		break;
	}
	return n;
}

static bool same(long double a, long double b)
{
	return (isnan(a) && isnan(b)) || a == b;
}

static bool is_same(struct number a, struct number b)
{
	return a.i == b.i && same(a.re, b.re) && same(a.im, b.im);
}

/* a compared with b: -1 less, 0 equal, 1 greater, 2 none of these (NaN, or complex and unequal). */
static int order(unsigned type, struct number a, struct number b)
{
	if (type == VERVE_AMO_UINT128)
		return ((uint128)a.i > (uint128)b.i) - ((uint128)a.i < (uint128)b.i);
	if (is_integer(type))
		return (a.i > b.i) - (a.i < b.i);
	if (isnan(a.re) || isnan(b.re) || isnan(a.im) || isnan(b.im))
		return 2;
	if (is_complex(type))
		return a.re == b.re && a.im == b.im ? 0 : 2;
	return (a.re > b.re) - (a.re < b.re);
}

static bool is_true(struct number n)
{
	return n.i || n.re != 0 || n.im != 0;
}

static struct number truth(unsigned type, bool value)
{
	return is_integer(type) ? (struct number){.i = value} : (struct number){.re = value};
}

static struct number calculate(unsigned op, unsigned type, struct number v, struct number o)
{
	uint128 a = (uint128)v.i, b = (uint128)o.i;
	struct number n = {0};

	switch (op) {
	case VERVE_AMO_SUM:
		n = (struct number){(int128)(a + b), v.re + o.re, v.im + o.im};
		break;
	case VERVE_AMO_DIFF:
		n = (struct number){(int128)(a - b), v.re - o.re, v.im - o.im};
		break;
	case VERVE_AMO_PROD:
		n.i = (int128)(a * b);
		n.re = is_complex(type) ? v.re * o.re - v.im * o.im : v.re * o.re;
		n.im = is_complex(type) ? v.re * o.im + v.im * o.re : 0;
		break;
	case VERVE_AMO_BOR:
		n.i = v.i | o.i;
		break;
	case VERVE_AMO_BAND:
		n.i = v.i & o.i;
		break;
	case VERVE_AMO_BXOR:
		n.i = v.i ^ o.i;
		break;
	default:
		cr_assert_fail("no arithmetic");
	}
	n.i = wrap(type, n.i);
	return n;
}

/* The result of the operation, as the text of fi_atomic(3) defines it. */
static struct number model(unsigned op, unsigned type, struct number v, struct number o,
			   struct number c)
{
	int cmp = order(type, c, v);

	switch (op) {
	case VERVE_AMO_MIN:
		return order(type, o, v) == -1 ? o : v;
	case VERVE_AMO_MAX:
		return order(type, o, v) == 1 ? o : v;
	case VERVE_AMO_LOR:
		return truth(type, is_true(v) || is_true(o));
	case VERVE_AMO_LAND:
		return truth(type, is_true(v) && is_true(o));
	case VERVE_AMO_LXOR:
		return truth(type, is_true(v) != is_true(o));
	case VERVE_AMO_READ:
		return v;
	case VERVE_AMO_WRITE:
		return o;
	case VERVE_AMO_CSWAP:
		return cmp == 0 ? o : v;
	case VERVE_AMO_CSWAP_NE:
		return cmp != 0 ? o : v;
	case VERVE_AMO_CSWAP_LE:
		return cmp == -1 || cmp == 0 ? o : v;
	case VERVE_AMO_CSWAP_LT:
		return cmp == -1 ? o : v;
	case VERVE_AMO_CSWAP_GE:
		return cmp == 1 || cmp == 0 ? o : v;
	case VERVE_AMO_CSWAP_GT:
		return cmp == 1 ? o : v;
	case VERVE_AMO_MSWAP:
		return (struct number){.i = (o.i & c.i) | (v.i & ~c.i)};
	default:
		return calculate(op, type, v, o);
	}
}

/* Ends of ranges, signs, halves, infinities and NaN. Every type represents its values exactly. */
static size_t choose_numbers(unsigned type, struct number *numbers)
{
	static const long double reals[] = {0, -0.0L, 1, -1, 2.5L, -7.25L, 1024, INFINITY,
					    -INFINITY, NAN};
	uint128 top = is_integer(type) ? (uint128)1 << (8 * verve_amo_size(type) - 1) : 0;
	const uint128 integers[] = {0, 1, 2, 3, -1, -2, 100, 0x5a, -0x5b, top, top - 1, top / 2};
	size_t count = 0;

	if (is_integer(type)) {
		for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
			numbers[count++].i = wrap(type, (int128)integers[i]);
		return count;
	}
	for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++) {
		/* C (annex G) says what infinite complex products are; the model does not know. */
		if (is_complex(type) && isinf(reals[i]))
			continue;
		numbers[count].re = reals[i];
		numbers[count++].im = is_complex(type) ? reals[(i + 3) % 7] : 0;
	}
	return count;
}

/*
 * Tests one element at offset bytes from an aligned address; guard bytes around it must not change.
 */
static void expect_one(unsigned op, unsigned type, size_t offset, struct number v, struct number o,
		       struct number c)
{
	_Alignas(64) unsigned char memory[3 * SIZE_MAX_OF_TYPES];
	unsigned char operand[SIZE_MAX_OF_TYPES + 1], compare[SIZE_MAX_OF_TYPES + 1];
	unsigned char result[SIZE_MAX_OF_TYPES];
	unsigned char *target = memory + SIZE_MAX_OF_TYPES + offset;
	struct number want = model(op, type, v, o, c);
	size_t size = verve_amo_size(type);

	memset(memory, GUARD, sizeof(memory));
	put(type, target, v);
	put(type, operand + 1, o);
	put(type, compare + 1, c);
	verve_amo_run(op, type, target, 1, op == VERVE_AMO_READ ? NULL : operand + 1,
		      verve_amo_compares(op) ? compare + 1 : NULL, result);
	cr_assert(is_same(get(type, result), v), "op %u, type %u: result", op, type);
	cr_assert(is_same(get(type, target), want), "op %u, type %u: %Lg%+Lgi, not %Lg%+Lgi", op,
		  type, get(type, target).re, get(type, target).im, want.re, want.im);
	for (unsigned char *at = memory; at < memory + sizeof(memory); at++)
		if (at < target || at >= target + size)
			cr_assert_eq(*at, GUARD, "op %u, type %u: written outside", op, type);
}

static bool is_any_valid(unsigned op, unsigned type)
{
	return verve_amo_is_valid(VERVE_AMO_UPDATE, op, type) ||
	       verve_amo_is_valid(VERVE_AMO_FETCH, op, type) ||
	       verve_amo_is_valid(VERVE_AMO_COMPARE, op, type);
}

static void expect_type(unsigned type, size_t offset)
{
	struct number numbers[16] = {0};
	size_t count = choose_numbers(type, numbers);

	for (unsigned op = 0; op < VERVE_AMO_OPS; op++) {
		if (!is_any_valid(op, type))
			continue;
		for (size_t i = 0; i < count * count * count; i++)
			expect_one(op, type, offset, numbers[i % count],
				   numbers[i / count % count], numbers[i / count / count]);
	}
}

Test(amo, every_operation_on_every_type_is_what_the_manual_says)
{
	for (unsigned type = 0; type < VERVE_AMO_TYPES; type++)
		expect_type(type, 0);
}

Test(amo, misaligned_targets_too)
{
	for (unsigned type = 0; type < VERVE_AMO_TYPES; type++)
		expect_type(type, 1);
	/* C aligns these types to 4 and 8 bytes; their natural alignment is 8 and 16 bytes. */
	expect_type(VERVE_AMO_FLOAT_COMPLEX, 4);
	expect_type(VERVE_AMO_DOUBLE_COMPLEX, 8);
}

Test(amo, sizes_are_those_of_the_types)
{
	static const size_t sizes[VERVE_AMO_TYPES] = {
		1, 1, 2, 2, 4, 4, 8, 8, sizeof(float), sizeof(double), sizeof(float complex),
		sizeof(double complex), sizeof(long double), sizeof(long double complex), 16, 16};

	for (unsigned type = 0; type < VERVE_AMO_TYPES; type++)
		cr_expect_eq(verve_amo_size(type), sizes[type]);
	cr_expect_eq(verve_amo_size(VERVE_AMO_TYPES), 0);
	cr_expect_eq(verve_amo_size(UINT32_MAX), 0);
}

/* The number of operations of each form, for each class of types. */
Test(amo, valid_combinations)
{
	for (unsigned type = 0; type < VERVE_AMO_TYPES; type++) {
		unsigned count[3] = {0};

		for (unsigned form = 0; form < 3; form++)
			for (unsigned op = 0; op < VERVE_AMO_OPS + 20; op++)
				count[form] += verve_amo_is_valid(form, op, type);
		cr_expect_eq(count[VERVE_AMO_UPDATE],
			     is_complex(type) ? 7 : is_integer(type) ? 12 : 9, "%u", type);
		cr_expect_eq(count[VERVE_AMO_FETCH], count[VERVE_AMO_UPDATE] + 1);
		cr_expect_eq(count[VERVE_AMO_COMPARE],
			     is_complex(type) ? 2 : is_integer(type) ? 7 : 6, "%u", type);
	}
	cr_expect_not(verve_amo_is_valid(VERVE_AMO_FETCH, VERVE_AMO_SUM, VERVE_AMO_TYPES));
	cr_expect_not(verve_amo_is_valid(VERVE_AMO_UPDATE, VERVE_AMO_READ, VERVE_AMO_INT32));
	cr_expect_not(verve_amo_is_valid(VERVE_AMO_FETCH, VERVE_AMO_CSWAP, VERVE_AMO_INT32));
	cr_expect_not(verve_amo_is_valid(VERVE_AMO_COMPARE, VERVE_AMO_SUM, VERVE_AMO_INT32));
	cr_expect_not(verve_amo_is_valid(VERVE_AMO_COMPARE, VERVE_AMO_MSWAP, VERVE_AMO_DOUBLE));
	cr_expect_not(verve_amo_is_valid(VERVE_AMO_UPDATE, VERVE_AMO_MIN, VERVE_AMO_FLOAT_COMPLEX));
}

Test(amo, elements_of_an_array_are_each_their_own)
{
	uint32_t target[5] = {1, 2, 3, 4, 5}, operand[4] = {10, 20, 30, 40}, result[4];
	uint32_t compare[4] = {11, 0, 33, 0};

	verve_amo_run(VERVE_AMO_SUM, VERVE_AMO_UINT32, target, 4, operand, NULL, result);
	for (uint32_t i = 0; i < 4; i++) {
		cr_expect_eq(target[i], 11 * (i + 1));
		cr_expect_eq(result[i], i + 1);
	}
	verve_amo_run(VERVE_AMO_CSWAP, VERVE_AMO_UINT32, target, 4, operand, compare, NULL);
	cr_expect_eq(target[0], 10);
	cr_expect_eq(target[1], 22);
	cr_expect_eq(target[2], 30);
	cr_expect_eq(target[3], 44);
	cr_expect_eq(target[4], 5);
}

Test(amo, reading_needs_no_right_to_write)
{
	unsigned char result[SIZE_MAX_OF_TYPES], zero[SIZE_MAX_OF_TYPES] = {0};
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(page, MAP_FAILED);
	for (unsigned type = 0; type < VERVE_AMO_TYPES; type++)
		for (size_t offset = 0; offset < 2; offset++) {
			memset(result, 1, sizeof(result));
			verve_amo_run(VERVE_AMO_READ, type, page + offset, 1, NULL, NULL, result);
			cr_expect_arr_eq(result, zero, verve_amo_size(type));
		}
	munmap(page, 4096);
}

enum { THREADS = 4, ROUNDS = 20000 };

struct crew {
	unsigned type;
	unsigned op;
	void *target;
};

static void *work(void *arg)
{
	const struct crew *crew = arg;
	unsigned char one[SIZE_MAX_OF_TYPES], two[SIZE_MAX_OF_TYPES];
	unsigned char old[SIZE_MAX_OF_TYPES], seen[SIZE_MAX_OF_TYPES];

	put(crew->type, one, (struct number){1, 1, 0});
	for (int i = 0; i < ROUNDS; i++) {
		if (crew->op == VERVE_AMO_SUM) {
			verve_amo_run(VERVE_AMO_SUM, crew->type, crew->target, 1, one, NULL, NULL);
			continue;
		}
		/* The same addition with compare and swap, as applications do it. */
		verve_amo_run(VERVE_AMO_READ, crew->type, crew->target, 1, NULL, NULL, old);
		for (;;) {
			memcpy(two, old, sizeof(two));
			verve_amo_run(VERVE_AMO_SUM, crew->type, two, 1, one, NULL, NULL);
			verve_amo_run(VERVE_AMO_CSWAP, crew->type, crew->target, 1, two, old, seen);
			if (is_same(get(crew->type, seen), get(crew->type, old)))
				break;
			memcpy(old, seen, sizeof(old));
		}
	}
	return NULL;
}

static void expect_nothing_lost(unsigned type, unsigned op, size_t offset)
{
	_Alignas(64) unsigned char memory[2 * SIZE_MAX_OF_TYPES] = {0};
	struct crew crew = {type, op, memory + offset};
	int128 total = wrap(type, THREADS * ROUNDS);
	pthread_t threads[THREADS];
	struct number end;

	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, work, &crew), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	end = get(type, crew.target);
	cr_expect(is_integer(type) ? end.i == total : end.re == THREADS * ROUNDS,
		  "type %u, op %u, offset %zu", type, op, offset);
}

Test(amo, threads_lose_nothing)
{
	for (unsigned type = 0; type < VERVE_AMO_TYPES; type++)
		for (size_t offset = 0; offset < 2; offset++)
			expect_nothing_lost(type, VERVE_AMO_SUM, offset);
	expect_nothing_lost(VERVE_AMO_UINT32, VERVE_AMO_CSWAP, 0);
	expect_nothing_lost(VERVE_AMO_DOUBLE, VERVE_AMO_CSWAP, 0);
	expect_nothing_lost(VERVE_AMO_INT128, VERVE_AMO_CSWAP, 0);
	expect_nothing_lost(VERVE_AMO_LONG_DOUBLE_COMPLEX, VERVE_AMO_CSWAP, 0);
}

static uint64_t shared;
static bool go_on;

static void *count_on_cpu(void *arg)
{
	uint64_t *count = arg;

	while (__atomic_load_n(&go_on, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(&shared, 1, __ATOMIC_SEQ_CST);
		(*count)++;
	}
	return NULL;
}

/* The target's application adds to the same element with the processor's atomics. */
Test(amo, atomic_with_respect_to_the_processor)
{
	uint64_t one = 1, counted = 0;
	pthread_t thread;

	go_on = true;
	cr_assert_eq(pthread_create(&thread, NULL, count_on_cpu, &counted), 0);
	for (int i = 0; i < 200000; i++)
		verve_amo_run(VERVE_AMO_SUM, VERVE_AMO_UINT64, &shared, 1, &one, NULL, NULL);
	__atomic_store_n(&go_on, false, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	cr_expect_eq(shared, counted + 200000);
}
