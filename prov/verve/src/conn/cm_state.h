/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection manager's data, for the manager's own files. Each file may name only files below
 * it in this list:
 *
 *   cm.h          opening and closing, the steps, the engine's requests
 *   cm_done.h     input: jobs that are done
 *   cm_dgram.h    input: datagrams          cm_mail.h   input: the engine's requests
 *   cm_fault.h    input: what fails of the device
 *   cm_perform.h  output: queue pairs, events, datagrams
 *   cm_entry.h    data: the entry of one peer address
 *   cm_job.h      data: the job of an entry's queue pair, which a worker executes
 *   cm_state.h    data: the manager
 *   cm_event.h    data: events and requests    cm_attr.h    data: attributes and counts
 *
 * All data belongs to the service thread, except the mailboxes, which any thread may use.
 */
#ifndef VERVE_CONN_CM_STATE_H
#define VERVE_CONN_CM_STATE_H

/* Must stand before uthash.h: without memory, HASH_ADD then fails instead of calling exit. */
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
#include "conn/worker.h"
#include "net/dgram.h"

/* Each entry is on at most one list, by the state of its connection. */
enum verve_cm_list {
	VERVE_CM_LIST_NONE,	 /* WAIT_HELLO, UP, and every busy entry */
	VERVE_CM_LIST_QUEUED,	 /* QUEUED: waits for the window */
	VERVE_CM_LIST_AGAIN,	 /* QUEUED and for_peer: only when LIST_QUEUED is empty */
	VERVE_CM_LIST_HALF_OPEN, /* WAIT_READY */
	VERVE_CM_LIST_IDLE,	 /* IDLE */
	VERVE_CM_LISTS,
};

/*
 * One peer address. All events of a connection are allocated before its first HELLO, so that no
 * report can fail for lack of memory; so is its job.
 */
struct verve_cm_entry {
	struct verve_timer timer; /* must be first: a timer is cast to its entry */
	struct verve_conn conn;
	UT_hash_handle hh; /* by conn.addr */
	enum verve_cm_list list;
	TAILQ_ENTRY(verve_cm_entry) link; /* in cm->lists[list] */
	bool in_window;			  /* the entry is counted in cm->window_used */
	bool in_peers_window;		  /* the entry is counted in cm->window_for_peers */
	bool busy; /* a worker has the job: the connection takes no input (conn/cm_job.h) */
	/* the engine's request for a connection, which may become FAILED; NULL: none */
	struct verve_cm_event *request;
	/*
	 * True unless our engine has asked for this connection by itself. It may still have asked
	 * to continue one that only the peer had asked for: a stranger can suspend, and so make our
	 * engine ask, as often as it likes.
	 */
	bool for_peer;
	uint32_t id;			  /* in cm->ids; 0: our end is not open */
	/* the queue pair, and what a worker does with it; NULL once UP has handed it over */
	struct verve_cm_job *job;
	/* events that were not put yet; NULL: put already, or our end is not open */
	struct verve_cm_event *up, *ready, *down;
};

TAILQ_HEAD(verve_cm_entries, verve_cm_entry);

struct verve_cm {
	struct verve_cm_attr attr;
	struct verve_conn_self self;
	struct verve_guard guard;
	struct verve_net_dgram *dgram;
	struct verve_mailbox requests;	/* of struct verve_cm_request */
	struct verve_job_owner jobs;	/* struct verve_cm_job */
	struct verve_mail *done;	/* jobs that were taken, oldest first, not handled yet */
	unsigned strangers;		/* jobs under way of class VERVE_JOB_STRANGER */
	bool jobless;			/* no worker takes a job any more */
	struct verve_cm_entry *entries; /* uthash: entries by address */
	struct verve_cm_entries lists[VERVE_CM_LISTS];
	size_t count[VERVE_CM_LISTS]; /* entries on each list */
	struct verve_idtab ids;	      /* connection id to entry */
	struct verve_timers timers;
	unsigned window_used; /* handshakes in the window: begun by us, and few HELLOs repeated */
	unsigned window_for_peers; /* those of them that are for the peer */
	uint64_t serial;      /* serial number of the last connection that was opened */
	bool has_news;	      /* events were put since the last call of notify */
	int failed;	      /* positive FI errno: every connection was given up; 0: none */
	struct verve_cm_event *fatal; /* the event that tells this; NULL: it was put */
	struct verve_cm_stats stats;
};

#endif
