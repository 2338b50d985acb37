/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection manager from inside, for the files that make it up:
 *   cm.c        its life and its steps; performs what connections (conn/conn.c) decide
 *   cm_mail.c   what the engine asks for, and hears
 *   cm_dgram.c  what datagrams do
 *   cm_entry.c  what it keeps of a peer address: connection, queue pair, events, lists
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
#include "conn/cm.h"
#include "conn/conn_state.h"
#include "conn/guard.h"
#include "conn/hello.h"
#include "conn/timer.h"
#include "net/dgram.h"

enum verve_cm_list {
	VERVE_CM_LIST_NONE,
	VERVE_CM_LIST_QUEUED,
	VERVE_CM_LIST_HALF_OPEN,
	VERVE_CM_LIST_IDLE,
	VERVE_CM_LISTS,
};

/* One peer address. A connection's events are allocated before its first HELLO, so that none can be missing later. */
struct verve_cm_entry {
	struct verve_timer timer; /* first: verve_timers_first finds the entry */
	struct verve_conn conn;
	UT_hash_handle hh; /* by conn.addr */
	enum verve_cm_list list;
	TAILQ_ENTRY(verve_cm_entry) link;
	bool in_window;
	struct verve_cm_event *request; /* asked for; becomes FAILED */
	uint32_t id;			/* in cm->ids; 0: our end is not open */
	struct verve_net_qp *qp;	/* ours until UP */
	struct verve_cm_event *up, *ready, *down;
};

TAILQ_HEAD(verve_cm_entries, verve_cm_entry);

struct verve_cm {
	struct verve_cm_attr attr;
	struct verve_conn_self self;
	struct verve_guard guard;
	struct verve_net_dgram *dgram;
	struct verve_mailbox requests;	/* see cm_mail.c */
	struct verve_cm_entry *entries; /* uthash */
	struct verve_cm_entries lists[VERVE_CM_LISTS];
	size_t count[VERVE_CM_LISTS];
	struct verve_idtab ids;
	struct verve_timers timers;
	unsigned window_used; /* entries that are in_window */
	uint64_t serial;
	bool has_news; /* events since the last notify */
	struct verve_cm_stats stats;
};

/* cm.c */
uint64_t verve_cm_random(void);
/* Does what *out says, and moves the entry to where its state belongs. */
void verve_cm_perform(struct verve_cm *cm, struct verve_cm_entry *entry, struct verve_conn_out *out);

/* cm_entry.c. NULL: there is none. */
struct verve_cm_entry *verve_cm_entry_find(const struct verve_cm *cm, const struct verve_addr *addr);
/* Finds it, or makes one. NULL: no memory. */
struct verve_cm_entry *verve_cm_entry_make(struct verve_cm *cm, const struct verve_addr *addr);
void verve_cm_entry_free(struct verve_cm *cm, struct verve_cm_entry *entry);
/* Opens our end: id, queue pair, events. -FI_ENOMEM, or what opening the queue pair said. */
int verve_cm_entry_open(struct verve_cm *cm, struct verve_cm_entry *entry);
/* The connection's state may have changed: list, window and timer follow; an end that is over is closed. */
void verve_cm_entry_settle(struct verve_cm *cm, struct verve_cm_entry *entry);

/* cm_mail.c */
/* With what gives the connection up. NULL: no memory. */
struct verve_cm_event *verve_cm_up_alloc(void);
void verve_cm_step_requests(struct verve_cm *cm);
void verve_cm_post_up(struct verve_cm *cm, struct verve_cm_entry *entry,
		      const struct verve_conn_out *out);
void verve_cm_post_ready(struct verve_cm *cm, struct verve_cm_entry *entry,
			 const struct verve_conn_out *out);
void verve_cm_post_down(struct verve_cm *cm, struct verve_cm_entry *entry,
			const struct verve_conn_out *out);
/* If it was asked for. error: positive FI errno. */
void verve_cm_post_failed(struct verve_cm *cm, struct verve_cm_entry *entry, int error);

/* cm_dgram.c: what verve_net_dgram_send says. */
int verve_cm_send(struct verve_cm *cm, const struct verve_hello *hello, const struct verve_addr *to);
/* True: there may be more. */
bool verve_cm_step_dgrams(struct verve_cm *cm, uint64_t now);

#endif
