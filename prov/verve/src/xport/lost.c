/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lost receives: which buffers are in question, and which queue pairs may have them. */
#include "xport/lost.h"

#include <atomic_ops.h>

#include "base/log.h"
#include "net/qp.h"
#include "xport/dispatch.h"
#include "xport/events.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/replay.h"
#include "xport/suspended.h"
#include "xport/xport.h"

/* Parts of the buffers. */
enum {
	TOLERATED = 8,	/* one in so many may be in question for long */
	URGENT = 2,	/* above that, a connection that says nothing gets another queue pair */
	RESERVE = 4,	/* above all but that, one with requests of ours under way, too */
};

/*
 * The buffer is posted and has lost its mark. What is read after this, such as a completion, is newer
 * than the mark.
 */
static bool is_touched(const struct verve_lost *lost, const struct verve_slab *slab)
{
	return slab->lent == VERVE_LOST_POSTED &&
	       AO_load_acquire((const volatile AO_t *) slab->data) != (AO_t) lost->mark;
}

static uint32_t count_asked(const struct verve_xport *xport)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < xport->attr.rx_buffers; i++)
		count += xport->lost.buffers[i]->lent == VERVE_LOST_ASKED;
	return count;
}

static uint32_t count_touched(const struct verve_xport *xport)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < xport->attr.rx_buffers; i++)
		count += is_touched(&xport->lost, xport->lost.buffers[i]);
	return count;
}

static bool is_older(const struct verve_xport *xport, const struct verve_link *link)
{
	return link->qp && (int32_t) (verve_net_qp_serial(link->qp) - xport->lost.before) < 0;
}

/*
 * Its queue pair has completed a receive since; or the link is to ourselves, and all that was sent over it has arrived. What
 * arrives while a queue pair is stopped may come over the next one.
 */
static bool is_innocent(const struct verve_link *link)
{
	if (verve_replay_is_stopped(link))
		return false;
	return link->arrived != link->arrived_before ||
	       (link->is_self && link->retired == link->produced);
}

static uint32_t count_innocent(const struct verve_xport *xport, const struct verve_link_queue *links)
{
	const struct verve_link *link;
	uint32_t count = 0;

	TAILQ_FOREACH(link, links, all)
		count += is_older(xport, link) && is_innocent(link);
	return count;
}

static void ask_links(struct verve_link_queue *links)
{
	struct verve_link *link;

	TAILQ_FOREACH(link, links, all)
		link->arrived_before = link->arrived;
}

/*
 * What is touched is in question from here on. What has completed by then must be polled before the packets of a link
 * are counted: a packet that comes after that shows that its queue pair had none of these buffers.
 */
static void ask(struct verve_xport *xport)
{
	struct verve_lost *lost = &xport->lost;

	for (uint32_t i = 0; i < xport->attr.rx_buffers; i++)
		if (is_touched(lost, lost->buffers[i]))
			lost->buffers[i]->lent = VERVE_LOST_ASKED;
	if (!count_asked(xport))
		return;
	verve_events_drain(xport);
	lost->count = count_asked(xport);
	lost->before = verve_net_srq_opened(xport->srq);
	ask_links(&xport->links);
	ask_links(&xport->broken_links);
}

static bool is_known(const struct verve_xport *xport)
{
	return verve_net_srq_older(xport->srq, xport->lost.before) ==
	       count_innocent(xport, &xport->links) + count_innocent(xport, &xport->broken_links);
}

/* No queue pair has them any more; what the last one has flushed is there. */
static void take_back(struct verve_xport *xport)
{
	struct verve_lost *lost = &xport->lost;

	verve_events_drain(xport);
	lost->count = count_asked(xport);
	VERVE_INFO(EP_DATA, "%u receive buffers come back that queue pairs took along\n", lost->count);
	for (uint32_t i = 0; i < xport->attr.rx_buffers; i++) {
		struct verve_slab *slab = lost->buffers[i];

		if (slab->lent != VERVE_LOST_ASKED)
			continue;
		slab->lent = VERVE_LOST_HERE;
		slab->next = xport->rx_free;
		xport->rx_free = slab;
		xport->rx_free_count++;
	}
	lost->count = 0;
	verve_dispatch_refill(xport);
}

/*
 * The peer is asked for what it always answers, if only with no: for a key. Its answer clears the queue pair, and disturbs
 * nothing that either side has under way.
 */
static void question(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_KEY_QUERY, .tag = UINT64_MAX};

	if (!link->keys.asked && verve_link_is_open(link) && verve_link_has_room(xport, link, true) &&
	    verve_link_send(xport, link, &packet, NULL))
		link->keys.asked++;
	/* So that it is known when nothing of ours is under way. */
	if (!link->broken && link->produced != link->retired)
		verve_link_ask(xport, link);
}

/*
 * The last resort for a peer that does not answer. What both sides have under way waits for the next queue pair, and an
 * atomic of the device may fail: so links with requests of ours come last.
 */
static bool is_to_be_renewed(const struct verve_xport *xport, const struct verve_link *link, uint32_t missing)
{
	bool busy = link->produced != link->retired || !TAILQ_EMPTY(&link->peer->active);
	uint32_t all = xport->attr.rx_buffers;

	return missing > (busy ? all - all / RESERVE : all / URGENT);
}

/*
 * A link whose queue pair may have what is in question is asked to say something; if it does not, it gets another queue
 * pair in the end. A link to ourselves cannot have one, but what we send over it ends by itself: that is asked for. A
 * connection that the peer may not have yet is left alone: the peer could not continue it, and would take its end for a
 * refusal; or there is no peer, because the address is forged. Such a connection ends by itself, too.
 */
static void press(struct verve_xport *xport, uint32_t missing)
{
	struct verve_link *link, *next;

	for (link = TAILQ_FIRST(&xport->links); link; link = next) {
		next = TAILQ_NEXT(link, all);
		if (!is_older(xport, link) || is_innocent(link) || !verve_replay_is_mutual(link))
			continue;
		if (link->is_self)
			verve_link_ask(xport, link);
		else if (link->quiesce.state == VERVE_QUIESCE_AGREED)
			continue;
		else if (is_to_be_renewed(xport, link, missing))
			verve_replay_renew(xport, link);
		else
			question(xport, link);
	}
}

static void look(struct verve_xport *xport)
{
	struct verve_lost *lost = &xport->lost;

	lost->count = count_asked(xport);
	if (lost->count && !is_known(xport))
		return;
	if (lost->count)
		take_back(xport);
	ask(xport);
	if (lost->count && is_known(xport))
		take_back(xport);
}

void verve_lost_step(struct verve_xport *xport)
{
	struct verve_lost *lost = &xport->lost;
	uint32_t closed = verve_net_srq_closed(xport->srq), missing;

	/* While peers have no limit but what is left in the device, nothing more is taken from there. */
	if ((closed == lost->closed && !lost->count) || verve_events_is_flooded(xport))
		return;
	lost->closed = closed;
	verve_events_drain(xport);
	look(xport);
	missing = lost->count + count_touched(xport);
	lost->pressing = xport->cm && lost->count && missing > xport->attr.rx_buffers / TOLERATED;
	if (lost->pressing)
		press(xport, missing);
}
