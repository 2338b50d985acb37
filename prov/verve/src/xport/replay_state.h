/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replay state: what a link keeps while it has no queue pair to post to: the requests to be
 * posted again, and the connection that is to continue the link. xport/replay.h says when a link is
 * suspended, and how it goes on. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_REPLAY_STATE_H
#define VERVE_XPORT_REPLAY_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/slot.h"

struct verve_cm_request;
struct verve_link;
struct verve_net_qp;
struct verve_xport;

enum verve_replay_state {
	VERVE_REPLAY_STOPPED,  /* the queue pair is in error; its requests come back flushed */
	VERVE_REPLAY_DETACHED, /* the queue pair is closed; there is no other one yet */
	VERVE_REPLAY_RESUMED,  /* there is another queue pair; entries are posted again over it */
};

/* A request to be posted again. */
struct verve_replay_entry {
	struct verve_slot slot;
	void *bytes; /* VERVE_SLOT_COPY: the packet, from malloc; freed with the entry */
	bool posted; /* was posted to the failed queue pair, and may have been executed */
	bool dead;   /* not to be repeated: it was executed, or its operation has failed */
};

/* The connection that continues a link. */
struct verve_replay_next {
	struct verve_net_qp *qp;	     /* NULL: not made yet, or handed to the link already */
	uint32_t conn_id, remote_id, qp_num; /* become the link's */
	struct verve_cm_request *drop;	     /* tells the manager to give this connection up */
};

struct verve_replay {
	enum verve_replay_state state;
	uint32_t marker; /* STOPPED: number of the marker, the last request (verve_link_stop) */
	bool drained;	 /* STOPPED: the marker has come back, or there is none */
	bool refused;	 /* the oldest request was refused: no request behind it was executed */
	struct verve_replay_next next; /* STOPPED, DETACHED */
	bool ready;		       /* the peer can hear this side over the new queue pair */
	bool said, told;	       /* RESUME was sent; the peer's RESUME has arrived */
	bool settled;	 /* the peer's RESUME was applied: dead says which entries are repeated */
	bool executed;	 /* the peer has executed all that it had to repeat */
	uint32_t number; /* packets that the peer has received, from its RESUME */
	uint32_t lot, peer_lot; /* the smaller lot repeats first; 0: nothing was refused */
	uint32_t count;		/* entries */
	uint32_t at;		/* entries before this index were posted again */
	struct verve_replay_entry *entries; /* from malloc; in order */
};

/* Gives the entry's slab back, or frees its bytes. */
void verve_replay_entry_release(struct verve_xport *xport, struct verve_replay_entry *entry);
/*
 * Frees link->replay: the link breaks, closes, or goes on. A connection that was to continue the
 * link is given up; its queue pair becomes link->unused. Harmless if the link is not suspended.
 */
void verve_replay_free(struct verve_xport *xport, struct verve_link *link);

/* conn_id is the connection that will continue the link, and has not done so yet. */
bool verve_replay_is_next(const struct verve_link *link, uint32_t conn_id);
/* verve_replay_is_next, and packets of that connection arrive on queue pair qp_num. */
bool verve_replay_is_from(const struct verve_link *link, uint32_t conn_id, uint32_t qp_num);
/*
 * The peer has the connection, too: an answer, READY or a packet has shown it. So a request on this
 * link can end.
 */
bool verve_replay_is_mutual(const struct verve_link *link);
/* The link is STOPPED: its queue pair is in error, and a marker was posted if it took one. */
bool verve_replay_is_stopped(const struct verve_link *link);

#endif
