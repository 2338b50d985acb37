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

Test(memlock, no_limit_is_none)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	ipc_lock_drop();
	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		cr_skip("the host's hard limit of locked memory is lower");
	cr_expect_eq(verve_memlock_share(), SIZE_MAX);
}
