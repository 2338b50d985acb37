/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transport timeout: the times that devices know, and how long the longest may take. */
#include "net/timeout.h"

#include <criterion/criterion.h>

#include "base/config.h"

static void expect(uint32_t wanted_ms, uint32_t retries, unsigned exponent, uint64_t nominal,
		   uint64_t worst)
{
	struct verve_net_timeout timeout = verve_net_timeout_choose(wanted_ms, retries);

	cr_expect_eq(timeout.exponent, exponent, "%u ms, %u retries: exponent %u", wanted_ms,
		     retries, timeout.exponent);
	cr_expect_eq(timeout.nominal, nominal);
	cr_expect_eq(timeout.worst, worst);
}

/* The figures of the manual page. */
Test(timeout, of_the_defaults)
{
	expect(verve_config.transport_timeout, verve_config.retry_count, 17, 4294967296,
	       17179869184);
}

Test(timeout, of_the_bounds)
{
	expect(10, 7, 9, 16777216, 67108864);
	expect(10, 0, 12, 16777216, 67108864);
	expect(600000, 7, 25, 1099511627776, 4398046511104);
	expect(600000, 0, 28, 1099511627776, 4398046511104);
	expect(0, 0, 1, 8192, 32768); /* 0 would mean: for ever */
	expect(UINT32_MAX, 0, 31, 8796093022208, 35184372088832);
}

/* 16.777216 ms is what a device knows: no shorter time will do, and not twice as long. */
Test(timeout, is_the_shortest_that_will_do)
{
	for (uint32_t wanted = 10; wanted <= 600000; wanted += 7)
		for (uint32_t retries = 0; retries <= 7; retries++) {
			struct verve_net_timeout timeout =
				verve_net_timeout_choose(wanted, retries);

			cr_assert_geq(timeout.nominal, wanted * UINT64_C(1000000));
			cr_assert_lt(timeout.nominal / 2, wanted * UINT64_C(1000000));
		}
}
