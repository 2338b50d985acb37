/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection manager from inside: its data, for the files that make it up. Each names only
 * those below it:
 *
 *   cm.h          its life, its steps, and what the engine asks for
 *   cm_dgram.h    input: datagrams          cm_mail.h   input: the engine's requests
 *   cm_perform.h  output: performs what connections decide: queue pairs, events, datagrams
 *   cm_entry.h    data: what it keeps of a peer address
 *   cm_state.h    data: the manager
 *   cm_event.h    data: events and requests    cm_attr.h    data: attributes and counts
 *
 * All of it belongs to the service thread, but the mailboxes.
 */
#ifndef VERVE_CONN_CM_STATE_H
#define VERVE_CONN_CM_STATE_H

/* Before uthash: adding to a table says when there is no memory. */
#define HASH_NONFATAL_OOM 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uthash.h>

#include "base/idtab.h"
#include "base/mailbox.h"
#include "conn/cm_attr.h"
#include "conn/cm_event.h"
#include "conn/conn_state.h"
#include "conn/guard.h"
#include "conn/timer.h"
#include "net/dgram.h"

enum verve_cm_list {
	VERVE_CM_LIST_NONE,
	VERVE_CM_LIST_QUEUED,
	VERVE_CM_LIST_HALF_OPEN,
	VERVE_CM_LIST_IDLE,
	VERVE_CM_LISTS,
};

/*
 * One peer address. A connection's events are allocated before its first HELLO, so that none can be
 * missing later.
 */
struct verve_cm_entry {
	struct verve_timer timer; /* first: verve_timers_first finds the entry */
	struct verve_conn conn;
	UT_hash_handle hh; /* by conn.addr */
	enum verve_cm_list list;
	TAILQ_ENTRY(verve_cm_entry) link; /* in cm->lists[list] */
	bool in_window;			  /* the entry is counted in cm->window_used */
	/* the engine's request, which becomes FAILED; NULL: none */
	struct verve_cm_event *request;
	uint32_t id;			  /* in cm->ids; 0: our end is not open */
	struct verve_net_qp *qp;	  /* the manager's until UP; then NULL */
	/* not sent yet; NULL: sent, or our end is not open */
	struct verve_cm_event *up, *ready, *down;
};

TAILQ_HEAD(verve_cm_entries, verve_cm_entry);

struct verve_cm {
	struct verve_cm_attr attr;
	struct verve_conn_self self;
	struct verve_guard guard;
	struct verve_net_dgram *dgram;
	struct verve_mailbox requests;	/* of struct verve_cm_request */
	struct verve_cm_entry *entries; /* uthash, by address */
	struct verve_cm_entries lists[VERVE_CM_LISTS];
	size_t count[VERVE_CM_LISTS]; /* entries on each list */
	struct verve_idtab ids;	      /* connection id to entry */
	struct verve_timers timers;
	unsigned window_used; /* handshakes of ours that are at their beginning */
	uint64_t serial;      /* of the last connection that was opened */
	bool has_news;	      /* events were put since the last notify */
	struct verve_cm_stats stats;
};

#endif
