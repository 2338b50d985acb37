/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection manager: one per endpoint. Owns the handshake socket and every connection from the
 * first HELLO to the hand-over of its connected queue pair; answers peers whether or not the
 * application calls libfabric.
 *
 * Its state belongs to the service thread, which calls verve_cm_step. The engine talks to it by
 * verve_cm_connect, verve_cm_drop and the like (any thread, lock-free) and reads its events
 * (conn/cm_event.h) from a mailbox. It must not know packets, links or the engine that reads.
 *
 * Start reading with conn/conn_state.h, the state machine; conn/cm_state.h says where the manager's
 * parts are.
 */
#ifndef VERVE_CONN_CM_H
#define VERVE_CONN_CM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "conn/cm_attr.h"
#include "conn/cm_event.h"

struct verve_cm;

/*
 * Binds the socket. -FI_EADDRINUSE, -FI_EADDRNOTAVAIL, -FI_ENOMEM ...; -FI_EINVAL: with a key, addr
 * must not be a wildcard.
 */
int verve_cm_open(const struct verve_cm_attr *attr, struct verve_cm **cm);
/*
 * When the service thread no longer steps it: says BYE to every peer, closes what was not handed
 * over, and puts no more events. The caller then empties the mailbox (an UP in it owns a queue
 * pair).
 */
void verve_cm_close(struct verve_cm *cm);

/* The bound address: the endpoint's name. Constant. */
const struct verve_addr *verve_cm_addr(const struct verve_cm *cm);
int verve_cm_fd(const struct verve_cm *cm);

/*
 * Asks for a connection; ends in UP or FAILED, once. Also when one comes up because the peer asked
 * at the same time: one UP serves both. Asking while one is up or on its way adds nothing.
 * An endpoint may connect to its own address. -FI_ENOMEM.
 */
int verve_cm_connect(struct verve_cm *cm, const struct verve_addr *addr);
/*
 * The engine has given a connection up (its queue pair failed; the engine closes that). The
 * manager forgets it and frees conn_id; the next connect starts anew. No event follows. drop: of
 * its UP; the manager's from here on, and set NULL. NULL: nothing.
 */
void verve_cm_drop(struct verve_cm *cm, struct verve_cm_request **drop);
/*
 * The same for one whose UP said listen, and over which no packet came in time: a peer that may
 * not exist is not told.
 */
void verve_cm_expire(struct verve_cm *cm, struct verve_cm_request **drop);

/*
 * The same, but the engine wants to go on with another queue pair: tells the peer, and connects.
 * Ends in UP or FAILED, once; in UP's resumes the peer says that it goes on, too. Also after a
 * DOWN that says suspended. Only for a connection that the peer has: UP said may_send, READY came, or a
 * packet. A peer that still waits for our HELLO would take it for a refusal. -FI_ENOMEM.
 */
int verve_cm_resume(struct verve_cm *cm, const struct verve_addr *addr, uint32_t conn_id);

/*
 * The peer's first packet came, over a connection whose UP said listen. -FI_ENOMEM: READY tells
 * the same.
 */
int verve_cm_hear(struct verve_cm *cm, uint32_t conn_id);

/*
 * The engine waits for an answer over the connection: DOWN with FI_EHOSTUNREACH follows the second
 * time that the peer's port turns out to be closed, or the fourth time that its host cannot be
 * reached; with FI_ENOTCONN if somebody else is there. first: the peer was heard of since the last
 * check. -FI_ENOMEM.
 */
int verve_cm_check(struct verve_cm *cm, uint32_t conn_id, bool first);

/*
 * Service thread: the device is gone. Every connection ends, and everything that waits for one
 * fails, with error, positive; peers are told. The next step wakes the reader. Opening queue pairs
 * fails from now on, so what comes later fails by itself.
 */
void verve_cm_abandon(struct verve_cm *cm, int error);

/*
 * Service thread: requests, datagrams, timers. now: nanoseconds of the monotonic clock. Returns the
 * time of the next timer, UINT64_MAX if none runs.
 */
uint64_t verve_cm_step(struct verve_cm *cm, uint64_t now);

/* Service thread, or after close of traffic. */
void verve_cm_stats_get(const struct verve_cm *cm, struct verve_cm_stats *stats);

#endif
