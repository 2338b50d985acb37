/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clock: the monotonic clock. */
#include "common/clock.h"

#include <time.h>

uint64_t clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}
