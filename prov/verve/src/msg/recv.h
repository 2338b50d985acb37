/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving: brings arrived messages and posted receives together. The engine's lock protects
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
 * Accepts a receive. request->addr: the peer whose messages the receive takes; UINT64_MAX: any
 * peer. 0: the receive will complete once. -FI_EAGAIN: no memory; -FI_EINVAL: no such address; or
 * the error of verve_recv_fail_all.
 */
int verve_recv(struct verve_xport *xport, const struct verve_request *request);
/* EAGER or RTS has arrived. */
void verve_recv_arrived(struct verve_xport *xport, struct verve_link *link,
			struct verve_wire_packet *packet);
/*
 * The receive op takes a message that has waited. op is in no table; the caller has taken the
 * message out of its table. Frees the message. The receive ends later, or has ended when this call
 * returns: do not touch op afterwards.
 */
void verve_recv_consume(struct verve_op *op, struct verve_unexpected *unexpected);

/*
 * Called while msg->starved is set: the messages that wait go to the posted receives, the oldest
 * first. False: there is still no memory. While starved is set, no receive is posted, and no
 * message goes to a receive that an older one matches, too.
 */
bool verve_recv_feed(struct verve_xport *xport);

/*
 * Cancels the oldest posted receive with this context (fi_cancel in fi_endpoint(3)). -FI_ENOENT: no
 * posted receive has the context.
 */
int verve_recv_cancel(struct verve_xport *xport, const void *context);
/*
 * Ends every receive that is posted to this transport or shared receive context with FI_ECANCELED.
 * Frees the waiting messages that came to this transport. If the transport uses a shared receive
 * context, the context's receives stay posted.
 */
void verve_recv_cancel_all(struct verve_xport *xport);
/*
 * No message comes any more: the endpoint has failed, or all endpoints of the shared receive
 * context home have. Ends every posted receive with error (positive FI errno), and refuses later
 * ones with it. True: a receive was posted.
 */
bool verve_recv_fail_all(struct verve_xport *home, int error);

/* Calls verve_peer_need for each peer that a posted receive or a waiting message names. */
void verve_recv_need_peers(struct verve_xport *xport);

#endif
