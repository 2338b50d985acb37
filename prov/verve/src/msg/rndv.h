/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rendezvous: the sender sends RTS, the receiver reads by RDMA and sends FIN. For long messages,
 * and for messages that need a credit while the sender has none; these are copied if they are
 * short, and pulled (msg/pull.h) instead of read. The engine's lock protects everything here.
 */
#ifndef VERVE_MSG_RNDV_H
#define VERVE_MSG_RNDV_H

#include "xport/op.h"

struct verve_recv_op;
struct verve_send_op;
struct verve_wire_packet;

/* Sender, QUEUED: offers the message. */
enum verve_outcome verve_rndv_offer(struct verve_xport *xport, struct verve_link *link,
				     struct verve_send_op *send);

/* Receiver: the receive's buffer takes the offered message. The receive is in no queue. */
void verve_rndv_accept(struct verve_xport *xport, struct verve_peer *peer, struct verve_recv_op *recv,
		       const struct verve_wire_packet *offer);
/* Receiver, QUEUED: posts reads, or pulls. */
enum verve_outcome verve_rndv_start(struct verve_xport *xport, struct verve_link *link,
				     struct verve_op *op);
/* Receiver: the last read completed. */
void verve_rndv_done(struct verve_xport *xport, struct verve_op *op);

#endif
