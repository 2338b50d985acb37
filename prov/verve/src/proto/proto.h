/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Composition: the protocols of one endpoint over one transport. proto/proto.c has the table of
 * packet types and their handlers. This header opens all protocols, closes them, and takes one turn
 * of the loop. A new protocol is a file of its own in msg/ or rma/, and one line in that table for
 * each of its packet types.
 *
 * The engine's lock protects everything here. Only the engine opens, polls and closes.
 */
#ifndef VERVE_PROTO_PROTO_H
#define VERVE_PROTO_PROTO_H

#include <stdbool.h>

#include "msg/msg.h"
#include "msg/recv.h"
#include "xport/turn.h"
#include "xport/xport.h"

struct verve_lock;

struct verve_proto {
	struct verve_msg msg; /* messages, over the transport that all protocols share */
};

static inline struct verve_xport *verve_proto_xport(struct verve_proto *proto)
{
	return &proto->msg.xport;
}

/*
 * Opens everything but the connection manager: the manager needs the queues that are opened here,
 * and the engine sets xport.cm afterwards. -FI_ENOMEM, or what the device said; nothing is open
 * then.
 */
int verve_proto_init(struct verve_proto *proto, const struct verve_xport_attr *attr,
		     struct verve_lock *lock);
/* Frees all. The connection manager is closed before, and verve_proto_cancel has been called. */
void verve_proto_fini(struct verve_proto *proto);

/*
 * Opens a shared receive context: the receives, and the messages that wait for a receive, of all
 * endpoints whose attr.shared is the context's transport. All of them have one lock. The context
 * has no device, and is never polled. Of attr, only mr_cache, min_multi_recv, addrvec and sink
 * count; addrvec and sink are those of one of its endpoints, and change with the endpoints. 0 or
 * -FI_ENOMEM.
 */
int verve_proto_init_shared(struct verve_proto *proto, const struct verve_xport_attr *attr,
			    struct verve_lock *lock);
/* Its endpoints are closed before. Receives that are still posted to it end with FI_ECANCELED. */
void verve_proto_fini_shared(struct verve_proto *proto);

/* One turn of the transport (xport/turn.h). True if there was any packet, event or completion. */
static inline bool verve_proto_poll(struct verve_proto *proto)
{
	struct verve_xport *xport = &proto->msg.xport;
	bool any = verve_turn(xport);

	if (__builtin_expect(verve_msg_of(xport)->starved, 0))
		verve_recv_feed(xport);
	return any;
}

/* Somebody should poll again within attr.keepalive, even if nothing happens. */
bool verve_proto_is_waiting(const struct verve_proto *proto);
/* Asks the device for a wake-up. The caller polls once more: what came before is not told. */
void verve_proto_arm(struct verve_proto *proto);

/*
 * Accepted operations are under way. An operation that only waits for the peer's answer counts if
 * await is set.
 */
bool verve_proto_is_busy(const struct verve_proto *proto, bool await);
/* Sends BYE over every connection, once. True: all requests are acknowledged. Call until true. */
bool verve_proto_say_bye(struct verve_proto *proto);
/*
 * The endpoint closes. From here on, no operation that was posted to the endpoint is reported,
 * neither to a queue nor to a counter: not when it finishes, fails or is cancelled. The endpoint's
 * posted receives end, so that no message finds one. Still reported are the peers' reads and writes
 * of memory here, and receives of a shared context that messages of this endpoint have taken. A
 * second call does nothing new.
 */
void verve_proto_begin_close(struct verve_proto *proto);
/*
 * Begins to close, breaks every link, and ends what waits for a connection. Operations of a broken
 * link end in a later verve_proto_poll, when the device has let go of the link.
 */
void verve_proto_cancel(struct verve_proto *proto);

#endif
