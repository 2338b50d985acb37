/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Statistics: entries of peers, and their events. */
#include "xport/stat.h"

#include "base/addr.h"
#include "base/probe.h"
#include "net/sys.h"
#include <rdma/fi_errno.h>

struct verve_page_entry *verve_stat_peer_open(struct verve_stat *stat,
					      const struct verve_addr *addr)
{
	uint32_t owner = stat->endpoint ? stat->endpoint->id : 0;
	struct verve_page_entry *entry = NULL;
	char name[VERVE_ADDR_STRLEN];

	if (stat->open)
		entry = verve_page_get(VERVE_STAT_KIND_PEER, owner, verve_addr_str(addr, name),
				       NULL);
	return entry ? entry : &stat->spare;
}

void verve_stat_peer_close(struct verve_stat *stat, struct verve_page_entry *entry)
{
	if (stat->open)
		verve_page_put(entry == &stat->spare ? NULL : entry);
}

/* An event changes the state, which publishing would not write before the next turns. */
static const enum verve_stat_state state_after[VERVE_STAT_EVENTS] = {
	[VERVE_STAT_EVENT_ASKED] = VERVE_STAT_STATE_CONNECTING,
	[VERVE_STAT_EVENT_CAME_UP] = VERVE_STAT_STATE_HALF_OPEN,
	[VERVE_STAT_EVENT_HEARD] = VERVE_STAT_STATE_UP,
	[VERVE_STAT_EVENT_FAILED] = VERVE_STAT_STATE_IDLE,
	[VERVE_STAT_EVENT_STOPPED] = VERVE_STAT_STATE_SUSPENDED,
	[VERVE_STAT_EVENT_WENT_ON] = VERVE_STAT_STATE_UP,
	[VERVE_STAT_EVENT_QUIESCED] = VERVE_STAT_STATE_QUIESCING,
	[VERVE_STAT_EVENT_REOPENED] = VERVE_STAT_STATE_UP,
	[VERVE_STAT_EVENT_LEFT] = VERVE_STAT_STATE_LEAVING,
	[VERVE_STAT_EVENT_BROKE] = VERVE_STAT_STATE_IDLE,
};

static void add_event(struct verve_page_entry *entry, enum verve_stat_event what, uint32_t conn_id,
		      int error, uint32_t status)
{
	struct verve_page_event event = {
		.when = verve_net_now(),
		.what = what,
		.id = conn_id,
		.error = error,
		.status = status,
	};

	verve_page_set(entry, VERVE_STAT_PEER_STATE, state_after[what]);
	if (conn_id)
		verve_page_set(entry, VERVE_STAT_PEER_CONN_ID, conn_id);
	verve_page_add_event(entry, &event);
}

void verve_stat_event(const struct verve_stat *stat, struct verve_page_entry *entry,
		      enum verve_stat_event what, uint32_t conn_id)
{
	verve_probe_event(entry->name, verve_stat_event_names[what], conn_id, 0, 0);
	if (!stat->open)
		return;
	entry->values[VERVE_STAT_PEER_CONNECTIONS] += what == VERVE_STAT_EVENT_CAME_UP;
	entry->values[VERVE_STAT_PEER_REPLAYS] += what == VERVE_STAT_EVENT_STOPPED;
	add_event(entry, what, conn_id, 0, 0);
}

void verve_stat_end(const struct verve_stat *stat, struct verve_page_entry *entry,
		    enum verve_stat_event what, uint32_t conn_id, int error, uint32_t status,
		    const char *reason)
{
	bool orderly = !status && (error == FI_ENOTCONN || error == FI_ECANCELED);

	verve_probe_event(entry->name, verve_stat_event_names[what], conn_id, error, status);
	if (!stat->open)
		return;
	if (!orderly) {
		entry->values[VERVE_STAT_PEER_ERRORS]++;
		verve_page_set(entry, VERVE_STAT_PEER_ERROR, error);
		verve_page_set(entry, VERVE_STAT_PEER_STATUS, status);
		verve_page_set_text(entry, reason);
	}
	add_event(entry, what, conn_id, error, status);
}
