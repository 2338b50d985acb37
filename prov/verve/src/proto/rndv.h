/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rendezvous: RTS from the sender, RDMA reads by the receiver, FIN back. For long messages, and for any
 * message when the sender is out of credits; a short one is copied, and pulled (proto/pull.h) instead of read.
 */
#ifndef VERVE_PROTO_RNDV_H
#define VERVE_PROTO_RNDV_H

#include "proto/op.h"

/* Sender: offers the message at the head of pending. False: later. */
bool verve_rndv_offer(struct verve_xport *xport, struct verve_link *link, struct verve_op *op);

/* Receiver: op's buffer takes the offered message. op is in no queue. */
void verve_rndv_accept(struct verve_xport *xport, struct verve_peer *peer, struct verve_op *op,
		       const struct verve_wire_packet *offer);
/* Receiver, for verve_peer_kick: posts reads. False: later. */
bool verve_rndv_start(struct verve_xport *xport, struct verve_link *link, struct verve_op *op);
/* Receiver: the last read completed. */
void verve_rndv_done(struct verve_xport *xport, struct verve_op *op);

#endif
