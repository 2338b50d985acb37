/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replay: a link outlives its queue pair when a device refuses a request of RDMA. The request fails
 * alone; what was posted behind it, and what the peer had under way, goes on over another queue pair.
 *
 *   STOPPED   the queue pair is in error; its requests come back, what arrived before is taken
 *   DETACHED  there is none; the manager makes another, for the same two links
 *   RESUMED   over it, each tells the other how many packets it has received (RESUME): what did not
 *             arrive is posted again, in order; then the link is as before
 *
 * What lies before the last packet that the peer received was executed. Behind it, writes and reads are
 * repeated: nobody was told that they had ended. An atomic of the device is repeated only if it is
 * certain that it was not executed: it was posted behind a refused one. Else it fails.
 *
 * Of two sides that go on, one whose request was refused waits until the other's are executed, so that
 * who is refused again and again stops nobody else; of two such, lots decide. The engine's lock
 * protects everything here.
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
 * What became of request number, which completed with this ibv_wc_status: with devices whose reports of reads are
 * doubtful (net/device.h), perhaps VERVE_NET_WC_FLUSHED.
 */
uint32_t verve_replay_judge(struct verve_xport *xport, struct verve_link *link, uint32_t number,
			    uint32_t status);
/* Whether the oldest request ended well, now that one behind it ended so. */
bool verve_replay_believes(const struct verve_xport *xport, struct verve_link *link,
			   uint32_t status);
/*
 * Request number, the oldest that did not end well, completed with this ibv_wc_status on an unbroken link. True:
 * the link is suspended, and keeps the request. False: it must break.
 */
bool verve_replay_take(struct verve_xport *xport, struct verve_link *link, uint32_t number,
		       uint32_t status);
/* The manager says that the peer has suspended connection conn_id. False: the link must end. */
bool verve_replay_down(struct verve_xport *xport, struct verve_link *link, uint32_t conn_id);
/* The link waits for a connection that continues the peer's connection remote_id. */
bool verve_replay_expects(const struct verve_link *link, uint32_t remote_id);
/* UP of the expected connection. Takes over event->qp and event->drop. */
void verve_replay_join(struct verve_xport *xport, struct verve_link *link,
		       struct verve_cm_event *event);
/* The manager says that the peer can hear us over connection conn_id. */
void verve_replay_ready(struct verve_xport *xport, struct verve_link *link, uint32_t conn_id);
/* A RESUME packet has arrived. */
void verve_replay_receive(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet);
/* There may be room for more. Harmless if the link is not suspended. */
void verve_replay_continue(struct verve_xport *xport, struct verve_link *link);
/* Request number of the link has ended well, and retired. Harmless if the link is not suspended. */
void verve_replay_completed(struct verve_xport *xport, struct verve_link *link, uint32_t number);
/* The link goes on over another queue pair, or breaks. Harmless while it is closed, or suspended already. */
void verve_replay_renew(struct verve_xport *xport, struct verve_link *link);

/* For xport/detach.c: */

/* The link takes over the queue pair that the manager has made. */
void verve_replay_resume(struct verve_xport *xport, struct verve_link *link);
/* Ends an operation that has its error; what else it has posted is not repeated. reason: a constant string. */
void verve_replay_fail(struct verve_xport *xport, struct verve_replay *replay, struct verve_op *op,
		       const char *reason);
/* The link breaks because there is no memory to go on. */
void verve_replay_no_memory(struct verve_xport *xport, struct verve_link *link);

#endif
