/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The protocols of one endpoint over one transport: which packets there are and whose they are (proto/proto.c has the
 * table), opening and closing them all, and one turn of the loop. A new protocol is a file of its own in msg/ or rma/, and
 * a line in that table for each of its packets.
 *
 * The engine's lock protects everything here; only the engine opens, polls and closes.
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

/* Opens everything but the connection manager, which needs the queues and which the engine adds. */
int verve_proto_init(struct verve_proto *proto, const struct verve_xport_attr *attr,
		     struct verve_lock *lock);
/* After the connection manager is closed and verve_proto_cancel. */
void verve_proto_fini(struct verve_proto *proto);

/*
 * A shared receive context: receives, and the messages that wait for them, of all endpoints whose attr.shared is its
 * transport, under one lock. It has no device, and is never polled. Of attr, mr_cache, min_multi_recv, addrvec and sink
 * count; the last two are those of any of its endpoints, and change with them. 0 or -FI_ENOMEM.
 */
int verve_proto_init_shared(struct verve_proto *proto, const struct verve_xport_attr *attr,
			    struct verve_lock *lock);
/* Its endpoints are closed. What is posted to it ends with FI_ECANCELED. */
void verve_proto_fini_shared(struct verve_proto *proto);

/* One turn: events, arrived messages, finished work. True if there was any. */
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
/* Asks the device for a wake-up. The caller polls once more. */
void verve_proto_arm(struct verve_proto *proto);

/* Accepted work is under way; await: also what waits for nothing but the peer's answer. */
bool verve_proto_is_busy(const struct verve_proto *proto, bool await);
/* Says BYE on every connection, once; true when all that was sent is acknowledged. Call until true. */
bool verve_proto_say_bye(struct verve_proto *proto);
/*
 * The endpoint closes. From here on nothing that was posted to it is reported, neither to a queue nor to a counter: what
 * finishes, what fails, what was cancelled. Its posted receives end, so that messages find none any more. What
 * peers do to memory here is reported as ever, and so are receives of a shared context that it has
 * taken. Called again, it does nothing new.
 */
void verve_proto_begin_close(struct verve_proto *proto);
/*
 * Begins to close, and ends what is left. What is left of a connection ends in verve_proto_poll, when the device has
 * let go.
 */
void verve_proto_cancel(struct verve_proto *proto);

#endif
