/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peek, claim, discard: looking at messages that wait. The engine's lock is held. */
#ifndef VERVE_MSG_PEEK_H
#define VERVE_MSG_PEEK_H

#include "xport/request.h"

struct verve_xport;

enum {
	VERVE_PEEK = 1 << 0,	/* look; completes with what was found, or with error FI_ENOMSG */
	VERVE_CLAIM = 1 << 1,	/* with PEEK: keep the message for context; alone: receive it */
	VERVE_DISCARD = 1 << 2, /* with either: throw the message away */
};

/*
 * FI_PEEK, FI_CLAIM and FI_DISCARD, fi_tagged(3). 0: completes once. -FI_EAGAIN: no memory;
 * -FI_EINVAL: context claimed no message, or the address is not in the address vector.
 */
int verve_recv_peek(struct verve_xport *xport, const struct verve_request *request, unsigned what);

#endif
