/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection manager: one per endpoint. Owns the handshake socket and every connection from the
 * first HELLO to the hand-over of its connected queue pair; answers peers whether or not the
 * application calls libfabric.
 *
 * The manager's state belongs to the thread that steps it: the service thread or, in its place, a
 * polling one; below, both are the service thread. The engine sends
 * requests with verve_cm_connect, verve_cm_drop and the other functions below (any thread, no
 * lock), and reads the manager's events (conn/cm_event.h) from a mailbox. The manager must not know
 * packets, links or the engine.
 *
 * Start reading with conn/conn_state.h, the state machine. conn/cm_state.h lists the manager's
 * files.
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
 * Opens a manager and binds its socket. Copies *attr, and the key. Logs an error of its own; the
 * errors of verve_net_dgram_open and verve_worker_prepare; -FI_ENOMEM; -FI_EINVAL: addr is a
 * wildcard although there is a key.
 */
int verve_cm_open(const struct verve_cm_attr *attr, struct verve_cm **cm);
/*
 * To be called when the service thread no longer steps the manager. Waits for workers that are at a
 * queue pair of it, which may take a second. Sends BYE to every peer, closes the queue pairs that
 * were not handed over, and puts no more events. The caller empties the mailbox afterwards: an UP
 * event in it owns a queue pair.
 */
void verve_cm_close(struct verve_cm *cm);

/* The bound address: the endpoint's name. Constant. */
const struct verve_addr *verve_cm_addr(const struct verve_cm *cm);
/* The socket's descriptor: polls readable while a datagram waits. The manager owns it. */
int verve_cm_fd(const struct verve_cm *cm);

/*
 * Asks for a connection with the peer at addr. Exactly one event follows: UP or FAILED. If the peer
 * asks at the same time, one UP serves both requests. A request while a connection is up or on its
 * way adds no event. An endpoint may connect to its own address. -FI_ENOMEM.
 */
int verve_cm_connect(struct verve_cm *cm, const struct verve_addr *addr);
/*
 * The engine has given a connection up: its queue pair failed, and the engine closes the queue
 * pair. The manager sends BYE, forgets the connection and frees conn_id; the next verve_cm_connect
 * starts anew. No event follows. *drop: the request that came with the connection's UP event; the
 * manager takes it, and *drop becomes NULL. *drop NULL: nothing happens.
 */
void verve_cm_drop(struct verve_cm *cm, struct verve_cm_request **drop);
/*
 * The same for a connection whose UP event said listen, if no packet came over it in time. If only
 * the peer asked for the connection, no BYE is sent: the peer's address may be forged.
 */
void verve_cm_expire(struct verve_cm *cm, struct verve_cm_request **drop);

/*
 * The engine gives a connection up, but wants to continue it with another queue pair. The manager
 * tells the peer (BYE, suspended) and connects anew. Exactly one event follows: UP or FAILED. If
 * UP's resumes is not 0, the peer continues the connection, too. Also to be called after a DOWN
 * event that says suspended. Only for a connection that the peer surely has: UP said may_send,
 * READY came, or a packet came. (A peer that still waits for our HELLO would take the BYE for a
 * refusal.) -FI_ENOMEM.
 */
int verve_cm_resume(struct verve_cm *cm, const struct verve_addr *addr, uint32_t conn_id);

/*
 * The engine tells that the peer's first packet came over a connection whose UP event said listen.
 * -FI_ENOMEM is harmless: the peer's READY tells the manager the same.
 */
int verve_cm_hear(struct verve_cm *cm, uint32_t conn_id);

/*
 * The engine waits for an answer of the peer, and asks whether the peer still lives. A DOWN event
 * follows if it does not: with FI_EHOSTUNREACH when two checks in a row found the peer's port
 * closed, or four did not reach its host; with FI_ENOTCONN when another process has the port.
 * first: the peer was heard since the last check. -FI_ENOMEM.
 */
int verve_cm_check(struct verve_cm *cm, uint32_t conn_id, bool first);

/*
 * The engine has found a queue of its own that does not work any more: the manager gives everything
 * up, as verve_cm_abandon does (conn/cm_fault.h). error: positive FI errno. -FI_ENOMEM.
 */
int verve_cm_fail(struct verve_cm *cm, int error);

/*
 * Service thread: handles requests, datagrams and timers. now: verve_net_now(). Returns the time of
 * the next step, in nanoseconds of the same clock: now if datagrams may be left, else the first
 * timer's time; UINT64_MAX: no timer runs.
 */
uint64_t verve_cm_step(struct verve_cm *cm, uint64_t now);

/* Copies the counts. Service thread, or any thread when the service thread does not step. */
void verve_cm_stats_get(const struct verve_cm *cm, struct verve_cm_stats *stats);

#endif
