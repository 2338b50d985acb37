/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Entries: what the connection manager keeps of a peer address, and the resources of our end. */
#include "conn/cm_entry.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "conn/cm_job.h"
#include "net/sys.h"

enum {
	/* repetitions of HELLO after which a handshake no longer counts in the window */
	WINDOW_ATTEMPTS = 3,
	PSN_MASK = 0xffffff,
};

struct verve_cm_entry *verve_cm_entry_find(const struct verve_cm *cm,
					   const struct verve_addr *addr)
{
	struct verve_cm_entry *entry;

	HASH_FIND(hh, cm->entries, addr, verve_addr_len(addr), entry);
	return entry;
}

static void entry_move_to_list(struct verve_cm *cm, struct verve_cm_entry *entry,
			       enum verve_cm_list list)
{
	if (entry->list == list)
		return;
	if (entry->list != VERVE_CM_LIST_NONE) {
		TAILQ_REMOVE(&cm->lists[entry->list], entry, link);
		cm->count[entry->list]--;
	}
	if (list != VERVE_CM_LIST_NONE) {
		TAILQ_INSERT_TAIL(&cm->lists[list], entry, link);
		cm->count[list]++;
	}
	entry->list = list;
}

struct verve_cm_entry *verve_cm_entry_make(struct verve_cm *cm, const struct verve_addr *addr)
{
	struct verve_cm_entry *entry = verve_cm_entry_find(cm, addr);

	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	if (verve_timers_reserve(&cm->timers, HASH_COUNT(cm->entries) + 1))
		goto err_entry;
	verve_conn_init(&entry->conn, &cm->self, addr);
	HASH_ADD(hh, cm->entries, conn.addr, verve_addr_len(addr), entry);
	if (!entry->hh.tbl)
		goto err_entry;
	entry->for_peer = true;
	entry_move_to_list(cm, entry, VERVE_CM_LIST_IDLE);
	return entry;

err_entry:
	free(entry);
	return NULL;
}

/* Frees the events of our end that the engine does not have, and forgets the end's job and id. */
static void entry_clear_end(struct verve_cm_entry *entry)
{
	verve_cm_event_free(entry->up);
	free(entry->ready);
	free(entry->down);
	entry->id = 0;
	entry->job = NULL;
	entry->up = entry->ready = entry->down = NULL;
}

/*
 * The engine closes a queue pair that a peer may have sent packets to, as closing it may remove
 * the completions of packets that the engine did not take.
 */
static void hand_over_qp(struct verve_cm *cm, struct verve_cm_entry *entry)
{
	struct verve_cm_event *event = entry->up;

	entry->up = NULL;
	event->type = VERVE_CM_UNUSED;
	event->qp = entry->job->qp;
	free(entry->job);
	verve_mailbox_put(cm->attr.events, &event->mail);
	cm->has_news = true;
}

/*
 * Frees our end. Pointers are NULL for the queue pair and the events that the engine has. The
 * workers close and count a queue pair that no packet can have reached: a stranger may cause any
 * number of these, and while the application computes, the engine closes none.
 */
static void entry_close_end(struct verve_cm *cm, struct verve_cm_entry *entry)
{
	if (!entry->id)
		return;
	if (!entry->job || !entry->job->qp)
		free(entry->job);
	else if (verve_net_qp_may_receive(entry->job->qp))
		hand_over_qp(cm, entry);
	else
		verve_cm_job_close(cm, entry->job);
	verve_idtab_free(&cm->ids, entry->id);
	entry_clear_end(entry);
}

void verve_cm_entry_free(struct verve_cm *cm, struct verve_cm_entry *entry)
{
	entry_close_end(cm, entry);
	verve_timers_set(&cm->timers, &entry->timer, VERVE_TIMER_NEVER);
	entry_move_to_list(cm, entry, VERVE_CM_LIST_NONE);
	HASH_DEL(cm->entries, entry);
	free(entry->request);
	free(entry);
}

int verve_cm_entry_open(struct verve_cm *cm, struct verve_cm_entry *entry)
{
	int ret = -FI_ENOMEM;

	if (cm->failed)
		return -cm->failed;
	entry->up = verve_cm_event_alloc_up();
	entry->ready = calloc(1, sizeof(*entry->ready));
	entry->down = calloc(1, sizeof(*entry->down));
	entry->job = calloc(1, sizeof(*entry->job));
	if (!entry->up || !entry->ready || !entry->down || !entry->job)
		goto err_memory;
	ret = verve_idtab_alloc(&cm->ids, entry, &entry->id);
	if (ret)
		goto err_memory;
	entry->job->psn = (uint32_t)verve_net_random64() & PSN_MASK;
	ret = verve_cm_job_open(cm, entry);
	if (ret)
		goto err_end;
	verve_cm_entry_settle(cm, entry);
	return 0;

err_end:
	entry_close_end(cm, entry);
	return ret;
err_memory:
	free(entry->job);
	entry_clear_end(entry);
	return ret;
}

int verve_cm_entry_opened(struct verve_cm *cm, struct verve_cm_entry *entry)
{
	struct verve_conn_local local = {.nonce = verve_net_random64() | 1, .id = entry->id};
	int ret = cm->failed ? -cm->failed : entry->job->error;

	if (ret) {
		entry_close_end(cm, entry);
		return ret;
	}
	verve_net_qp_addr(entry->job->qp, &local.qp);
	local.serial = ++cm->serial;
	verve_conn_open(&entry->conn, &local);
	return 0;
}

void verve_cm_entry_settle(struct verve_cm *cm, struct verve_cm_entry *entry)
{
	static const enum verve_cm_list list_of[VERVE_CONN_STATES] = {
		[VERVE_CONN_IDLE] = VERVE_CM_LIST_IDLE,
		[VERVE_CONN_QUEUED] = VERVE_CM_LIST_QUEUED,
		[VERVE_CONN_WAIT_HELLO] = VERVE_CM_LIST_NONE,
		[VERVE_CONN_WAIT_READY] = VERVE_CM_LIST_HALF_OPEN,
		[VERVE_CONN_UP] = VERVE_CM_LIST_NONE,
	};
	const struct verve_conn *conn = &entry->conn;
	enum verve_cm_list list = entry->busy ? VERVE_CM_LIST_NONE : list_of[conn->state];
	bool in_window = entry->busy ? conn->state == VERVE_CONN_QUEUED :
				       conn->state == VERVE_CONN_WAIT_HELLO &&
					       conn->attempts < WINDOW_ATTEMPTS;

	if (!conn->local.id && !entry->busy)
		entry_close_end(cm, entry);
	cm->window_used += (unsigned)in_window - (unsigned)entry->in_window;
	cm->window_for_peers += (unsigned)(in_window && entry->for_peer) -
				(unsigned)entry->in_peers_window;
	entry->in_window = in_window;
	entry->in_peers_window = in_window && entry->for_peer;
	if (list == VERVE_CM_LIST_QUEUED && entry->for_peer)
		list = VERVE_CM_LIST_AGAIN;
	verve_timers_set(&cm->timers, &entry->timer, entry->busy ? VERVE_TIMER_NEVER : conn->timer);
	entry_move_to_list(cm, entry, list);
}
