/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Cancelling: fi_cancel, for operations of every kind. The engine's lock is held. */
#ifndef VERVE_PROTO_CANCEL_H
#define VERVE_PROTO_CANCEL_H

struct verve_xport;

/*
 * Cancels one operation with this context: a posted receive first, then an operation of any peer.
 * 0: the operation ends soon. It ends with FI_ECANCELED if it has not begun, and if the peer gives
 * its message back; otherwise it ends as usual. -FI_ENOENT: no operation has this context.
 * -FI_EAGAIN: there is no memory for the packet to the peer. fi_endpoint(3), fi_cancel.
 */
int verve_cancel(struct verve_xport *xport, const void *context);

#endif
