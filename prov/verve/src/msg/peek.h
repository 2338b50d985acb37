/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peek, claim, discard: requests about messages that wait for a receive. The engine's lock protects
 * everything here.
 */
#ifndef VERVE_MSG_PEEK_H
#define VERVE_MSG_PEEK_H

#include "xport/request.h"

struct verve_xport;

enum {
	VERVE_PEEK = 1 << 0,	/* completes with the oldest message that matches, or FI_ENOMSG */
	VERVE_CLAIM = 1 << 1,	/* with PEEK: keep the message for context; alone: receive it */
	VERVE_DISCARD = 1 << 2, /* with PEEK or CLAIM: throw the message away */
};

/*
 * FI_PEEK, FI_CLAIM and FI_DISCARD, fi_tagged(3). what: VERVE_PEEK ... 0: the request completes
 * once. -FI_EAGAIN: no memory. -FI_EINVAL: no message was claimed with this context, or the address
 * is not in the address vector.
 */
int verve_recv_peek(struct verve_xport *xport, const struct verve_request *request, unsigned what);

#endif
