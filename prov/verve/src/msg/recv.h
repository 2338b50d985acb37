/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receiving: arrived messages and posted receives find each other. The engine's lock protects everything here. */
#ifndef VERVE_MSG_RECV_H
#define VERVE_MSG_RECV_H

#include <stdbool.h>

#include "xport/op.h"
#include "xport/request.h"

struct verve_unexpected;
struct verve_wire_packet;

extern const struct verve_op_class verve_recv_class;

/*
 * Accepts a receive; addr UINT64_MAX takes from any peer. 0: it will complete once.
 * -FI_EAGAIN: no memory; -FI_EINVAL: no such address.
 */
int verve_recv(struct verve_xport *xport, const struct verve_request *request);
/* EAGER or RTS has arrived. */
void verve_recv_arrived(struct verve_xport *xport, struct verve_link *link,
			struct verve_wire_packet *packet);
/* op, a receive in no table, takes a message that waited; the message is out of its table and is freed. */
void verve_recv_consume(struct verve_op *op, struct verve_unexpected *unexpected);

/*
 * Multi-receive buffers take what waits for them; for a msg that is starved. False: there is still no memory. Until
 * then nothing is received past them.
 */
bool verve_recv_feed(struct verve_xport *xport);

/* Cancels the oldest posted receive with this context. -FI_ENOENT: none. fi_endpoint(3), fi_cancel. */
int verve_recv_cancel(struct verve_xport *xport, const void *context);
/* Ends every receive posted to this transport, or context, with FI_ECANCELED, and forgets messages that wait. */
void verve_recv_cancel_all(struct verve_xport *xport);

/* verve_peer_need for the peers that receives and messages name. */
void verve_recv_need_peers(struct verve_xport *xport);

#endif
