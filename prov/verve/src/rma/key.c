/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Key exchange: the initiator's half, then the owner's. */
#include "rma/key.h"

#include <stdlib.h>

#include "comp/comp.h"
#include "mr/keytab.h"
#include "net/mr.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/op_pool.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/report.h"
#include "xport/start.h"
#include "xport/transfer.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

/*
 * Sends KEY_QUERY. Returns the new key, which has no answer yet. NULL: no room or memory now, or
 * the link broke.
 */
static struct verve_remote_key *key_ask(struct verve_xport *xport, struct verve_link *link,
					uint64_t wanted)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_KEY_QUERY, .tag = wanted};
	struct verve_remote_key *key;

	if (link->keys.asked >= VERVE_KEY_QUERIES || !verve_link_has_room(xport, link, true))
		return NULL;
	key = verve_remote_key_add(&link->keys, wanted);
	if (!key)
		return NULL;
	if (!verve_link_send(xport, link, &packet, NULL)) {
		verve_remote_key_drop(&link->keys, key);
		return NULL;
	}
	link->keys.asked++;
	return key;
}

static bool is_read(const struct verve_op *op)
{
	return op->cls->comp_flags == (VERVE_COMP_RMA | VERVE_COMP_READ);
}

/*
 * NULL: the peer's key grants the operation's access to the whole segment. Otherwise the reason, a
 * constant.
 */
static const char *key_check(const struct verve_remote_key *key, struct verve_op *op,
			     const struct verve_wire_segment *segment)
{
	uint32_t access = is_read(op) ? VERVE_WIRE_KEY_READ : VERVE_WIRE_KEY_WRITE;
	struct verve_mr_segments segments = verve_remote_key_segments(key);
	uint64_t position;

	if (!(key->access & access))
		return is_read(op) ? "the target's region does not grant remote reads" :
				     "the target's region does not grant remote writes";
	if (!verve_mr_segments_find(&segments, segment->addr, segment->len, &position))
		return "the operation reaches beyond the target's region";
	return NULL;
}

/*
 * Looks up the exported key of one segment. The link remembers more keys than an operation has
 * segments, so that the keys of one operation never displace each other.
 */
static enum verve_key_result resolve(struct verve_xport *xport, struct verve_link *link,
				     struct verve_op *op,
				     const struct verve_wire_segment *segment, const char **reason)
{
	struct verve_remote_key *key = verve_remote_key_find(&link->keys, segment->key);

	if (!key && verve_op_transfer(op)->offset) {
		*reason = "the target closed the region meanwhile";
		return VERVE_KEY_FAILED;
	}
	if (!key)
		key = key_ask(xport, link, segment->key);
	if (!key || !verve_remote_key_is_known(key))
		return VERVE_KEY_WAIT;
	verve_remote_key_touch(&link->keys, key);
	*reason = key_check(key, op, segment);
	return *reason ? VERVE_KEY_FAILED : VERVE_KEY_READY;
}

static unsigned access_of(const struct verve_op *op)
{
	if (op->cls->comp_flags & VERVE_COMP_ATOMIC)
		return VERVE_NET_REMOTE_ATOMIC;
	return is_read(op) ? VERVE_NET_REMOTE_READ : VERVE_NET_REMOTE_WRITE;
}

/*
 * NULL: the rkey is our own, and grants the operation's access to the whole segment. Otherwise the
 * reason, a constant.
 */
static const char *check_own(struct verve_xport *xport, struct verve_op *op,
			     const struct verve_wire_segment *segment)
{
	struct verve_mr_keytab *keytab = xport->attr.mr_keytab;
	unsigned access = access_of(op);
	const struct verve_mr_key *key;
	const char *reason = NULL;
	uint64_t position;

	verve_mr_keytab_lock(keytab);
	key = verve_mr_keytab_find(keytab, segment->key);
	if (!key)
		reason = "no region here has the key";
	else if ((key->access & access) != access)
		reason = "the region does not grant the access";
	else if (!verve_mr_segments_find(&key->segments, segment->addr, segment->len, &position))
		reason = "the operation reaches beyond the region";
	verve_mr_keytab_unlock(keytab);
	return reason;
}

/* Like check_own, for a key of the peer that is not exported. */
static const char *check_rkey(struct verve_xport *xport, const struct verve_link *link,
			      struct verve_op *op, const struct verve_wire_segment *segment)
{
	if (!verve_key_is_rkey(segment->key))
		return "the target has no region with the key";
	/* See verve_key_is_checked_there: so check the key before anything is posted. */
	if (link->is_self && !verve_op_transfer(op)->offset)
		return check_own(xport, op, segment);
	return NULL;
}

enum verve_key_result verve_key_resolve(struct verve_xport *xport, struct verve_link *link,
					struct verve_op *op, const char **reason)
{
	enum verve_key_result all = VERVE_KEY_READY;

	for (uint32_t i = 0; i < verve_op_transfer(op)->remote_count && !link->broken; i++) {
		const struct verve_wire_segment *segment = &verve_op_transfer(op)->remote[i];
		enum verve_key_result one;

		if (!segment->len)
			continue;
		if (!verve_remote_key_is_exported(&link->keys, segment->key)) {
			*reason = check_rkey(xport, link, op, segment);
			if (*reason)
				return VERVE_KEY_FAILED;
			continue;
		}
		one = resolve(xport, link, op, segment, reason);
		if (one == VERVE_KEY_FAILED)
			return one;
		if (one == VERVE_KEY_WAIT)
			all = one;
	}
	return link->broken ? VERVE_KEY_WAIT : all;
}

/*
 * Whether the operation needs the peer's answer about its keys. Atomics that the target's processor
 * executes do not: the target looks their keys up.
 */
static bool op_needs_keys(const struct verve_xport *xport, const struct verve_op *op)
{
	if (op->cls->comp_flags & VERVE_COMP_ATOMIC)
		return xport->attr.device_atomics;
	return op->cls->comp_flags & VERVE_COMP_RMA;
}

/*
 * Fails the operation at the head of the queue if it waits for the answer about this key. One that
 * has asked and stepped aside behind others (xport/aside.h) asks again when it is the head.
 */
static void fail_head(struct verve_xport *xport, const struct verve_op_queue *queue, uint64_t key,
		      int error, const char *reason)
{
	struct verve_op *op = TAILQ_FIRST(queue);

	if (!op || !op_needs_keys(xport, op) || verve_op_transfer(op)->offset)
		return;
	for (uint32_t i = 0; i < verve_op_transfer(op)->remote_count; i++) {
		const struct verve_wire_segment *segment = &verve_op_transfer(op)->remote[i];

		if (segment->key == key && segment->len) {
			verve_op_fail(xport, op, error, reason);
			return;
		}
	}
}

static void fail_heads(struct verve_xport *xport, const struct verve_peer *peer, uint64_t key,
		       int error, const char *reason)
{
	fail_head(xport, &peer->pending, key, error, reason);
	fail_head(xport, &peer->aside, key, error, reason);
}

/* Takes the first packet of an answer. Makes room for all segments of the key. False: no memory. */
static bool answer_begin(struct verve_remote_key *key, const struct verve_wire_packet *packet)
{
	free(key->segments);
	key->segments = malloc(packet->key.total * sizeof(key->segments[0]));
	key->generation = packet->key.generation;
	key->access = packet->key.access;
	key->total = packet->key.total;
	key->filled = 0;
	return key->segments;
}

/* Takes the segments of one packet of an answer. */
static void answer_fill(struct verve_remote_key *key, const struct verve_wire_packet *packet)
{
	for (uint32_t i = 0; i < packet->segment_count; i++)
		key->segments[key->filled++] = (struct verve_mr_segment) {
			packet->segment[i].addr, packet->segment[i].len, packet->segment[i].key};
}

/* Whether the sum of the segments' lengths fits in 64 bits, as mr/segments.h requires. */
static bool answer_makes_sense(const struct verve_remote_key *key)
{
	uint64_t room = UINT64_MAX;

	for (uint32_t i = 0; i < key->filled; i++) {
		if (key->segments[i].len > room)
			return false;
		room -= key->segments[i].len;
	}
	return true;
}

void verve_key_learn(struct verve_xport *xport, struct verve_link *link,
		     struct verve_wire_packet *packet)
{
	struct verve_remote_key *key = verve_remote_key_find(&link->keys, packet->tag);

	if (link->keys.asked && packet->key.first + packet->segment_count == packet->key.total)
		link->keys.asked--;
	if (!key || verve_remote_key_is_known(key)) {
		xport->count.stale++;
		return;
	}
	if (!packet->key.total) {
		verve_remote_key_drop(&link->keys, key);
		fail_heads(xport, link->peer, packet->tag, FI_EACCES,
			   "the target has no region with the key");
		return;
	}
	if (!packet->key.first && !answer_begin(key, packet)) {
		verve_remote_key_drop(&link->keys, key);
		fail_heads(xport, link->peer, packet->tag, FI_ENOMEM,
			   "no memory for what the target's key means");
		return;
	}
	if (packet->key.generation != key->generation || packet->key.total != key->total ||
	    packet->key.first != key->filled) {
		/* The region changed between two packets of its answer: ask again. */
		verve_remote_key_drop(&link->keys, key);
		return;
	}
	answer_fill(key, packet);
	if (!answer_makes_sense(key)) {
		verve_remote_key_drop(&link->keys, key);
		fail_heads(xport, link->peer, packet->tag, FI_EIO,
			   "the target's answer makes no sense");
	}
}

void verve_key_forget(struct verve_xport *xport, struct verve_link *link,
		      struct verve_wire_packet *packet)
{
	struct verve_remote_key *key = verve_remote_key_find(&link->keys, packet->tag);

	(void)xport;
	if (key && key->total && key->generation <= packet->key.generation)
		verve_remote_key_drop(&link->keys, key);
}

/* The owner. */

/* The key's bit in link->keys.told, by a hash of the key: several keys share a bit. */
static uint64_t bit_of(uint64_t key)
{
	return 1ull << (key * 0x9e3779b97f4a7c15u >> 58);
}

/* The answer to a peer's query about a key of ours, or the revocation of such a key. */
struct verve_key_op {
	struct verve_op op;
	uint64_t key;
	uint64_t generation; /* KEY_REPLY: of the region that was described; KEY_REVOKE: closed */
	uint32_t next;	     /* KEY_REPLY: number of the next segment to send */
	uint8_t type;	     /* enum verve_wire_type: KEY_REPLY or KEY_REVOKE */
};

static enum verve_outcome key_tell(struct verve_xport *xport, struct verve_link *link,
				   struct verve_op *op);

_Static_assert(sizeof(struct verve_key_op) <= VERVE_OP_SIZE_MAX, "no pool has such objects");

static const struct verve_op_class key_class = {
	.name = "key",
	.size = sizeof(struct verve_key_op),
	.cleared = sizeof(struct verve_key_op),
	.answer = key_tell,
};

/* NULL: no memory, and the link was broken for it. */
static struct verve_key_op *key_op_alloc(struct verve_xport *xport, struct verve_link *link,
					 uint8_t type, uint64_t key)
{
	struct verve_key_op *op =
		(struct verve_key_op *)verve_op_alloc(xport, &key_class, VERVE_OP_REPORTED);

	if (!op) {
		verve_link_break(xport, link, FI_ENOMEM, 0, "no memory to speak of a key");
		return NULL;
	}
	op->op.peer = link->peer;
	op->key = key;
	op->type = type;
	return op;
}

void verve_key_answer(struct verve_xport *xport, struct verve_link *link,
		      struct verve_wire_packet *packet)
{
	struct verve_key_op *op;

	if (link->keys.answers >= VERVE_KEY_QUERIES) {
		verve_link_break(xport, link, FI_EIO, 0,
				 "the peer asks for too many keys at once");
		return;
	}
	op = key_op_alloc(xport, link, VERVE_WIRE_KEY_REPLY, packet->tag);
	if (!op)
		return;
	link->keys.answers++;
	verve_peer_queue_control(xport, link->peer, &op->op);
}

/*
 * Fills in one packet of the answer from the domain's table. If the region was closed since the
 * last packet, this packet says that there is no such key. If another region has the key now, the
 * answer begins again with that region's first segment.
 */
static void describe(struct verve_xport *xport, struct verve_key_op *op,
		     struct verve_wire_packet *packet)
{
	bool exported = xport->attr.app_keys || op->key & VERVE_MR_KEY_EXPORTED;
	struct verve_mr_key *key;

	verve_mr_keytab_lock(xport->attr.mr_keytab);
	key = exported ? verve_mr_keytab_find(xport->attr.mr_keytab, op->key) : NULL;
	if (key) {
		const struct verve_mr_segments *segments = &key->segments;

		AO_store(&key->told, 1);
		if (op->generation != key->generation)
			op->next = 0;
		op->generation = packet->key.generation = key->generation;
		packet->key.access =
			(key->access & VERVE_NET_REMOTE_READ ? VERVE_WIRE_KEY_READ : 0) |
			(key->access & VERVE_NET_REMOTE_WRITE ? VERVE_WIRE_KEY_WRITE : 0) |
			(segments->virt ? VERVE_WIRE_KEY_VIRT : 0);
		packet->key.total = segments->count;
		packet->key.first = op->next;
		for (uint32_t i = op->next; i < segments->count &&
		     packet->segment_count < VERVE_WIRE_SEGMENTS; i++)
			packet->segment[packet->segment_count++] = (struct verve_wire_segment) {
				segments->at[i].addr, segments->at[i].len, segments->at[i].rkey};
	}
	verve_mr_keytab_unlock(xport->attr.mr_keytab);
}

/* Sends the answer, in as many packets as it needs, or the revocation. */
static enum verve_outcome key_tell(struct verve_xport *xport, struct verve_link *link,
				   struct verve_op *op)
{
	struct verve_key_op *key = (struct verve_key_op *)op;
	struct verve_wire_packet packet;

	do {
		packet = (struct verve_wire_packet) {
			.type = key->type,
			.tag = key->key,
			.key.generation = key->generation,
		};
		if (!verve_link_has_room(xport, link, true))
			return VERVE_LATER;
		if (key->type == VERVE_WIRE_KEY_REPLY) {
			link->keys.told |= bit_of(key->key);
			describe(xport, key, &packet);
			if (link->keys.told_last < key->generation)
				link->keys.told_last = key->generation;
		}
		if (!verve_link_send(xport, link, &packet, NULL))
			return link->broken ? VERVE_BROKE : VERVE_LATER;
		key->next += packet.segment_count;
	} while (packet.key.first + packet.segment_count < packet.key.total);
	if (key->type == VERVE_WIRE_KEY_REPLY)
		link->keys.answers--;
	verve_op_free(xport, op);
	return VERVE_DONE;
}

void verve_key_revoke(struct verve_xport *xport, uint64_t key, uint64_t generation)
{
	struct verve_link *link, *next;

	for (link = TAILQ_FIRST(&xport->links); link; link = next) {
		struct verve_key_op *op;

		next = TAILQ_NEXT(link, all);
		/*
		 * told_last bounds the revocations that wait for a peer: a peer that takes no
		 * packets was told no newer key. A peer that was told BYE forgets all of them.
		 */
		if (!(link->keys.told & bit_of(key)) || link->leaving || link->said_bye ||
		    generation > link->keys.told_last)
			continue;
		op = key_op_alloc(xport, link, VERVE_WIRE_KEY_REVOKE, key);
		if (!op)
			continue;
		op->generation = generation;
		verve_peer_queue_control(xport, link->peer, &op->op);
	}
}
