/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sending messages: inline, eager copy, or an offer to read (proto/rndv.h). */
#ifndef VERVE_PROTO_SEND_H
#define VERVE_PROTO_SEND_H

#include "proto/op.h"

/*
 * Accepts one message. 0: it will complete once (or, INJECT, not at all unless it fails).
 * -FI_EAGAIN: no room for another operation, or no buffer to inject from; -FI_EINVAL: no such address.
 * -FI_EMSGSIZE: INJECT of more than the buffer holds, attr.eager_size, which the device may have
 * lowered.
 */
int verve_send(struct verve_xport *xport, const struct verve_request *request);

/* For verve_peer_kick: starts the send at the head of pending. False: later. */
bool verve_send_start(struct verve_xport *xport, struct verve_link *link, struct verve_op *op);
/* The peer's NIC has it (TRANSMIT). */
void verve_send_done(struct verve_xport *xport, struct verve_op *op);
/* The peer's FIN, with any status. */
void verve_send_finished(struct verve_xport *xport, struct verve_op *op, uint32_t status);

#endif
