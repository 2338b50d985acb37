/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving: arrived messages and posted receives find each other. The engine's lock protects
 * everything here.
 */
#ifndef VERVE_MSG_RECV_H
#define VERVE_MSG_RECV_H

#include <stdbool.h>

#include "xport/op.h"
#include "xport/request.h"

struct verve_recv_op;
struct verve_unexpected;
struct verve_wire_packet;

extern const struct verve_op_class verve_recv_class;

/* A receive without memory, in state NEW. NULL: no memory. */
struct verve_recv_op *verve_recv_alloc(struct verve_xport *xport, uint32_t flags);

/*
 * Accepts a receive; addr UINT64_MAX takes from any peer. 0: it will complete once.
 * -FI_EAGAIN: no memory; -FI_EINVAL: no such address.
 */
int verve_recv(struct verve_xport *xport, const struct verve_request *request);
/* EAGER or RTS has arrived. */
void verve_recv_arrived(struct verve_xport *xport, struct verve_link *link,
			struct verve_wire_packet *packet);
/*
 * A receive that is in no table takes a message that waited. The message is out of its table, and
 * is freed here; the receive ends later, or has ended when this returns.
 */
void verve_recv_consume(struct verve_op *op, struct verve_unexpected *unexpected);

/*
 * Called while msg->starved: posted multi-receive buffers take the messages that wait for them.
 * False: there is still no memory. As long as starved is set, no receive is posted, so that none
 * passes them.
 */
bool verve_recv_feed(struct verve_xport *xport);

/* Cancels the oldest posted receive with this context. -FI_ENOENT: none. fi_endpoint(3), fi_cancel. */
int verve_recv_cancel(struct verve_xport *xport, const void *context);
/*
 * Ends every receive that is posted to this transport, or shared receive context, with
 * FI_ECANCELED. Forgets the waiting messages that came to this transport. Receives of a context
 * stay in the context.
 */
void verve_recv_cancel_all(struct verve_xport *xport);

/* verve_peer_need for the peers that receives and messages name. */
void verve_recv_need_peers(struct verve_xport *xport);

#endif
