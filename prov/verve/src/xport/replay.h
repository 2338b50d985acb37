/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replay: a link outlives its queue pair when a device refuses an RDMA request. Only the refused
 * request fails; the requests behind it, and the requests of the peer, go on over another queue
 * pair (doc/refusals.md).
 *
 *   STOPPED   the queue pair is in error; its requests come back flushed, and the packets that
 *             arrived before are handled
 *   DETACHED  the queue pair is closed; the manager makes another one for the same two links
 *   RESUMED   over the new queue pair, each side tells the other how many packets it has received
 *             (RESUME); requests that were not executed are posted again, in order; then the link
 *             is as before
 *
 * Requests before the last packet that the peer received were executed. Writes behind that packet,
 * and all reads that have not ended, are repeated: no completion has been reported for them. An
 * atomic of the device is repeated only if it certainly was not executed, because it was posted
 * behind a refused request. Otherwise the atomic fails.
 *
 * A side whose request was refused waits until the peer's requests are executed: a side that is
 * refused again and again must not stop the other side's work. If both sides had a request refused,
 * random lots decide. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_REPLAY_H
#define VERVE_XPORT_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

struct verve_cm_event;
struct verve_link;
struct verve_op;
struct verve_replay;
struct verve_wire_packet;
struct verve_xport;

/*
 * The real ibv_wc_status of request number, which completed with this ibv_wc_status. A device with
 * doubtful reads (net/port_info.h) may report success of a read that was not done: returns
 * VERVE_NET_WC_FLUSHED then, and the link is doubted.
 */
uint32_t verve_replay_judge(struct verve_xport *xport, struct verve_link *link, uint32_t number,
			    uint32_t status);
/* True if the oldest request ended well, now that a request behind it ended with this status. */
bool verve_replay_believes(const struct verve_xport *xport, struct verve_link *link,
			   uint32_t status);
/*
 * Request number completed with this ibv_wc_status, not 0, on an unbroken link; the oldest
 * outstanding request is the first that did not end well. True: the link is suspended, and keeps
 * the requests. False: the caller must break the link.
 */
bool verve_replay_take(struct verve_xport *xport, struct verve_link *link, uint32_t number,
		       uint32_t status);
/*
 * The manager says that the peer has suspended connection conn_id: suspends the unbroken link.
 * False: the link must end.
 */
bool verve_replay_down(struct verve_xport *xport, struct verve_link *link, uint32_t conn_id);
/* True if the link waits for a connection that continues the peer's connection remote_id. */
bool verve_replay_expects(const struct verve_link *link, uint32_t remote_id);
/*
 * UP of the connection that verve_replay_expects. Takes over event->qp and event->drop in any case;
 * breaks the link without memory, or if the new queue pair takes less inline.
 */
void verve_replay_join(struct verve_xport *xport, struct verve_link *link,
		       struct verve_cm_event *event);
/*
 * The manager says that the peer can hear this side over connection conn_id. The link is suspended.
 */
void verve_replay_ready(struct verve_xport *xport, struct verve_link *link, uint32_t conn_id);
/* A RESUME packet has arrived. */
void verve_replay_receive(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet);
/*
 * Sends RESUME and repeats requests, as far as there is room; the peer waits for a later turn for
 * the rest. May break the link. Harmless if the link is not suspended.
 */
void verve_replay_continue(struct verve_xport *xport, struct verve_link *link);
/* Request number of the link ended well, and has retired. Harmless if the link is not suspended. */
void verve_replay_completed(struct verve_xport *xport, struct verve_link *link, uint32_t number);
/*
 * Suspends a link that is in order, so that it goes on over another queue pair; breaks the link if
 * that is not possible. Harmless if the link is broken, leaves, or is suspended already.
 */
void verve_replay_renew(struct verve_xport *xport, struct verve_link *link);

/* For xport/detach.c: */

/* The DETACHED link takes over replay->next.qp. */
void verve_replay_resume(struct verve_xport *xport, struct verve_link *link);
/*
 * Ends an operation that has op->error; its other requests are not repeated. reason: a constant
 * string.
 */
void verve_replay_fail(struct verve_xport *xport, struct verve_replay *replay, struct verve_op *op,
		       const char *reason);
/* Breaks the link: there is no memory to go on with another queue pair. */
void verve_replay_no_memory(struct verve_xport *xport, struct verve_link *link);

#endif
