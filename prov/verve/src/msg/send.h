/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending messages: inline, eager copy, or an offer to read (msg/rndv.h). The engine's lock
 * protects everything here.
 */
#ifndef VERVE_MSG_SEND_H
#define VERVE_MSG_SEND_H

#include "xport/op.h"
#include "xport/request.h"

struct verve_wire_packet;

extern const struct verve_op_class verve_send_class;

/*
 * Accepts one message. 0: the message will complete once; without VERVE_OP_NOTIFY, only an error
 * makes a completion entry. -FI_EAGAIN: no room for another operation, or no slab for a message
 * with VERVE_OP_INJECT. -FI_EINVAL: no such address. -FI_EMSGSIZE: a message with VERVE_OP_INJECT
 * is longer than attr.eager_size, which is less than configured where the device has lower limits.
 */
int verve_send(struct verve_xport *xport, const struct verve_request *request);
/* FIN has arrived. */
void verve_send_finished(struct verve_xport *xport, struct verve_link *link,
			 struct verve_wire_packet *packet);

#endif
