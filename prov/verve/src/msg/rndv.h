/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rendezvous: the sender sends RTS, the receiver reads the message by RDMA and sends FIN. Long
 * messages go this way, and all messages while the sender has no credit. A message of at most the
 * eager size is copied into a slab, unless a read costs less than the copies
 * (verve_direct_is_read) or no slab is free; the receiver pulls such a copy (msg/chunks.h) instead
 * of reading it. Long memory may be registered, offered and read in parts (msg/parts.h). The
 * engine's lock protects everything here.
 */
#ifndef VERVE_MSG_RNDV_H
#define VERVE_MSG_RNDV_H

#include "xport/op.h"

struct verve_recv_op;
struct verve_send_op;
struct verve_wire_packet;

/* Sender, for a send in state QUEUED: offers the message to the peer (RTS). */
enum verve_outcome verve_rndv_offer(struct verve_xport *xport, struct verve_link *link,
				     struct verve_send_op *send);

/*
 * Receiver: recv takes the message that the peer has offered over the link link_id. recv is in no
 * queue.
 */
void verve_rndv_accept(struct verve_xport *xport, struct verve_peer *peer, uint32_t link_id,
		       struct verve_recv_op *recv, const struct verve_wire_packet *offer);
/*
 * Receiver, for a receive in state QUEUED: posts reads of the bytes that the sender has offered. If
 * the message cannot be read, pulls it, or ends the receive with an error.
 */
enum verve_outcome verve_rndv_start(struct verve_xport *xport, struct verve_link *link,
				     struct verve_op *op);
/* Receiver: verve_op_class.restart. A message whose keys have ended is pulled. */
bool verve_rndv_restart(struct verve_xport *xport, struct verve_op *op);
/* Receiver: the last read has completed, or the empty write behind reads that were stopped. */
void verve_rndv_done(struct verve_xport *xport, struct verve_op *op);

#endif
