/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Detaching: closes a failed queue pair, and lists its requests in link->replay. */
#include "xport/detach.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "conn/cm.h"
#include "net/cq.h"
#include "xport/complete.h"
#include "xport/dispatch.h"
#include "xport/let_go.h"
#include "xport/link.h"
#include "xport/memory.h"
#include "xport/peer.h"
#include "xport/replay.h"
#include "xport/replay_state.h"
#include "xport/retire.h"
#include "xport/suspend.h"
#include "xport/xport.h"

enum { MARKER_LOOKS = 4 };

/*
 * Makes an entry of a request of the closed queue pair. A packet in a slab stays there; an inline
 * packet is copied, because the link's copies are used anew. False: no memory.
 */
static bool keep_request(struct verve_xport *xport, struct verve_link *link,
			 struct verve_slot *slot, struct verve_replay_entry *entry)
{
	*entry = (struct verve_replay_entry) {.slot = *slot, .posted = true};
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

/*
 * Makes the new list of entries: first the requests that were outstanding, then the entries of the
 * old list that were not posted again yet. False: no memory.
 */
static bool collect(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;
	uint32_t left = replay->count - replay->at, count = 0;
	struct verve_replay_entry *entries = calloc(link->produced - link->retired + left + 1,
						    sizeof(*entries));
	bool kept = entries;

	while (kept && link->retired != link->produced) {
		struct verve_slot *slot = verve_link_slot(link, link->retired++);

		verve_link_uncount(xport, link, slot);
		kept = keep_request(xport, link, slot, &entries[count]);
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

/*
 * Closes the queue pair, which the device has let go of, and lists its requests. If a worker closes
 * it, or if a packet is stalled, the link stays drained, and a later turn goes on.
 */
static void detach(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_replay *replay = link->replay;
	struct verve_op *refused = NULL;

	/*
	 * Closing a queue pair may remove its completions. Requests that have completed are not
	 * repeated, and packets that have arrived are counted in RESUME: so all are polled before.
	 */
	if (link->unmarked)
		verve_complete_poll_all(xport);
	if (!verve_dispatch_drain(xport) || link->broken)
		return;
	verve_memory_free_windows(xport, &link->peer->active);
	verve_let_go_link(xport, link);
	if (link->qps_at_workers || !verve_dispatch_drain(xport) || link->broken)
		return;
	xport->drained_count--;
	replay->drained = false;
	replay->state = VERVE_REPLAY_DETACHED;
	if (link->failed && link->retired != link->produced &&
	    verve_link_slot(link, link->retired)->kind == VERVE_SLOT_MEMORY)
		refused = verve_link_slot(link, link->retired)->op;
	if (!collect(xport, link)) {
		verve_replay_no_memory(xport, link);
		return;
	}
	link->failed = link->doubted = link->unmarked = false;
	link->marker_looks = 0;
	link->signaled = link->produced - 1;
	link->copied = link->copied_retired = link->copied_signaled = 0;
	if (refused && refused->status) {
		link->futile = 0;
		verve_replay_fail(xport, replay, refused, verve_net_wc_str(refused->status));
	}
	if (replay->next.qp)
		verve_replay_resume(xport, link);
	else if (verve_cm_resume(xport->cm, &link->peer->addr, link->conn_id))
		verve_replay_no_memory(xport, link);
}

/* NULL: workers close the queue pairs of all links that are drained. */
static struct verve_link *find_drained(const struct verve_xport *xport)
{
	struct verve_link *link;

	TAILQ_FOREACH(link, &xport->links, all)
		if (link->replay && link->replay->drained && !link->qps_at_workers)
			return link;
	return NULL;
}

bool verve_detach_is_due(const struct verve_xport *xport)
{
	return find_drained(xport);
}

void verve_detach_unmarked(struct verve_xport *xport)
{
	struct verve_link *link;

	TAILQ_FOREACH(link, &xport->links, all)
		if (link->unmarked && verve_replay_is_stopped(link) && !link->replay->drained)
			verve_replay_set_drained(xport, link->replay);
}

/* True if the device was told to stop, and the marker is still out. */
static bool awaits_marker(const struct verve_link *link)
{
	bool stopped = verve_replay_is_stopped(link) && !link->replay->drained;

	return (link->broken || stopped) && link->qp && !link->unmarked && !link->qps_at_workers &&
	       link->retired != link->produced;
}

static bool give_up_markers(const struct verve_link_queue *links)
{
	struct verve_link *link;
	bool any = false;

	TAILQ_FOREACH(link, links, all) {
		if (!awaits_marker(link) || ++link->marker_looks < MARKER_LOOKS)
			continue;
		VERVE_WARN(EP_CTRL, "connection %#x: the device does not flush its queue pair %#x: "
			   "it is closed as it is\n", link->conn_id, link->qp_num);
		link->unmarked = any = true;
	}
	return any;
}

void verve_detach_watch(struct verve_xport *xport)
{
	give_up_markers(&xport->broken_links);
	if (give_up_markers(&xport->links))
		verve_detach_unmarked(xport);
}

void verve_detach_step(struct verve_xport *xport)
{
	struct verve_link *link;

	/* Detaching a link may break others: begin with the first link each time. */
	for (uint32_t count = xport->drained_count; count; count--) {
		link = find_drained(xport);
		if (!link)
			return;
		detach(xport, link);
	}
}
