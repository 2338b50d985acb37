/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transport timeout: how long a device tries to reach a peer that does not acknowledge a packet.
 *
 * A device knows few times: 4.096 us * 2^exponent for each try. It may take up to four times as
 * long for one (InfiniBand spec. vol. 1, 9.9.2.1.1 and 11.2.4.2). A plain function; any thread.
 */
#ifndef VERVE_NET_TIMEOUT_H
#define VERVE_NET_TIMEOUT_H

#include <stdint.h>

struct verve_net_timeout {
	uint8_t exponent; /* the local ACK timeout of a queue pair; 1 to 31 */
	/* Nanoseconds of the first try and all retries together: as reckoned, and at most. */
	uint64_t nominal, worst;
};

/*
 * The shortest timeout whose nominal time is at least wanted_ms (milliseconds), up to an hour.
 * retries: 0 to 7.
 */
struct verve_net_timeout verve_net_timeout_choose(uint32_t wanted_ms, uint32_t retries);

#endif
