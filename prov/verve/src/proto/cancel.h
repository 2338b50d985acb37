/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Cancelling: fi_cancel, for operations of every kind. The engine's lock is held. */
#ifndef VERVE_PROTO_CANCEL_H
#define VERVE_PROTO_CANCEL_H

struct verve_xport;

/*
 * One pending operation with this context; a posted receive before others. 0: it is pending and ends soon,
 * with FI_ECANCELED if nobody had begun with it, as usual otherwise. -FI_ENOENT: none is pending.
 * -FI_EAGAIN: no memory to tell the peer. fi_endpoint(3), fi_cancel.
 */
int verve_cancel(struct verve_xport *xport, const void *context);

#endif
