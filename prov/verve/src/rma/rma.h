/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Remote memory access: RDMA write and read on the remote key. fi_rma(3). */
#ifndef VERVE_RMA_RMA_H
#define VERVE_RMA_RMA_H

#include "xport/op.h"

/* kind: VERVE_OP_WRITE or VERVE_OP_READ. -FI_EAGAIN, -FI_EINVAL, -FI_EMSGSIZE as verve_send. */
int verve_rma(struct verve_xport *xport, enum verve_op_kind kind, const struct verve_request *request);
/* What the target of a read or write is told if it wants to hear of it. */
void verve_rma_describe(const struct verve_op *op, struct verve_wire_packet *packet);
/*
 * A peer has read, or else written, the regions that the packet names (an RMA event, an atomic): one
 * for each region's counter, if the endpoint hears of RMA, and for the endpoint's.
 */
void verve_rma_count(struct verve_xport *xport, const struct verve_wire_packet *packet, bool read);
/* For verve_peer_kick: posts the read, write or atomic of the device at the head of pending. False: later. */
bool verve_rma_start(struct verve_xport *xport, struct verve_link *link, struct verve_op *op);
void verve_rma_done(struct verve_xport *xport, struct verve_op *op);

#endif
