/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Suspended: frees the state, and tells the next connection by its id. */
#include "xport/replay_state.h"

#include <stdlib.h>

#include "conn/cm.h"
#include "net/cq.h"
#include "xport/conn_id.h"
#include "xport/let_go.h"
#include "xport/link.h"
#include "xport/retire.h"
#include "xport/xport.h"

void verve_replay_entry_release(struct verve_xport *xport, struct verve_replay_entry *entry)
{
	if (verve_slot_is_in_slab(&entry->slot) && entry->slot.slab)
		verve_slab_free(&xport->tx_slabs, entry->slot.slab);
	if (entry->slot.kind == VERVE_SLOT_COPY)
		free(entry->bytes);
}

static void free_entries(struct verve_xport *xport, struct verve_replay *replay)
{
	while (replay->at < replay->count)
		verve_replay_entry_release(xport, &replay->entries[replay->at++]);
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
		/*
		 * Packets may have arrived over the new queue pair. They must be polled before it
		 * is closed (xport/rx_lost.h), so it stays until the link closes.
		 */
		link->unused = replay->next.qp;
		verve_let_go_stop(xport, link, link->unused);
		verve_conn_id_unmap(xport, replay->next.conn_id, link);
		if (xport->cm)
			verve_cm_drop(xport->cm, &replay->next.drop);
	}
	verve_cm_request_free(replay->next.drop);
	if (replay->state == VERVE_REPLAY_STOPPED && replay->drained) {
		xport->drained_count--;
		/*
		 * The marker does not come again, so all requests end here. Without a marker,
		 * closing the queue pair ends them.
		 */
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

bool verve_replay_is_mutual(const struct verve_link *link)
{
	const struct verve_replay *replay = link->replay;

	return link->may_send || (replay && replay->state == VERVE_REPLAY_RESUMED && replay->ready);
}

bool verve_replay_is_stopped(const struct verve_link *link)
{
	return link->replay && link->replay->state == VERVE_REPLAY_STOPPED;
}
