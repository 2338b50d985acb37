/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Composition: the handler of each packet type, opening and closing all protocols, and arming. */
#include "proto/proto.h"

#include <assert.h>

#include "msg/batch.h"
#include "msg/chunks.h"
#include "msg/parts.h"
#include "msg/send.h"
#include "msg/unexpected.h"
#include "net/cq.h"
#include "rma/atomic.h"
#include "rma/key.h"
#include "rma/rma_event.h"
#include "xport/credit.h"
#include "xport/dispatch.h"
#include "xport/failure.h"
#include "xport/fence.h"
#include "xport/fence_ask.h"
#include "xport/lifetime.h"
#include "xport/let_go.h"
#include "xport/link.h"
#include "xport/open.h"
#include "xport/peer.h"
#include "xport/places.h"
#include "xport/post.h"
#include "xport/protocols.h"
#include "xport/quiesce.h"
#include "xport/replay.h"
#include "xport/wire.h"
#include <rdma/fi_errno.h>

enum { TX_SLABS_MIN = 4 };

static void receive_bye(struct verve_xport *xport, struct verve_link *link,
			struct verve_wire_packet *packet)
{
	(void)packet;
	verve_fence_forget(link->peer);
	verve_link_leave(xport, link, FI_ENOTCONN, "the peer closed its endpoint");
}

/* Every packet type has a handler. The decoder rejects packets of any other type. */
static verve_packet_handler *const handlers[VERVE_WIRE_TYPES] = {
	[VERVE_WIRE_EAGER] = verve_recv_arrived,
	[VERVE_WIRE_RTS] = verve_recv_arrived,
	[VERVE_WIRE_FIN] = verve_send_finished,
	[VERVE_WIRE_CREDIT] = verve_credit_receive,
	[VERVE_WIRE_WRITE_DATA] = verve_rma_event_write_data,
	[VERVE_WIRE_BYE] = receive_bye,
	[VERVE_WIRE_ATOMIC] = verve_atomic_execute,
	[VERVE_WIRE_ATOMIC_REPLY] = verve_atomic_finished,
	[VERVE_WIRE_RMA_EVENT] = verve_rma_event_receive,
	[VERVE_WIRE_KEY_QUERY] = verve_key_answer,
	[VERVE_WIRE_KEY_REPLY] = verve_key_learn,
	[VERVE_WIRE_KEY_REVOKE] = verve_key_forget,
	[VERVE_WIRE_QUIESCE] = verve_quiesce_receive,
	[VERVE_WIRE_WITHDRAW] = verve_unexpected_withdrawn,
	[VERVE_WIRE_PULL] = verve_chunks_asked,
	[VERVE_WIRE_CHUNK] = verve_chunks_arrived,
	[VERVE_WIRE_RESUME] = verve_replay_receive,
	[VERVE_WIRE_FENCE] = verve_fence_asked,
	[VERVE_WIRE_FENCED] = verve_fence_answered,
	[VERVE_WIRE_BATCH] = verve_batch_arrived,
	[VERVE_WIRE_PART] = verve_parts_arrived,
};

static const struct verve_protocols protocols = {
	.handlers = handlers,
	.forget = verve_unexpected_forget,
	.need_peers = verve_recv_need_peers,
};

int verve_proto_init_shared(struct verve_proto *proto, const struct verve_xport_attr *attr,
			    struct verve_lock *lock)
{
	verve_xport_init_shared(&proto->msg.xport, attr, &protocols, lock);
	return verve_msg_init(&proto->msg);
}

void verve_proto_fini_shared(struct verve_proto *proto)
{
	verve_recv_cancel_all(&proto->msg.xport);
	verve_msg_fini(&proto->msg);
	verve_xport_fini_shared(&proto->msg.xport);
}

int verve_proto_init(struct verve_proto *proto, const struct verve_xport_attr *attr,
		     struct verve_lock *lock)
{
	struct verve_xport *xport = &proto->msg.xport;
	int ret;

	ret = verve_xport_init(xport, attr, &protocols, lock);
	if (ret)
		return ret;
	ret = verve_msg_init(&proto->msg);
	if (ret)
		goto err_xport;
	ret = verve_dispatch_open(xport);
	if (ret)
		goto err_msg;
	/*
	 * Reserve a few send slabs now. Without any slab, and without memory for one later, an
	 * operation that needs a slab would wait for ever.
	 */
	ret = verve_slab_reserve(&xport->tx_slabs, TX_SLABS_MIN);
	if (ret)
		goto err_msg;
	return 0;

err_msg:
	verve_msg_fini(&proto->msg);
err_xport:
	verve_xport_fini(xport);
	return ret;
}

void verve_proto_fini(struct verve_proto *proto)
{
	struct verve_xport *xport = &proto->msg.xport;
	struct verve_link *link;

	assert(TAILQ_EMPTY(&xport->links));
	verve_let_go_close(xport);
	/*
	 * Links that were breaking may have delivered messages after verve_proto_cancel. No receive
	 * of a shared context may find these messages any more.
	 */
	verve_recv_cancel_all(xport);
	/*
	 * The device may still use the requests of broken links: ending a link takes its queue pair
	 * away first.
	 */
	while ((link = TAILQ_FIRST(&xport->broken_links)))
		verve_link_end(xport, link);
	verve_msg_fini(&proto->msg);
	verve_xport_fini(xport);
}

bool verve_proto_is_waiting(struct verve_proto *proto)
{
	struct verve_xport *xport = &proto->msg.xport;

	return verve_turn_is_due(xport) || ((const struct verve_msg *)xport->home)->starved;
}

uint64_t verve_proto_pause(const struct verve_proto *proto)
{
	return verve_turn_pause(&proto->msg.xport);
}

void verve_proto_arm(struct verve_proto *proto)
{
	struct verve_xport *xport = &proto->msg.xport;
	int ret;

	verve_net_channel_drain(xport->channel);
	ret = verve_net_cq_arm(xport->send_cq);
	if (!ret)
		ret = verve_net_cq_arm(xport->recv_cq);
	if (ret)
		verve_failure_tell(xport, -ret);
	verve_turn_expect(xport);
}

static bool is_awaiting(const struct verve_peer *peer)
{
	const struct verve_op *op;

	TAILQ_FOREACH(op, &peer->active, link)
		if (op->state != VERVE_OP_AWAIT)
			return false;
	return true;
}

bool verve_proto_is_busy(const struct verve_proto *proto, bool await)
{
	const struct verve_peer *peer;

	if (proto->msg.xport.errand_count)
		return true;
	for (peer = proto->msg.xport.peers; peer; peer = peer->hh.next)
		if (verve_peer_has_work(peer) || (peer->link && peer->link->replay) ||
		    (!TAILQ_EMPTY(&peer->active) && (await || !is_awaiting(peer))))
			return true;
	return false;
}

bool verve_proto_say_bye(struct verve_proto *proto)
{
	struct verve_xport *xport = &proto->msg.xport;
	bool done = TAILQ_EMPTY(&xport->broken_links);
	struct verve_link *link, *next;

	for (link = TAILQ_FIRST(&xport->links); link; link = next) {
		struct verve_wire_packet packet = {.type = VERVE_WIRE_BYE};

		next = TAILQ_NEXT(link, all);
		/*
		 * A quiesced or suspended link sends no BYE: quiescing closes it, or replay resumes
		 * it.
		 */
		if (link->quiesce.state == VERVE_QUIESCE_AGREED || link->replay) {
			done = false;
			continue;
		}
		/*
		 * The side that did not start the handshake may not send until it hears from its
		 * peer. Until then it has nothing in flight, and needs no BYE.
		 */
		if (!link->may_send)
			continue;
		if (!link->said_bye && verve_link_has_room(xport, link, true))
			link->said_bye = verve_link_send(xport, link, &packet, NULL);
		done &= link->said_bye && link->retired == link->produced;
	}
	return done;
}

void verve_proto_begin_close(struct verve_proto *proto)
{
	struct verve_xport *xport = &proto->msg.xport;

	assert(verve_lock_held(xport->lock));
	xport->mute = true;
	verve_recv_cancel_all(xport);
}

void verve_proto_cancel(struct verve_proto *proto)
{
	struct verve_xport *xport = &proto->msg.xport;
	struct verve_link *link;
	struct verve_peer *peer;

	/* Begin to close once more: forget the messages that came since the first time. */
	verve_proto_begin_close(proto);
	while ((link = TAILQ_FIRST(&xport->links)))
		verve_link_break(xport, link, FI_ECANCELED, 0, "the endpoint is closed");
	for (peer = xport->peers; peer; peer = peer->hh.next)
		verve_peer_fail_pending(xport, peer, FI_ECANCELED, "the endpoint is closed");
}
