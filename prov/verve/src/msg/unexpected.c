/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#define HASH_NONFATAL_OOM 1

#include "msg/unexpected.h"

#include <stdlib.h>
#include <string.h>

#include "msg/fin.h"
#include "msg/msg.h"
#include "xport/credit.h"
#include "xport/fence_ask.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/start.h"
#include <rdma/fi_errno.h>

static struct verve_unexpected *of_offer(struct verve_offer *offer)
{
	return (struct verve_unexpected *)((char *)offer -
					    offsetof(struct verve_unexpected, offer));
}

/*
 * The peer chooses the ids. The mark of the receive buffers (xport/rx_lost.h) is a number that no
 * peer can guess: it keeps a peer from choosing ids that share a place.
 */
static uint32_t hash_of(const struct verve_xport *xport, uint32_t id)
{
	return (xport->lost.mark | 1) * id >> 32;
}

static struct verve_unexpected *find_offer(const struct verve_xport *xport,
					   const struct verve_link *link, uint32_t id)
{
	struct verve_offer *offer;

	HASH_FIND_BYHASHVALUE(hh, link->offers, &id, sizeof(id), hash_of(xport, id), offer);
	return offer ? of_offer(offer) : NULL;
}

static void offer_unlist(struct verve_link *link, struct verve_offer *offer)
{
	HASH_DEL(link->offers, offer);
	offer->is_listed = false;
}

/* Puts the message into link->offers, if its sender waits for a FIN and can get one. -FI_ENOMEM. */
static int offer_list(struct verve_xport *xport, struct verve_link *link,
		      struct verve_unexpected *unexpected)
{
	struct verve_offer *offer = &unexpected->offer;

	offer->is_listed = false;
	/* Late messages of a broken link are kept, but nobody can ask for them back. */
	if (!verve_fin_is_wanted(&unexpected->packet) || link->broken)
		return 0;
	offer->id = unexpected->packet.op_id;
	HASH_ADD_BYHASHVALUE(hh, link->offers, id, sizeof(offer->id), hash_of(xport, offer->id),
			     offer);
	offer->is_listed = offer->hh.tbl;
	return offer->is_listed ? 0 : -FI_ENOMEM;
}

struct verve_link *verve_unexpected_link(const struct verve_unexpected *unexpected)
{
	struct verve_link *link = verve_link_live(unexpected->xport, unexpected->link_id);

	return link && link->serial == unexpected->link_serial ? link : NULL;
}

int verve_unexpected_keep(struct verve_xport *xport, struct verve_link *link,
			  const struct verve_wire_packet *packet)
{
	struct verve_match *match = verve_msg_match_of(xport, packet->flags & VERVE_WIRE_TAGGED);
	size_t payload = packet->type == VERVE_WIRE_EAGER ? packet->len : 0;
	struct verve_unexpected *unexpected;

	if (verve_fin_is_wanted(packet) && find_offer(xport, link, packet->op_id))
		return -FI_EINVAL;
	unexpected = malloc(sizeof(*unexpected) + payload);
	if (!unexpected)
		return -FI_ENOMEM;
	unexpected->xport = xport;
	unexpected->peer = link->peer;
	unexpected->link_id = link->id;
	unexpected->link_serial = link->serial;
	unexpected->claimed = false;
	unexpected->packet = *packet;
	if (payload)
		memcpy(unexpected->payload, packet->payload, payload);
	unexpected->packet.payload = unexpected->payload;
	unexpected->match.source = link->peer->id;
	unexpected->match.tag = packet->tag;
	if (offer_list(xport, link, unexpected))
		goto err_free;
	if (verve_match_add(match, &unexpected->match))
		goto err_unlist;
	link->peer->fence.kept++;
	if (packet->type == VERVE_WIRE_EAGER)
		verve_credit_keep(link, packet->len);
	return 0;

err_unlist:
	if (unexpected->offer.is_listed)
		offer_unlist(link, &unexpected->offer);
err_free:
	free(unexpected);
	return -FI_ENOMEM;
}

void verve_unexpected_take(struct verve_unexpected *unexpected)
{
	if (unexpected->offer.is_listed)
		offer_unlist(verve_unexpected_link(unexpected), &unexpected->offer);
}

void verve_unexpected_pay_back(const struct verve_unexpected *unexpected)
{
	struct verve_link *link = verve_unexpected_link(unexpected);

	if (!link || unexpected->packet.type != VERVE_WIRE_EAGER)
		return;
	verve_credit_let_go(link, unexpected->packet.len);
	verve_credit_settle(unexpected->xport, link);
}

void verve_unexpected_free(struct verve_unexpected *unexpected)
{
	verve_unexpected_take(unexpected);
	unexpected->peer->fence.kept--;
	free(unexpected);
}

int verve_unexpected_prepare_discard(const struct verve_unexpected *unexpected, uint32_t status,
				     struct verve_op **finp)
{
	struct verve_fin fin = {.id = unexpected->packet.op_id, .status = status};
	struct verve_xport *xport = unexpected->xport;

	*finp = NULL;
	if (!verve_fin_is_wanted(&unexpected->packet) || !verve_unexpected_link(unexpected))
		return 0;
	*finp = verve_fin_alloc(xport, unexpected->peer, fin);
	return *finp ? 0 : -FI_EAGAIN;
}

void verve_unexpected_discard(struct verve_unexpected *unexpected, struct verve_op *fin)
{
	struct verve_xport *xport = unexpected->xport;
	struct verve_peer *peer = unexpected->peer;

	verve_unexpected_take(unexpected);
	if (fin)
		verve_peer_queue_control(xport, unexpected->peer, fin);
	verve_unexpected_pay_back(unexpected);
	verve_unexpected_free(unexpected);
	verve_fence_continue(xport, peer);
}

/* Frees the messages that came to xport and wait in the tables. */
static void drop_unexpected(struct verve_xport *xport)
{
	for (int i = 0; i < 2; i++) {
		struct verve_match *match = verve_msg_match_of(xport, i);
		struct verve_match_msg *msg = TAILQ_FIRST(&match->unexpected), *next;

		for (; msg; msg = next) {
			next = TAILQ_NEXT(msg, order);
			if (verve_unexpected_of(msg)->xport != xport)
				continue;
			verve_match_remove(match, msg);
			verve_unexpected_free(verve_unexpected_of(msg));
		}
	}
}

static void drop_claimed(struct verve_xport *xport)
{
	struct verve_unexpected *claimed = LIST_FIRST(&verve_msg_of(xport)->claimed), *next;

	for (; claimed; claimed = next) {
		next = LIST_NEXT(claimed, claims);
		if (claimed->xport != xport)
			continue;
		LIST_REMOVE(claimed, claims);
		verve_unexpected_free(claimed);
	}
}

/* Looks at the messages of this link alone: a peer decides how many there are, and how often. */
void verve_unexpected_forget(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_offer *offer, *next;

	HASH_ITER(hh, link->offers, offer, next) {
		struct verve_unexpected *unexpected = of_offer(offer);
		bool tagged = unexpected->packet.flags & VERVE_WIRE_TAGGED;

		offer_unlist(link, offer);
		if (unexpected->claimed || unexpected->packet.type != VERVE_WIRE_RTS)
			continue;
		verve_match_remove(verve_msg_match_of(xport, tagged), &unexpected->match);
		verve_unexpected_free(unexpected);
	}
}

void verve_unexpected_forget_all(struct verve_xport *xport)
{
	drop_unexpected(xport);
	drop_claimed(xport);
}

static void need_sender(const struct verve_xport *shared, struct verve_unexpected *message)
{
	verve_peer_need(message->peer);
	verve_peer_need(verve_idtab_get(&shared->peer_ids, message->match.source));
}

void verve_unexpected_need_peers(struct verve_xport *xport)
{
	struct verve_unexpected *claimed;

	for (int i = 0; i < 2; i++) {
		struct verve_match_msg *msg;

		TAILQ_FOREACH(msg, &verve_msg_match_of(xport, i)->unexpected, order)
			need_sender(xport->home, verve_unexpected_of(msg));
	}
	LIST_FOREACH(claimed, &verve_msg_of(xport)->claimed, claims)
		need_sender(xport->home, claimed);
}

void verve_unexpected_withdrawn(struct verve_xport *xport, struct verve_link *link,
				struct verve_wire_packet *packet)
{
	struct verve_unexpected *offer = find_offer(xport, link, packet->op_id);
	struct verve_op *fin;

	/*
	 * No such message waits: a receive has taken it, and sends the FIN. Or the message is
	 * claimed: the receive that takes it later sends the FIN.
	 */
	if (!offer || offer->claimed)
		return;
	if (verve_unexpected_prepare_discard(offer, FI_ECANCELED, &fin)) {
		verve_link_break(xport, link, FI_ENOMEM, 0, "no memory to give a message back");
		return;
	}
	verve_match_remove(verve_msg_match_of(xport, offer->packet.flags & VERVE_WIRE_TAGGED),
			   &offer->match);
	verve_unexpected_discard(offer, fin);
}
