/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pool: alignment, distinctness, limit, growth by chunks, reuse. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"

Test(pool, objects_are_aligned_distinct_and_of_full_size)
{
	enum { COUNT = 1500, SIZE = 200 };
	static unsigned char *objects[COUNT];
	struct verve_pool pool;
	size_t same = 0;

	verve_pool_init(&pool, SIZE, SIZE_MAX);
	cr_assert_eq(pool.size % 64, 0);
	cr_assert_eq(pool.count, 0);
	for (int i = 0; i < COUNT; i++) {
		objects[i] = verve_pool_alloc(&pool);
		cr_assert_not_null(objects[i]);
		cr_assert_eq((uintptr_t)objects[i] % 64, 0);
		memset(objects[i], i, pool.size);
	}
	cr_assert_eq(pool.used, COUNT);
	for (int i = 0; i < COUNT; i++)
		for (size_t byte = 0; byte < pool.size; byte++)
			same += objects[i][byte] == (unsigned char)i;
	cr_assert_eq(same, COUNT * pool.size);
	for (int i = 0; i < COUNT; i++)
		verve_pool_free(&pool, objects[i]);
	cr_assert_eq(pool.used, 0);
	verve_pool_fini(&pool);
}

Test(pool, limit_is_exact)
{
	enum { LIMIT = 1003 };
	static void *objects[LIMIT];
	struct verve_pool pool;

	verve_pool_init(&pool, 64, LIMIT);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < LIMIT; i++) {
			objects[i] = verve_pool_alloc(&pool);
			if (!objects[i])
				cr_assert_fail("object %d of %d", i, LIMIT);
		}
		cr_assert_null(verve_pool_alloc(&pool));
		cr_assert_eq(pool.used, LIMIT);
		cr_assert_eq(pool.count, LIMIT);
		for (int i = 0; i < LIMIT; i++)
			verve_pool_free(&pool, objects[i]);
	}
	verve_pool_fini(&pool);
}

Test(pool, large_objects_come_in_small_chunks)
{
	struct verve_pool pool;

	verve_pool_init(&pool, 1 << 20, 100);
	cr_assert_not_null(verve_pool_alloc(&pool));
	cr_assert_leq(pool.count, 8);
	verve_pool_fini(&pool);
}

Test(pool, the_object_freed_last_is_the_next)
{
	struct verve_pool pool;
	void *first, *second;

	verve_pool_init(&pool, 1, 10);
	first = verve_pool_alloc(&pool);
	second = verve_pool_alloc(&pool);
	cr_assert_neq(first, second);
	verve_pool_free(&pool, first);
	cr_assert_eq(verve_pool_alloc(&pool), first);
	cr_assert_eq(pool.count, 10);
	verve_pool_fini(&pool);
	cr_assert_eq(pool.count, 0);
}
