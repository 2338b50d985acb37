/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pointers: growth, holes, indices beyond the end. */
#include "base/pointers.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdint.h>

static struct verve_pointers pointers;
static int one, two;

static void teardown(void)
{
	verve_pointers_fini(&pointers);
}

TestSuite(pointers, .fini = teardown);

Test(pointers, nothing_is_where_nothing_was_set)
{
	cr_expect_null(verve_pointers_get(&pointers, 0));
	cr_assert_eq(verve_pointers_set(&pointers, 3, &one), 0);
	cr_expect_null(verve_pointers_get(&pointers, 2));
	cr_expect_null(verve_pointers_get(&pointers, pointers.count));
	cr_expect_null(verve_pointers_get(&pointers, SIZE_MAX));
	cr_expect_eq(verve_pointers_get(&pointers, 3), &one);
}

Test(pointers, growing_keeps_what_was_set)
{
	cr_assert_eq(verve_pointers_set(&pointers, 1, &one), 0);
	cr_assert_eq(verve_pointers_set(&pointers, 5000, &two), 0);
	cr_expect_eq(verve_pointers_get(&pointers, 1), &one);
	cr_expect_eq(verve_pointers_get(&pointers, 5000), &two);
	cr_expect_null(verve_pointers_get(&pointers, 4999));
}

Test(pointers, null_beyond_the_end_takes_no_memory)
{
	cr_assert_eq(verve_pointers_set(&pointers, 1u << 30, NULL), 0);
	cr_expect_eq(pointers.count, 0);
}

Test(pointers, what_is_taken_away_is_gone)
{
	cr_assert_eq(verve_pointers_set(&pointers, 7, &one), 0);
	cr_assert_eq(verve_pointers_set(&pointers, 7, NULL), 0);
	cr_expect_null(verve_pointers_get(&pointers, 7));
	verve_pointers_fini(&pointers);
	cr_expect_null(verve_pointers_get(&pointers, 7));
}
