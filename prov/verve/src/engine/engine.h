/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Engine: one per endpoint: its lock, its poll loop, its wait descriptor, its connection manager.
 *
 * The engine takes the lock and hands the transport (xport/xport.h) to whoever works under it;
 * everything to the right asserts that the lock is held.
 */
#ifndef VERVE_ENGINE_ENGINE_H
#define VERVE_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/lock.h"

struct verve_auth_key;
struct verve_engine;
struct verve_sink;
struct verve_xport;
struct verve_xport_attr;

struct verve_engine_attr {
	struct verve_addr addr; /* name to bind to; port 0: any */
	const struct verve_auth_key *key; /* see struct verve_cm_attr */
	bool elide_lock;	/* the application serializes */
	const struct verve_xport_attr *xport;
	struct verve_engine *shared; /* of the shared receive context to use; NULL: none */
};

/*
 * Opens the transport and the connection manager, and starts the service thread if it is the first.
 * Logs. -FI_EINVAL: shared has engines with another address vector; -FI_ENOMEM, -FI_EADDRINUSE, -FI_EADDRNOTAVAIL, or what libibverbs said.
 */
int verve_engine_open(const struct verve_engine_attr *attr, struct verve_engine **engine);
/*
 * Drains what was accepted (bounded by the transport time-out), tells the peers, frees. From the call on, nothing
 * that was posted is reported: verve_proto_begin_close.
 */
void verve_engine_close(struct verve_engine *engine);
/*
 * The parent opened it, before fork(2): its device, and the locks that threads of the parent may have held, are the
 * parent's. Nothing else of the engine may be called then. Any thread; takes no lock.
 */
bool verve_engine_is_inherited(const struct verve_engine *engine);

/*
 * The engine of a shared receive context: those opened with it share its lock and its receives. No
 * address, no descriptor; a turn is one of each of them. Of attr, elide_lock and xport count, see
 * verve_xport_init_shared. -FI_ENOMEM.
 */
int verve_engine_open_shared(const struct verve_engine_attr *attr, struct verve_engine **engine);
/* Those opened with it are closed. Posted receives end without a completion: there is no queue. */
void verve_engine_close_shared(struct verve_engine *engine);

/* From now on operations report there. Takes the lock. */
void verve_engine_set_sink(struct verve_engine *engine, const struct verve_sink *sink);

/* The endpoint's name. Constant. */
const struct verve_addr *verve_engine_addr(const struct verve_engine *engine);

/* The lock, for the duration of one API call. */
struct verve_xport *verve_engine_lock(struct verve_engine *engine);
void verve_engine_unlock(struct verve_engine *engine);

/* fi_addr is being removed from the address vector (api/av.c). Takes the lock. */
void verve_engine_forget(struct verve_engine *engine, uint64_t fi_addr);

/*
 * One turn of the loop: connection events, arrived messages, finished work. True if there was any;
 * false also if another thread is at it. Takes the lock.
 */
bool verve_engine_progress(struct verve_engine *engine);

/* Polls readable when a turn would find something, once armed; epoll(7) descriptor, engine's own. */
int verve_engine_fd(const struct verve_engine *engine);
/*
 * Arms. -FI_EAGAIN: there is something to do already; progress, then arm again. Another sleeper's
 * descriptor is readable then, too. Takes the lock.
 */
int verve_engine_arm(struct verve_engine *engine);

#endif
