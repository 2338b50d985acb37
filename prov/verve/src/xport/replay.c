/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Replay: when to suspend a link, which requests the peer has executed, posting the rest again. */
#include "xport/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conn/cm.h"
#include "mr/cache.h"
#include "net/sys.h"
#include "xport/conn_id.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/qp_num.h"
#include "xport/replay_state.h"
#include "xport/report.h"
#include "xport/retire.h"
#include "xport/start.h"
#include "xport/suspend.h"
#include "xport/transfer.h"
#include "xport/watched.h"
#include "xport/wire_status.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

/* Bytes of the shortest path MTU that queue pairs use. A read of one packet is never doubtful. */
enum { ONE_PACKET = 256 };

static bool is_packet(const struct verve_slot *slot)
{
	return verve_slot_is_in_slab(slot) || slot->kind == VERVE_SLOT_COPY;
}

/* True for a request that binds or ends a window for a peer. */
static bool is_of_window(const struct verve_slot *slot)
{
	return slot->kind == VERVE_SLOT_NOTHING &&
	       (slot->verb == VERVE_NET_BIND || slot->verb == VERVE_NET_INVALIDATE);
}

static void *packet_of(const struct verve_replay_entry *entry)
{
	return verve_slot_is_in_slab(&entry->slot) ?
		       (char *)entry->slot.slab->data + entry->slot.at : entry->bytes;
}

/* The entry holds nothing any more; posting it again is a write of nothing. */
static void drop_entry(struct verve_xport *xport, struct verve_replay_entry *entry)
{
	verve_replay_entry_release(xport, entry);
	entry->slot = (struct verve_slot) {.kind = VERVE_SLOT_NOTHING};
}

static bool is_refusal(uint32_t status)
{
	return status == VERVE_NET_WC_REMOTE_INVALID || status == VERVE_NET_WC_REMOTE_ACCESS ||
	       status == VERVE_NET_WC_REMOTE_OPERATION;
}

/*
 * True if the device names a packet for a request with a key: bnxt_re, and irdma, name the oldest
 * request that they have not told of, not the one that was refused.
 */
static bool names_another(const struct verve_slot *slot, uint32_t status)
{
	return status == VERVE_NET_WC_REMOTE_ACCESS && is_packet(slot);
}

/* True for a read that the device may report as done though the last packets never came. */
static bool is_doubtful(const struct verve_xport *xport, struct verve_link *link, uint32_t number)
{
	const struct verve_slot *slot = verve_link_slot(link, number);

	return verve_net_device_port(xport->attr.dev)->limits.doubtful_reads && !link->broken &&
	       slot->kind == VERVE_SLOT_MEMORY && slot->verb == VERVE_NET_READ &&
	       slot->length > ONE_PACKET;
}

uint32_t verve_replay_judge(struct verve_xport *xport, struct verve_link *link, uint32_t number,
			    uint32_t status)
{
	if (link->doubted && is_refusal(status)) {
		/* The refusal explains why the queue pair failed: the reads before it were done. */
		link->failed = link->doubted = false;
	} else if (!status && (link->doubted || (is_doubtful(xport, link, number) && link->qp &&
						 verve_net_qp_has_failed(link->qp)))) {
		link->doubted = true;
		return VERVE_NET_WC_FLUSHED;
	}
	return status;
}

bool verve_replay_believes(const struct verve_xport *xport, struct verve_link *link,
			   uint32_t status)
{
	return !link->failed &&
	       !(status == VERVE_NET_WC_FLUSHED && is_doubtful(xport, link, link->retired));
}

bool verve_replay_take(struct verve_xport *xport, struct verve_link *link, uint32_t number,
		       uint32_t status)
{
	struct verve_slot *slot = verve_link_slot(link, link->retired);
	bool refused = is_refusal(status) && slot->kind == VERVE_SLOT_MEMORY;
	/* A request behind it was refused: all are repeated, and then that one is the oldest. */
	bool flushed = status == VERVE_NET_WC_FLUSHED || names_another(slot, status);

	if (!link->failed) {
		if ((!flushed && !refused && !is_of_window(slot)) ||
		    !verve_replay_begin(xport, link))
			return false;
		link->failed = true;
		/*
		 * A peer can make ending a window fail: it can end the window itself. A peer that
		 * sends FIN early can make a window's bind fail, too.
		 */
		if (is_of_window(slot) && slot->verb == VERVE_NET_BIND &&
		    verve_net_wc_is_local(status) && !link->freed_windows)
			verve_mr_peer_windows_refused(&xport->attr.mr_cache->peer_windows);
		if (refused) {
			link->replay->refused = true;
			slot->op->error = verve_net_wc_errno(status);
			slot->op->status = status;
		}
	}
	if (number == link->replay->marker && !link->replay->drained && link->qp)
		verve_replay_set_drained(xport, link->replay);
	return true;
}

void verve_replay_completed(struct verve_xport *xport, struct verve_link *link, uint32_t number)
{
	struct verve_replay *replay = link->replay;

	if (!replay)
		return;
	/* The device executed the marker before the queue pair went to error. */
	if (replay->state == VERVE_REPLAY_STOPPED && !replay->drained && number == replay->marker)
		verve_replay_set_drained(xport, replay);
	verve_replay_continue(xport, link);
}

void verve_replay_renew(struct verve_xport *xport, struct verve_link *link)
{
	if (link->broken || link->leaving ||
	    (link->replay && link->replay->state != VERVE_REPLAY_RESUMED))
		return;
	/* This suspension is no sign of a device that fails again and again. */
	link->futile = 0;
	if (!verve_replay_begin(xport, link))
		verve_link_break(xport, link, FI_ENOTCONN, 0,
				 "its queue pair may have taken receive buffers along");
}

bool verve_replay_down(struct verve_xport *xport, struct verve_link *link, uint32_t conn_id)
{
	/* A connection that ended before it could continue the link cannot be continued itself. */
	return !verve_replay_is_next(link, conn_id) && verve_replay_begin(xport, link);
}

bool verve_replay_expects(const struct verve_link *link, uint32_t remote_id)
{
	const struct verve_replay *replay = link->replay;

	return replay && replay->state != VERVE_REPLAY_RESUMED && !replay->next.qp &&
	       link->remote_id == remote_id;
}

/* The operation ends: its other requests are not repeated. */
static void bury_entries(struct verve_replay *replay, const struct verve_op *op)
{
	for (uint32_t i = replay->at; i < replay->count; i++)
		if (replay->entries[i].slot.op == op) {
			replay->entries[i].dead = true;
			replay->entries[i].slot.op = NULL;
		}
}

void verve_replay_fail(struct verve_xport *xport, struct verve_replay *replay, struct verve_op *op,
		       const char *reason)
{
	bury_entries(replay, op);
	if (op->cls->fail)
		op->cls->fail(xport, op, reason);
	else
		verve_op_fail(xport, op, op->error, reason);
}

void verve_replay_no_memory(struct verve_xport *xport, struct verve_link *link)
{
	verve_link_break(xport, link, FI_ENOMEM, 0, "no memory to go on with another queue pair");
}

/* Resuming. */

/*
 * Sends RESUME with this status. The packet is not in link->sent, and the peer does not count it.
 * False: no room now, or the link broke.
 */
static bool send_resume(struct verve_xport *xport, struct verve_link *link, uint32_t status)
{
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_RESUME,
		.dest = link->remote_id,
		.op_id = link->arrived,
		.status = status,
	};
	uint8_t buf[VERVE_WIRE_RTS_MAX];
	struct verve_net_sge sge = {(uintptr_t)buf, verve_wire_encode(&packet, buf), 0};
	struct verve_net_wr wr = {.op = VERVE_NET_SEND, .flags = VERVE_NET_SIGNALED, .sge = &sge,
				  .sge_count = 1};
	struct verve_slot slot = {.kind = VERVE_SLOT_NOTHING};

	if (!verve_link_has_room(xport, link, true))
		return false;
	if (sge.length <= link->inline_size) {
		wr.flags |= VERVE_NET_INLINE;
	} else {
		slot.slab = verve_slab_alloc(&xport->tx_slabs);
		if (!slot.slab)
			return false;
		memcpy(slot.slab->data, buf, sge.length);
		sge.addr = (uintptr_t)slot.slab->data;
		sge.lkey = slot.slab->lkey;
	}
	return !verve_link_post_slot(xport, link, &wr, &slot);
}

/* False: no slab now, or the link broke. */
static bool repeat_packet(struct verve_xport *xport, struct verve_link *link,
			  struct verve_replay_entry *entry)
{
	struct verve_slot *slot = &entry->slot;
	struct verve_outgoing out;

	if (verve_slot_is_in_slab(slot)) {
		out = (struct verve_outgoing) {.data = packet_of(entry), .slab = slot->slab};
		slot->slab = NULL; /* the request owns the slab from here on */
	} else if (verve_link_reserve(xport, link, slot->length, &out)) {
		memcpy(out.data, entry->bytes, slot->length);
	} else {
		return false;
	}
	verve_wire_readdress(out.data, link->remote_id);
	slot->length = verve_wire_drop_bound(out.data, slot->length);
	if (slot->kind == VERVE_SLOT_HEADED)
		return !verve_link_post_headed(xport, link, &out, slot->length, slot->op);
	return !verve_link_post_packet(xport, link, &out, slot->length, false,
				       slot->tell ? slot->op : NULL);
}

/* Posts the entry's request again. False: no room now, or the link broke. */
static bool repeat_entry(struct verve_xport *xport, struct verve_link *link,
			 struct verve_replay_entry *entry)
{
	if (entry->dead)
		return true;
	if (!verve_link_has_room(xport, link, true))
		return false;
	link->peer->stat->values[VERVE_STAT_PEER_REPEATED]++;
	if (is_packet(&entry->slot))
		return repeat_packet(xport, link, entry);
	if (entry->slot.kind == VERVE_SLOT_MEMORY)
		return !verve_transfer_post_slot(xport, link, &entry->slot);
	return !verve_link_post_nothing(xport, link, entry->slot.op);
}

/*
 * Posts all entries again. If the peer's lot says that the peer waits for them, tells the peer when
 * they are executed. True: the link may go on as before. False: later, or the link broke, or was
 * suspended again.
 */
static bool repeat_all(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;

	while (replay->at < replay->count) {
		struct verve_replay_entry *entry = &replay->entries[replay->at];

		if (!repeat_entry(xport, link, entry)) {
			if (!link->broken)
				verve_peer_wait(xport, link->peer);
			return false;
		}
		verve_replay_entry_release(xport, entry);
		replay->at++;
	}
	if (replay->state != VERVE_REPLAY_RESUMED)
		return false;
	if (replay->peer_lot <= replay->lot)
		return true;
	if (link->retired == link->produced) {
		if (send_resume(xport, link, VERVE_WIRE_RESUME_DONE))
			return replay->state == VERVE_REPLAY_RESUMED;
		if (!link->broken)
			verve_peer_wait(xport, link->peer);
		return false;
	}
	if (link->signaled == link->produced - 1)
		return false;
	if (verve_link_has_room(xport, link, true))
		verve_link_post_nothing(xport, link, NULL); /* completes when all are executed */
	else
		verve_peer_wait(xport, link->peer);
	return false;
}

static void end_replay(struct verve_xport *xport, struct verve_link *link)
{
	char name[VERVE_ADDR_STRLEN];

	VERVE_INFO(EP_CTRL, "connection %#x to %s goes on\n", link->conn_id,
		   verve_addr_str(&link->peer->addr, name));
	verve_stat_event(&xport->stat, link->peer->stat, VERVE_STAT_EVENT_WENT_ON, link->conn_id);
	verve_replay_free(xport, link);
	verve_link_hear(xport, link);
	verve_peer_kick(xport, link->peer);
}

void verve_replay_continue(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;

	if (!replay || replay->state != VERVE_REPLAY_RESUMED || !replay->ready)
		return;
	/*
	 * settle goes through the entries, and an operation that ends there may kick the peer. A
	 * post that fails now would break the link and free the entries.
	 */
	if (replay->told && !replay->settled)
		return;
	if (!replay->said) {
		bool said = send_resume(xport, link, replay->lot);

		/* If the new queue pair has failed already, the link is suspended again. */
		if (link->broken || replay->state != VERVE_REPLAY_RESUMED)
			return;
		if (!said) {
			verve_peer_wait(xport, link->peer);
			return;
		}
		replay->said = true;
	}
	if (!replay->settled || (replay->lot > replay->peer_lot && !replay->executed))
		return;
	if (repeat_all(xport, link))
		end_replay(xport, link);
}

/* True for an atomic of the device whose application wants the value that was there before. */
static bool is_fetching(const struct verve_slot *slot)
{
	return verve_net_wr_is_atomic(slot->verb) && slot->op->cls->is_fetch;
}

/*
 * True for a request that is repeated even if the peer's device has executed it: a read, because
 * its data may not have come, and an empty write, because it may end an operation whose reads lie
 * before it, or stand for the request that ended a send's windows.
 */
static bool is_always_repeated(const struct verve_slot *slot)
{
	return slot->kind == VERVE_SLOT_NOTHING ||
	       (slot->kind == VERVE_SLOT_MEMORY && slot->verb == VERVE_NET_READ);
}

/* The peer has received this entry's packet, or a packet behind it: the request was executed. */
static void settle_executed(struct verve_xport *xport, struct verve_replay *replay,
			    struct verve_replay_entry *entry)
{
	struct verve_slot *slot = &entry->slot;
	struct verve_op *op = slot->op;

	if (entry->dead || is_always_repeated(slot))
		return;
	if (slot->kind == VERVE_SLOT_MEMORY && is_fetching(slot)) {
		op->error = FI_EIO;
		verve_replay_fail(xport, replay, op,
				  "the connection was rebuilt: what the atomic found is lost");
		return;
	}
	entry->dead = true;
	slot->op = NULL;
	if (slot->tell)
		op->cls->done(xport, op);
}

/*
 * No packet that the peer has received lies behind this entry: whether the peer's device has
 * executed the request is unknown. Packets, writes and reads can be repeated. An atomic fails,
 * unless it was never posted, or lies behind a refused request.
 */
static void settle_unknown(struct verve_xport *xport, struct verve_replay *replay,
			   struct verve_replay_entry *entry)
{
	struct verve_slot *slot = &entry->slot;

	if (entry->dead || slot->kind != VERVE_SLOT_MEMORY || !verve_net_wr_is_atomic(slot->verb) ||
	    !entry->posted || replay->refused)
		return;
	slot->op->error = FI_EIO;
	verve_replay_fail(xport, replay, slot->op, "the connection was rebuilt: whether the "
			  "target's device executed the atomic is unknown");
}

/* Reads by keys that ended with the old queue pair are not repeated: their operations restart. */
static void settle_restarts(struct verve_xport *xport, struct verve_replay *replay)
{
	for (uint32_t i = 0; i < replay->count; i++) {
		const struct verve_slot *slot = &replay->entries[i].slot;
		struct verve_op *op = slot->op;

		if (!replay->entries[i].dead && slot->kind == VERVE_SLOT_MEMORY &&
		    slot->verb == VERVE_NET_READ && op->cls->restart &&
		    op->cls->restart(xport, op))
			bury_entries(replay, op);
	}
}

/*
 * Decides which entries are repeated, from the number of packets that the peer has received. If a
 * packet did not arrive and is not repeated, its credits are owed again. False: the peer's number
 * is not possible.
 */
static bool settle(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;
	uint32_t unknown = 0, received, executed = 0;

	for (uint32_t i = 0; i < replay->count; i++)
		unknown += replay->entries[i].posted &&
			   verve_slot_is_received(&replay->entries[i].slot);
	received = replay->number - (link->sent - unknown);
	if (received > unknown)
		return false;
	for (uint32_t i = 0, packets = 0; packets < received; i++) {
		packets += replay->entries[i].posted &&
			   verve_slot_is_received(&replay->entries[i].slot);
		executed = i + 1;
	}
	link->sent = replay->number;
	settle_restarts(xport, replay);
	for (uint32_t i = 0; i < replay->count; i++) {
		if (i < executed)
			settle_executed(xport, replay, &replay->entries[i]);
		else
			settle_unknown(xport, replay, &replay->entries[i]);
	}
	for (uint32_t i = 0; i < replay->count; i++) {
		struct verve_replay_entry *entry = &replay->entries[i];

		if (i >= executed && entry->dead && is_packet(&entry->slot)) {
			/*
			 * Only transfers of memory are refused, so that no message is dropped here,
			 * which would have spent a credit.
			 */
			assert(!verve_wire_is_whole(verve_wire_type_of(packet_of(entry))));
			link->owed += verve_wire_credits(packet_of(entry));
		}
		if (entry->dead)
			drop_entry(xport, entry);
		entry->posted = false;
	}
	replay->refused = false;
	replay->settled = true;
	return true;
}

static void settle_and_continue(struct verve_xport *xport, struct verve_link *link)
{
	if (!settle(xport, link)) {
		verve_link_break(xport, link, FI_EIO, 0,
				 "the peer has lost count of what it has received");
		return;
	}
	verve_replay_continue(xport, link);
}

static uint32_t draw_lot(void)
{
	uint32_t lot;

	verve_net_random(&lot, sizeof(lot));
	return lot % (VERVE_WIRE_RESUME_DONE - 1) + 1; /* neither 0 nor VERVE_WIRE_RESUME_DONE */
}

void verve_replay_resume(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;

	if (verve_idtab_index(link->conn_id) != verve_idtab_index(replay->next.conn_id))
		verve_conn_id_unmap(xport, link->conn_id, link);
	link->qp = replay->next.qp;
	/* A packet that came over the old queue pair says nothing of the new one (xport/rx_lost.h).
	 */
	link->arrived_before = link->arrived;
	link->conn_id = replay->next.conn_id;
	link->remote_id = replay->next.remote_id;
	verve_qp_num_set(xport, link, replay->next.qp_num);
	verve_cm_request_free(link->drop);
	link->drop = replay->next.drop;
	replay->next.drop = NULL;
	replay->next.qp = NULL;
	replay->state = VERVE_REPLAY_RESUMED;
	replay->lot = replay->refused ? draw_lot() : 0;
	if (replay->told)
		settle_and_continue(xport, link);
	else
		verve_replay_continue(xport, link);
}

void verve_replay_join(struct verve_xport *xport, struct verve_link *link,
		       struct verve_cm_event *event)
{
	struct verve_replay *replay = link->replay;

	replay->next.qp = event->qp;
	replay->next.conn_id = event->conn_id;
	replay->next.remote_id = event->remote_id;
	replay->next.qp_num = verve_net_qp_num(event->qp);
	replay->next.drop = event->drop;
	event->drop = NULL;
	replay->ready = event->may_send;
	link->listen = event->listen;
	link->listening = verve_net_now();
	link->overdue = false;
	verve_watched_update(xport, link);
	if (verve_conn_id_map(xport, event->conn_id, link)) {
		verve_replay_no_memory(xport, link);
		return;
	}
	if (verve_net_qp_inline_size(event->qp) < link->inline_size)
		verve_link_break(xport, link, FI_EIO, 0, "another queue pair takes less inline");
	else if (replay->state == VERVE_REPLAY_DETACHED)
		verve_replay_resume(xport, link);
}

void verve_replay_ready(struct verve_xport *xport, struct verve_link *link, uint32_t conn_id)
{
	struct verve_replay *replay = link->replay;

	if (replay->state != VERVE_REPLAY_RESUMED && !verve_replay_is_next(link, conn_id))
		return;
	replay->ready = true;
	link->listen = false;
	verve_watched_update(xport, link);
	verve_replay_continue(xport, link);
}

void verve_replay_receive(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet)
{
	struct verve_replay *replay = link->replay;

	link->arrived--; /* the peer does not count RESUME, either */
	/* A RESUME that came over a queue pair that has failed since will be sent again. */
	if (!replay ||
	    (replay->state != VERVE_REPLAY_RESUMED && !verve_replay_is_next(link, packet->dest)) ||
	    (replay->told && packet->status != VERVE_WIRE_RESUME_DONE)) {
		xport->count.stale++;
		return;
	}
	replay->ready = true;
	/*
	 * The manager waits to hear that the peer has the connection. It is told now, not at the
	 * end of the replay, which may take long.
	 */
	if (link->listen && xport->cm && !verve_cm_hear(xport->cm, packet->dest))
		link->listen = false;
	verve_watched_update(xport, link);
	if (packet->status == VERVE_WIRE_RESUME_DONE) {
		replay->executed = true;
		verve_replay_continue(xport, link);
		return;
	}
	replay->told = true;
	replay->number = packet->op_id;
	replay->peer_lot = packet->status;
	if (packet->status)
		link->futile = 0;
	if (replay->state == VERVE_REPLAY_RESUMED)
		settle_and_continue(xport, link);
}
