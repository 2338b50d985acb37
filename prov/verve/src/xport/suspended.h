/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Suspended: what a link keeps while it has no queue pair to post to: the requests that are to be
 * posted again, and the connection that is to continue the link. xport/replay.h says when a link is
 * suspended, and how it goes on. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_SUSPENDED_H
#define VERVE_XPORT_SUSPENDED_H

#include <stdbool.h>
#include <stdint.h>

#include "xport/slot.h"

struct verve_cm_request;
struct verve_link;
struct verve_net_qp;
struct verve_xport;

enum verve_replay_state {
	VERVE_REPLAY_STOPPED,  /* the queue pair is in error, its requests come back */
	VERVE_REPLAY_DETACHED, /* there is no queue pair */
	VERVE_REPLAY_RESUMED,  /* there is another one; what is missing is posted again */
};

/* A request to be posted again. */
struct verve_replay_entry {
	struct verve_slot slot;
	void *bytes; /* COPY: the packet, from malloc */
	bool posted; /* it was posted before, and may have been executed */
	bool dead;   /* its operation has failed */
};

/* The connection that continues a link. */
struct verve_replay_next {
	struct verve_net_qp *qp; /* NULL: there is none yet, or the link has it already */
	uint32_t conn_id, remote_id, qp_num;
	struct verve_cm_request *drop; /* gives this connection up */
};

struct verve_replay {
	enum verve_replay_state state;
	uint32_t marker; /* STOPPED: behind the requests */
	bool drained;	 /* STOPPED: the marker has come back */
	bool refused;	 /* the oldest request was refused, so that nothing behind it was executed */
	struct verve_replay_next next; /* STOPPED, DETACHED */
	bool ready;	 /* the peer can hear us over the new queue pair */
	bool said, told; /* our RESUME was sent; the peer's RESUME has come */
	bool settled;	 /* by the peer's RESUME: entries say what is to be repeated */
	bool executed;	 /* the peer has executed what it had to repeat */
	uint32_t number; /* of packets that the peer has received */
	uint32_t lot, peer_lot;
	uint32_t count, at; /* entries, and those that are posted again */
	struct verve_replay_entry *entries;
};

/* Gives back what an entry holds. */
void verve_replay_entry_release(struct verve_xport *xport, struct verve_replay_entry *entry);
/* The link breaks, or is closed, or goes on. Harmless if it is not suspended. */
void verve_replay_free(struct verve_xport *xport, struct verve_link *link);

/* conn_id names the link, too: the connection that will continue it. */
bool verve_replay_is_next(const struct verve_link *link, uint32_t conn_id);
/* verve_replay_is_next, and packets of that connection arrive on queue pair qp_num. */
bool verve_replay_is_from(const struct verve_link *link, uint32_t conn_id, uint32_t qp_num);
/* The peer has the connection, too: an answer, READY or a packet has shown it. It may be probed. */
bool verve_replay_is_mutual(const struct verve_link *link);
/* The link's queue pair is in error already, with the marker behind its requests. */
bool verve_replay_is_stopped(const struct verve_link *link);

#endif
