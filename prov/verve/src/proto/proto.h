/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Composition: the protocols of one endpoint over one transport. proto/proto.c has the table of
 * packet types and their handlers. This header opens all protocols, closes them, and takes one turn
 * of the loop. A new protocol is a file of its own in msg/ or rma/, and one line in that table for
 * each of its packet types.
 *
 * The engine's lock protects everything here: the caller holds it, except where a function opens.
 * Only the engine opens, polls and closes.
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
	struct verve_msg msg; /* the messages; begins with the transport that all protocols share */
};

static inline struct verve_xport *verve_proto_xport(struct verve_proto *proto)
{
	return &proto->msg.xport;
}

/*
 * Opens everything but the connection manager: the manager needs the queues that are opened here,
 * and the engine sets xport.cm afterwards. attr is copied. lock is the engine's; it must outlive
 * proto. -FI_ENOMEM, or the error of the device; nothing is open then.
 */
int verve_proto_init(struct verve_proto *proto, const struct verve_xport_attr *attr,
		     struct verve_lock *lock);
/*
 * Frees everything that verve_proto_init opened. The connection manager is closed before, and
 * verve_proto_cancel has been called, unless no connection was ever asked for.
 */
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
/*
 * The endpoints of the context are closed before. Receives that are still posted to the context end
 * with FI_ECANCELED.
 */
void verve_proto_fini_shared(struct verve_proto *proto);

/*
 * One turn of the transport (xport/turn.h), then one attempt to give waiting messages to receives
 * that lacked memory. True if there was any packet, event or completion.
 */
static inline bool verve_proto_poll(struct verve_proto *proto)
{
	struct verve_xport *xport = &proto->msg.xport;
	bool any = verve_turn(xport);

	if (__builtin_expect(verve_msg_of(xport)->starved, 0))
		verve_recv_feed(xport);
	return any;
}

/* True: a thread must poll again after verve_proto_pause, even if nothing wakes it. */
bool verve_proto_is_waiting(struct verve_proto *proto);
/* Nanoseconds, 1 to attr.keepalive, until then. Valid if verve_proto_is_waiting. */
uint64_t verve_proto_pause(const struct verve_proto *proto);
/*
 * Arms the device's queues: the next packet or completion makes the channel's descriptor readable.
 * The caller polls once more afterwards, because packets that came before wake no thread.
 */
void verve_proto_arm(struct verve_proto *proto);

/*
 * True: accepted operations are under way. await: operations that only wait for the peer's answer
 * count, too.
 */
bool verve_proto_is_busy(const struct verve_proto *proto, bool await);
/*
 * Sends BYE over every connection, once for each. True: every request of every connection is
 * acknowledged, the BYEs included. The caller calls again, with turns in between, until true.
 */
bool verve_proto_say_bye(struct verve_proto *proto);
/*
 * The endpoint closes. From here on, no operation that was posted to the endpoint is reported,
 * neither to a queue nor to a counter: not when it finishes, fails or is cancelled. The endpoint's
 * posted receives end, so that no message finds one. Still reported are the peers' reads and writes
 * of memory here, and receives of a shared context that messages of this endpoint have taken. A
 * second call forgets the messages that came since the first, and does nothing else.
 */
void verve_proto_begin_close(struct verve_proto *proto);
/*
 * Calls verve_proto_begin_close, breaks every link, and ends the operations that wait for a
 * connection, with FI_ECANCELED. Operations of a broken link end in a later verve_proto_poll, when
 * the device has let go of the link.
 */
void verve_proto_cancel(struct verve_proto *proto);

#endif
