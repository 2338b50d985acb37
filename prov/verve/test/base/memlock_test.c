/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Locked memory: a quarter of the limit, where the limit counts. */
#include "base/memlock.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <sys/resource.h>

#include "../support/ipc_lock.h"

enum { LIMIT = 64 << 10 };

static void set_limit(void)
{
	struct rlimit limit;

	cr_assert_eq(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	limit.rlim_cur = LIMIT;
	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

Test(memlock, a_quarter_of_the_limit)
{
	ipc_lock_drop();
	set_limit();
	cr_expect_eq(verve_memlock_share(), LIMIT / 4);
}

/* Root of the first user namespace has the capability, and everybody else has not. */
Test(memlock, limit_that_does_not_count_is_none)
{
	size_t share;

	set_limit();
	share = verve_memlock_share();
	cr_expect(share == SIZE_MAX || share == LIMIT / 4);
	ipc_lock_drop();
	cr_expect_eq(verve_memlock_share(), LIMIT / 4);
}
