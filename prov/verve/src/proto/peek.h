/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rest of receiving, off the fast path: peek, claim, discard, cancel, and broken connections. */
#ifndef VERVE_PROTO_PEEK_H
#define VERVE_PROTO_PEEK_H

#include "proto/op.h"

enum {
	VERVE_PEEK = 1 << 0,	/* look; completes with what was found, or with error FI_ENOMSG */
	VERVE_CLAIM = 1 << 1,	/* with PEEK: keep it for context; alone: receive what context claimed */
	VERVE_DISCARD = 1 << 2, /* with either: throw it away */
};

/* FI_PEEK, FI_CLAIM and FI_DISCARD, fi_tagged(3). -FI_EAGAIN; -FI_EINVAL: context claimed nothing. */
int verve_recv_peek(struct verve_xport *xport, const struct verve_request *request, unsigned what);

/* The peer takes a message back that may wait here: WITHDRAW. */
void verve_recv_withdrawn(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet);

/* Cancels the oldest posted receive with this context. -FI_ENOENT: none. fi_endpoint(3), fi_cancel. */
int verve_recv_cancel(struct verve_xport *xport, const void *context);

/* Cancels every receive that is posted to xport itself, and forgets messages that nobody received. */
void verve_recv_cancel_all(struct verve_xport *xport);

/* Offers that came over a link which breaks cannot be read any more. */
void verve_recv_forget(struct verve_xport *xport, const struct verve_link *link);

#endif
