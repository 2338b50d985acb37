/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transport timeout: the times that devices know. */
#include "net/timeout.h"

enum { EXPONENT_MAX = 31, UNIT_NS = 4096, WORST_TIMES = 4 };

struct verve_net_timeout verve_net_timeout_choose(uint32_t wanted_ms, uint32_t retries)
{
	uint64_t tries = retries + 1, wanted = wanted_ms * UINT64_C(1000000);
	struct verve_net_timeout timeout = {.exponent = 1}; /* 0 would mean: for ever */

	while (timeout.exponent < EXPONENT_MAX &&
	       tries * UNIT_NS << timeout.exponent < wanted)
		timeout.exponent++;
	timeout.nominal = tries * UNIT_NS << timeout.exponent;
	timeout.worst = WORST_TIMES * timeout.nominal;
	return timeout;
}
