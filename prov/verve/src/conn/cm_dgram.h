/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Input of the connection manager: datagrams that arrived, and errors of datagrams that did not
 * reach their peer.
 *
 * This file owns the order of checks before a datagram reaches its connection: decoding, the guard
 * (conn/guard.h), the version, the entry. It must not know requests or timers. Service thread.
 */
#ifndef VERVE_CONN_CM_DGRAM_H
#define VERVE_CONN_CM_DGRAM_H

#include <stdbool.h>
#include <stdint.h>

struct verve_cm;
struct verve_cm_entry;
struct verve_hello;

/*
 * Gives a checked datagram to the entry's connection, and has our end opened if the connection
 * wants that. A busy entry keeps the datagram.
 */
void verve_cm_receive(struct verve_cm *cm, struct verve_cm_entry *entry,
		      const struct verve_hello *hello, uint64_t now);
/* Takes at most 256 datagrams off the socket. True: more may wait. now: verve_net_now(). */
bool verve_cm_step_dgrams(struct verve_cm *cm, uint64_t now);

#endif
