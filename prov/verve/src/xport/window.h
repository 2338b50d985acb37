/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Windows for a peer, at their queue pair (mr/peer_window.h): the requests that bind them in front
 * of a message's offer, and that end them. The windows of an operation are regions of its memory.
 *
 * A window ends with its queue pair. When the link goes on over another one, the peer pulls what it
 * was offered (VERVE_WIRE_BOUND): nothing is bound anew. The engine's lock protects everything
 * here.
 */
#ifndef VERVE_XPORT_WINDOW_H
#define VERVE_XPORT_WINDOW_H

#include <stdbool.h>

#include "xport/op.h"

struct verve_link;
struct verve_memory;
struct verve_wire_packet;
struct verve_xport;

/*
 * Posts the binds of all windows in memory, none of which is bound, and behind them the packet, an
 * RTS that tells their keys. Sets VERVE_WIRE_BOUND if there are any. As verve_link_send: false: no
 * room, no slab, or the link broke; or the peer takes no such keys, and memory has no regions now.
 */
bool verve_window_offer(struct verve_xport *xport, struct verve_link *link,
			struct verve_memory *memory, struct verve_wire_packet *packet);
/*
 * The peer needs the AWAIT operation's memory no more. True: requests that end its windows were
 * posted, and the operation is SENT (or the link broke, and has it): done is called when they have
 * ended. False: there is no window, or it was freed, because the link takes no request now.
 */
bool verve_window_close(struct verve_xport *xport, struct verve_link *link, struct verve_op *op);
/* Those requests have ended well. Harmless if there were none. */
void verve_window_ended(struct verve_memory *memory);

#endif
