/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Replay: suspending a link, finding out what its peer has got, posting the rest again. */
#include "proto/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conn/cm.h"
#include "net/sys.h"
#include "proto/link.h"
#include "proto/peer.h"
#include "proto/post.h"
#include "proto/recv.h"
#include "proto/transfer.h"
#include "proto/xport.h"
#include <rdma/fi_errno.h>

enum {
	TRIES = 8,	   /* that bring nothing */
	ONE_PACKET = 1024, /* bytes: no network in use has shorter ones. Such reads are not doubtful */
};

enum state { STOPPED, DETACHED, RESUMED };

/* What a RESUME packet says, in its status: a lot, 0 if nothing of the sender's was refused; or */
static const uint32_t done = UINT32_MAX; /* what the sender had to repeat is executed */

/* A request to be posted again. */
struct entry {
	struct verve_slot slot;
	void *bytes; /* COPY: the packet, from malloc */
	bool posted; /* it was, and may have been executed */
	bool dead;   /* its operation has failed */
};

struct verve_replay {
	enum state state;
	uint32_t marker; /* STOPPED: behind the requests */
	bool drained;	 /* STOPPED: it has come back */
	bool refused;	 /* the oldest request was; so nothing behind it was executed */
	struct {	 /* STOPPED: the connection that continues the link; qp NULL: not yet */
		struct verve_net_qp *qp;
		uint32_t conn_id, remote_id, qp_num;
		struct verve_cm_request *drop; /* what gives it up */
	} next;
	bool ready;	 /* the peer can hear us over it */
	bool said, told; /* RESUME: ours, and the peer's */
	bool settled;	 /* by the peer's: entries say what is to be repeated */
	bool executed;	 /* what the peer had to repeat is */
	uint32_t number; /* of packets that the peer has received */
	uint32_t lot, peer_lot;
	uint32_t count, at; /* entries, and those that are posted again */
	struct entry *entries;
};

static bool is_packet(const struct verve_slot *slot)
{
	return slot->kind == VERVE_SLOT_SLAB || slot->kind == VERVE_SLOT_COPY;
}

static void release(struct verve_xport *xport, struct entry *entry)
{
	if (entry->slot.kind == VERVE_SLOT_SLAB && entry->slot.slab)
		verve_slab_free(&xport->tx_slabs, entry->slot.slab);
	if (entry->slot.kind == VERVE_SLOT_COPY)
		free(entry->bytes);
}

static void *packet_of(const struct entry *entry)
{
	return entry->slot.kind == VERVE_SLOT_SLAB ?
		       (char *) entry->slot.slab->data + entry->slot.at : entry->bytes;
}

/* Nothing is to be repeated. */
static void drop(struct verve_xport *xport, struct entry *entry)
{
	release(xport, entry);
	entry->slot = (struct verve_slot) {.kind = VERVE_SLOT_NOTHING};
}

static void free_entries(struct verve_xport *xport, struct verve_replay *replay)
{
	while (replay->at < replay->count)
		release(xport, &replay->entries[replay->at++]);
	free(replay->entries);
	replay->entries = NULL;
	replay->count = replay->at = 0;
}

void verve_replay_free(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;

	if (!replay)
		return;
	link->replay = NULL;
	free_entries(xport, replay);
	if (replay->next.qp) {
		verve_net_qp_close(replay->next.qp);
		verve_peer_unmap(xport, link, replay->next.conn_id);
		if (xport->cm)
			verve_cm_drop(xport->cm, &replay->next.drop);
	}
	verve_cm_request_free(replay->next.drop);
	if (replay->state == STOPPED && replay->drained) {
		xport->drained_count--;
		/* The marker is back, and will not tell again. Without one, closing the queue pair is what tells. */
		while (link->retired != link->produced && !link->unmarked)
			verve_link_retire(xport, link, VERVE_NET_WC_FLUSHED);
	}
	free(replay);
}

bool verve_replay_is_next(const struct verve_link *link, uint32_t conn_id)
{
	return link->replay && link->replay->next.qp && link->replay->next.conn_id == conn_id;
}

bool verve_replay_is_from(const struct verve_link *link, uint32_t conn_id, uint32_t qp_num)
{
	return verve_replay_is_next(link, conn_id) && link->replay->next.qp_num == qp_num;
}

bool verve_replay_may_probe(const struct verve_link *link)
{
	return link->replay && link->replay->state == RESUMED && link->replay->ready;
}

bool verve_replay_is_stopped(const struct verve_link *link)
{
	return link->replay && link->replay->state == STOPPED;
}

/* Suspending. */

static void set_drained(struct verve_xport *xport, struct verve_replay *replay)
{
	replay->drained = true;
	xport->drained_count++;
}

/*
 * An endpoint's connection with itself has one queue pair, which flushes the very request that it refuses: who
 * could tell which? And a device that fails again and again for no reason that either side hears of is not to
 * be tried for ever.
 */
static bool is_hopeless(struct verve_link *link)
{
	uint32_t packets = link->sent + link->arrived;

	link->futile = link->futile_packets == packets ? link->futile + 1 : 0;
	link->futile_packets = packets;
	return link->futile > TRIES || link->is_self;
}

/* False: this link cannot go on. */
static bool begin(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;
	char name[VERVE_ADDR_STRLEN];

	if (!xport->cm || link->leaving || link->quiesce.state == VERVE_QUIESCE_AGREED)
		return false;
	if (replay && replay->state != RESUMED)
		return true;
	if (is_hopeless(link))
		return false;
	if (!replay)
		replay = calloc(1, sizeof(*replay));
	if (!replay)
		return false;
	VERVE_INFO(EP_CTRL, "connection %#x to %s is suspended, %u requests outstanding\n",
		   link->conn_id, verve_addr_str(&link->peer->addr, name),
		   link->produced - link->retired);
	/* What was not settled is as it was. */
	replay->refused = replay->refused && replay->at < replay->count && !replay->settled;
	replay->ready = replay->said = replay->told = replay->settled = replay->executed = false;
	replay->state = STOPPED;
	replay->drained = false;
	link->replay = replay;
	link->may_send = false;
	if (!verve_link_stop(xport, link, &replay->marker))
		set_drained(xport, replay);
	return true;
}

static bool is_refusal(uint32_t status)
{
	return status == VERVE_NET_WC_REMOTE_INVALID || status == VERVE_NET_WC_REMOTE_ACCESS ||
	       status == VERVE_NET_WC_REMOTE_OPERATION;
}

/* A read that the device may report as done when it could not get the rest. */
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
		/* That is why the queue pair failed: what came before was done. */
		link->failed = link->doubted = false;
	} else if (!status && (link->doubted || (is_doubtful(xport, link, number) && link->qp &&
						 verve_net_qp_has_failed(link->qp)))) {
		link->doubted = true;
		return VERVE_NET_WC_FLUSHED;
	}
	return status;
}

bool verve_replay_believes(const struct verve_xport *xport, struct verve_link *link, uint32_t status)
{
	return !link->failed &&
	       !(status == VERVE_NET_WC_FLUSHED && is_doubtful(xport, link, link->retired));
}

bool verve_replay_take(struct verve_xport *xport, struct verve_link *link, uint32_t number,
		       uint32_t status)
{
	struct verve_slot *slot = verve_link_slot(link, link->retired);
	bool refused = is_refusal(status) && slot->kind == VERVE_SLOT_MEMORY;

	if (!link->failed) {
		if ((status != VERVE_NET_WC_FLUSHED && !refused) || !begin(xport, link))
			return false;
		link->failed = true;
		if (refused) {
			link->replay->refused = true;
			slot->op->error = verve_net_wc_errno(status);
			slot->op->status = status;
		}
	}
	if (number == link->replay->marker && !link->replay->drained && link->qp)
		set_drained(xport, link->replay);
	return true;
}

void verve_replay_completed(struct verve_xport *xport, struct verve_link *link, uint32_t number)
{
	struct verve_replay *replay = link->replay;

	/* A marker that was executed before the queue pair went to error. */
	if (replay->state == STOPPED && !replay->drained && number == replay->marker)
		set_drained(xport, replay);
	verve_replay_continue(xport, link);
}

bool verve_replay_keep(struct verve_xport *xport, struct verve_link *link)
{
	return verve_net_qp_has_failed(link->qp) && begin(xport, link);
}

void verve_replay_renew(struct verve_xport *xport, struct verve_link *link)
{
	if (link->broken || link->leaving || (link->replay && link->replay->state != RESUMED))
		return;
	/* That is no fault of its own. */
	link->futile = 0;
	if (!begin(xport, link))
		verve_link_break(xport, link, FI_ENOTCONN, 0,
				 "its queue pair may have taken receive buffers along");
}

bool verve_replay_down(struct verve_xport *xport, struct verve_link *link, uint32_t conn_id)
{
	/* One that was to continue the link is over before it did. */
	return !verve_replay_is_next(link, conn_id) && begin(xport, link);
}

bool verve_replay_expects(const struct verve_link *link, uint32_t remote_id)
{
	const struct verve_replay *replay = link->replay;

	return replay && replay->state != RESUMED && !replay->next.qp && link->remote_id == remote_id;
}

/* From the queue pair that is gone to the list. False: no memory. */
static bool keep(struct verve_xport *xport, struct verve_link *link, struct verve_slot *slot,
		 struct entry *entry)
{
	*entry = (struct entry) {.slot = *slot, .posted = true};
	if (slot->kind == VERVE_SLOT_NOTHING && slot->slab)
		verve_slab_free(&xport->tx_slabs, slot->slab);
	if (slot->kind != VERVE_SLOT_COPY)
		return true;
	entry->bytes = malloc(slot->length + 1);
	if (entry->bytes)
		memcpy(entry->bytes,
		       &link->copies[(slot->copied - slot->length) & (VERVE_LINK_COPIES - 1)],
		       slot->length);
	return entry->bytes;
}

/* What was posted last comes before what was not posted again yet. False: no memory. */
static bool collect(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;
	uint32_t left = replay->count - replay->at, count = 0;
	struct entry *entries = calloc(link->produced - link->retired + left + 1, sizeof(*entries));
	bool kept = entries;

	while (kept && link->retired != link->produced) {
		struct verve_slot *slot = verve_link_slot(link, link->retired++);

		xport->wr_used--;
		kept = keep(xport, link, slot, &entries[count]);
		count += slot->kind != VERVE_SLOT_NOTHING || slot->tell;
	}
	if (!kept && !entries)
		return false;
	if (left)
		memcpy(&entries[count], &replay->entries[replay->at], left * sizeof(*entries));
	free(replay->entries);
	replay->entries = entries;
	replay->count = count + left;
	replay->at = 0;
	return kept;
}

/* An operation is over: what else it has posted is not repeated. */
static void bury(struct verve_replay *replay, const struct verve_op *op)
{
	for (uint32_t i = replay->at; i < replay->count; i++)
		if (replay->entries[i].slot.op == op) {
			replay->entries[i].dead = true;
			replay->entries[i].slot.op = NULL;
		}
}

static void fail(struct verve_xport *xport, struct verve_replay *replay, struct verve_op *op,
		 const char *reason)
{
	bury(replay, op);
	if (op->kind == VERVE_OP_RECV) {
		op->recv.fin_status = op->error;
		op->len = 0;
		verve_recv_finish(xport, op, op->error, reason);
	} else {
		verve_op_fail(xport, op, op->error, reason);
	}
}

/* Over the queue pair that the manager has made. */
static void resume(struct verve_xport *xport, struct verve_link *link);

static void no_memory(struct verve_xport *xport, struct verve_link *link)
{
	verve_link_break(xport, link, FI_ENOMEM, 0, "no memory to go on with another queue pair");
}

/* The hardware has let go of the queue pair. */
static void detach(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;
	struct verve_op *refused = NULL;

	/* What arrived counts, and closing a queue pair may take its completions along. */
	if (link->unmarked)
		verve_link_poll_all(xport);
	verve_recv_drain(xport);
	if (link->broken)
		return;
	if (link->qp)
		verve_net_qp_close(link->qp);
	link->qp = NULL;
	verve_recv_drain(xport);
	if (link->broken)
		return;
	xport->drained_count--;
	replay->drained = false;
	replay->state = DETACHED;
	if (link->failed && link->retired != link->produced &&
	    verve_link_slot(link, link->retired)->kind == VERVE_SLOT_MEMORY)
		refused = verve_link_slot(link, link->retired)->op;
	if (!collect(xport, link)) {
		no_memory(xport, link);
		return;
	}
	link->failed = link->doubted = link->unmarked = false;
	link->signaled = link->produced - 1;
	link->copied = link->copied_retired = link->copied_signaled = 0;
	if (refused && refused->status) {
		link->futile = 0;
		fail(xport, replay, refused, verve_net_wc_str(refused->status));
	}
	if (replay->next.qp)
		resume(xport, link);
	else if (verve_cm_resume(xport->cm, &link->peer->addr, link->conn_id))
		no_memory(xport, link);
}

void verve_replay_step(struct verve_xport *xport)
{
	struct verve_link *link;

	while (xport->drained_count) {
		TAILQ_FOREACH(link, &xport->links, all)
			if (link->replay && link->replay->drained)
				break;
		assert(link);
		if (!link)
			return;
		detach(xport, link);
	}
	verve_lost_step(xport);
}

/* Resuming. */

/* A packet that the peer does not count. False: no room now, or the link broke. */
static bool say(struct verve_xport *xport, struct verve_link *link, uint32_t what)
{
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_RESUME,
		.dest = link->remote_id,
		.op_id = link->arrived,
		.status = what,
	};
	uint8_t buf[VERVE_WIRE_RTS_MAX];
	struct verve_net_sge sge = {(uintptr_t) buf, verve_wire_encode(&packet, buf), 0};
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
		sge.addr = (uintptr_t) slot.slab->data;
		sge.lkey = slot.slab->lkey;
	}
	return !verve_link_post_slot(xport, link, &wr, &slot);
}

static bool repeat_packet(struct verve_xport *xport, struct verve_link *link, struct entry *entry)
{
	struct verve_slot *slot = &entry->slot;
	struct verve_outgoing out;

	if (slot->kind == VERVE_SLOT_SLAB) {
		out = (struct verve_outgoing) {packet_of(entry), slot->slab};
		slot->slab = NULL; /* the request's from here on */
	} else if (verve_link_reserve(xport, link, slot->length, &out)) {
		memcpy(out.data, entry->bytes, slot->length);
	} else {
		return false;
	}
	verve_wire_readdress(out.data, link->remote_id);
	return !verve_link_post_packet(xport, link, &out, slot->length, false,
				       slot->tell ? slot->op : NULL);
}

/* False: no room now, or the link broke. */
static bool repeat(struct verve_xport *xport, struct verve_link *link, struct entry *entry)
{
	if (entry->dead)
		return true;
	if (!verve_link_has_room(xport, link, true))
		return false;
	if (is_packet(&entry->slot))
		return repeat_packet(xport, link, entry);
	if (entry->slot.kind == VERVE_SLOT_MEMORY)
		return !verve_transfer_repeat(xport, link, &entry->slot);
	return !verve_link_post_nothing(xport, link, entry->slot.op);
}

/* False: not all is executed, or the link broke. */
static bool repeat_all(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;

	while (replay->at < replay->count) {
		struct entry *entry = &replay->entries[replay->at];

		if (!repeat(xport, link, entry)) {
			if (!link->broken)
				verve_peer_wait(xport, link->peer);
			return false;
		}
		release(xport, entry);
		replay->at++;
	}
	if (replay->state != RESUMED)
		return false;
	if (replay->peer_lot <= replay->lot)
		return true;
	if (link->retired == link->produced) {
		if (say(xport, link, done))
			return replay->state == RESUMED;
		if (!link->broken)
			verve_peer_wait(xport, link->peer);
		return false;
	}
	if (link->signaled != link->produced - 1 && verve_link_has_room(xport, link, true))
		verve_link_post_nothing(xport, link, NULL); /* tells when */
	return false;
}

static void finish(struct verve_xport *xport, struct verve_link *link)
{
	char name[VERVE_ADDR_STRLEN];

	VERVE_INFO(EP_CTRL, "connection %#x to %s goes on\n", link->conn_id,
		   verve_addr_str(&link->peer->addr, name));
	verve_replay_free(xport, link);
	verve_link_hear(xport, link);
	verve_peer_kick(xport, link->peer);
}

void verve_replay_continue(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;

	if (replay->state != RESUMED || !replay->ready)
		return;
	/* The entries are being settled, which may kick the peer: a post that fails now would free them. */
	if (replay->told && !replay->settled)
		return;
	if (!replay->said) {
		bool said = say(xport, link, replay->lot);

		/* The queue pair may have failed already. */
		if (link->broken || replay->state != RESUMED)
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
		finish(xport, link);
}

/* The peer has received this one, or something behind it. */
static void settle_executed(struct verve_xport *xport, struct verve_replay *replay,
			    struct entry *entry)
{
	struct verve_slot *slot = &entry->slot;
	struct verve_op *op = slot->op;

	if (entry->dead || (slot->kind == VERVE_SLOT_MEMORY && slot->verb == VERVE_NET_READ))
		return;
	if (slot->kind == VERVE_SLOT_MEMORY && op->kind == VERVE_OP_FETCH) {
		op->error = FI_EIO;
		fail(xport, replay, op, "the connection was rebuilt: what the atomic found is lost");
		return;
	}
	entry->dead = true;
	slot->op = NULL;
	if (slot->tell)
		verve_op_done(xport, op);
}

/* Nobody knows whether this one was executed. */
static void settle_unknown(struct verve_xport *xport, struct verve_replay *replay,
			   struct entry *entry)
{
	struct verve_slot *slot = &entry->slot;

	if (entry->dead || slot->kind != VERVE_SLOT_MEMORY || slot->verb < VERVE_NET_FETCH_ADD ||
	    !entry->posted || replay->refused)
		return;
	slot->op->error = FI_EIO;
	fail(xport, replay, slot->op,
	     "the connection was rebuilt: whether the target's device executed the atomic is unknown");
}

/* Both sides' packets are counted: what is to be repeated? False: the numbers make no sense. */
static bool settle(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;
	uint32_t unknown = 0, received, executed = 0;

	for (uint32_t i = 0; i < replay->count; i++)
		unknown += replay->entries[i].posted && is_packet(&replay->entries[i].slot);
	received = replay->number - (link->sent - unknown);
	if (received > unknown)
		return false;
	for (uint32_t i = 0, packets = 0; packets < received; i++) {
		packets += replay->entries[i].posted && is_packet(&replay->entries[i].slot);
		executed = i + 1;
	}
	link->sent = replay->number;
	for (uint32_t i = 0; i < replay->count; i++) {
		if (i < executed)
			settle_executed(xport, replay, &replay->entries[i]);
		else
			settle_unknown(xport, replay, &replay->entries[i]);
	}
	for (uint32_t i = 0; i < replay->count; i++) {
		struct entry *entry = &replay->entries[i];

		if (i >= executed && entry->dead && is_packet(&entry->slot))
			link->owed += verve_wire_credits(packet_of(entry));
		if (entry->dead)
			drop(xport, entry);
		entry->posted = false;
	}
	replay->refused = false;
	replay->settled = true;
	return true;
}

static void hear(struct verve_xport *xport, struct verve_link *link)
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
	return lot % (done - 1) + 1;
}

static void resume(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;

	if (verve_idtab_index(link->conn_id) != verve_idtab_index(replay->next.conn_id))
		verve_peer_unmap(xport, link, link->conn_id);
	link->qp = replay->next.qp;
	link->arrived_before = link->arrived; /* what came over the other says nothing of this one */
	link->conn_id = replay->next.conn_id;
	link->remote_id = replay->next.remote_id;
	link->qp_num = replay->next.qp_num;
	verve_cm_request_free(link->drop);
	link->drop = replay->next.drop;
	replay->next.drop = NULL;
	replay->next.qp = NULL;
	replay->state = RESUMED;
	replay->lot = replay->refused ? draw_lot() : 0;
	if (replay->told)
		hear(xport, link);
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
	if (verve_peer_map(xport, link, event->conn_id)) {
		no_memory(xport, link);
		return;
	}
	if (verve_net_qp_inline_size(event->qp) < link->inline_size)
		verve_link_break(xport, link, FI_EIO, 0, "another queue pair takes less inline");
	else if (replay->state == DETACHED)
		resume(xport, link);
}

void verve_replay_ready(struct verve_xport *xport, struct verve_link *link, uint32_t conn_id)
{
	struct verve_replay *replay = link->replay;

	if (replay->state != RESUMED && !verve_replay_is_next(link, conn_id))
		return;
	replay->ready = true;
	link->listen = false;
	verve_replay_continue(xport, link);
}

void verve_replay_receive(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet)
{
	struct verve_replay *replay = link->replay;

	link->arrived--; /* the peer does not count it, either */
	/* One that came over a queue pair that failed since will be said again. */
	if (!replay || (replay->state != RESUMED && !verve_replay_is_next(link, packet->dest)) ||
	    (replay->told && packet->status != done)) {
		xport->count.stale++;
		return;
	}
	replay->ready = true;
	/* The manager hears it now: until the link is as before, there may be much to repeat. */
	if (link->listen && xport->cm && !verve_cm_hear(xport->cm, packet->dest))
		link->listen = false;
	if (packet->status == done) {
		replay->executed = true;
		verve_replay_continue(xport, link);
		return;
	}
	replay->told = true;
	replay->number = packet->op_id;
	replay->peer_lot = packet->status;
	if (packet->status)
		link->futile = 0;
	if (replay->state == RESUMED)
		hear(xport, link);
}
