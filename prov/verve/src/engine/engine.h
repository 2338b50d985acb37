/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Engine: one per endpoint. It has the lock, the poll loop, the wait descriptor and the connection
 * manager.
 *
 * Every transfer works under the lock: verve_engine_lock takes the lock and returns the transport
 * (xport/xport.h). All code in the folders to the right asserts that the lock is held.
 */
#ifndef VERVE_ENGINE_ENGINE_H
#define VERVE_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/lock.h"
#include "engine/engine_head.h"
#include "engine/engine_turn.h"

struct verve_auth_key;
struct verve_sink;
struct verve_xport;
struct verve_xport_attr;

struct verve_engine_attr {
	struct verve_addr addr; /* the name to bind to; UDP port 0: the kernel chooses one */
	const struct verve_auth_key *key; /* see struct verve_cm_attr; copied; NULL: none */
	bool elide_lock;	/* the application serializes all calls */
	const struct verve_xport_attr *xport;
	struct verve_engine *shared; /* engine of the shared receive context to use; NULL: none */
	/* becomes the engine's, and outlives it; NULL: one of its own. With shared: NULL */
	struct verve_lock *lock;
	/*
	 * Called once if the endpoint fails (xport/failure.h), by whichever thread finds out, and
	 * not after verve_engine_stop. Locks are held, the engine's perhaps among them: it only
	 * queues or wakes. error: positive FI errno. NULL: nobody wants to know.
	 */
	void (*failed)(void *arg, int error);
	void *arg; /* of failed */
};

/*
 * Opens the transport and the connection manager, and starts the service thread if no endpoint is
 * open yet. attr is copied; what its pointers name stays the caller's, and must outlive the engine,
 * except for attr, attr->xport and attr->key. Logs. On success the caller owns *engine, starts it,
 * and ends it with verve_engine_stop, then verve_engine_close.
 * -FI_EINVAL: the engines of attr->shared have another address vector; -FI_ENOMEM; -FI_EADDRINUSE
 * or -FI_EADDRNOTAVAIL: the address cannot be bound; or the error of libibverbs.
 */
int verve_engine_open(const struct verve_engine_attr *attr, struct verve_engine **engine);
/*
 * From now on, threads that poll the shared receive context take turns of this engine, too. An
 * engine that takes turns answers its peers; so whoever must tell it what happens (api/domain.h)
 * knows it before. Takes the lock.
 */
void verve_engine_start(struct verve_engine *engine);
/*
 * Waits until accepted operations are done, says BYE to the peers, and ends all connections. Each
 * of these steps ends after the transport time-out; the first may also wait for a connection, up to
 * the connect time-out. From this call on, no operation that was posted to the endpoint is
 * reported: see verve_proto_begin_close. Until it returns, turns answer peers. An engine that was
 * not started is stopped, too. The lock must not be held.
 */
void verve_engine_stop(struct verve_engine *engine);
/* Frees an engine that is stopped. The lock must not be held. */
void verve_engine_close(struct verve_engine *engine);
/*
 * The parent opened it, before fork(2): its device, and the locks that threads of the parent may
 * have held, are the parent's. Nothing else of the engine may be called then. Any thread; takes no
 * lock.
 */
bool verve_engine_is_inherited(const struct verve_engine *engine);

/*
 * Opens the engine of a shared receive context. Engines that are opened with it as attr->shared use
 * its lock and its receives. It has no address and no wait descriptor; its turn is one turn of each
 * of these engines. Of attr, only elide_lock and xport are read; of xport, see
 * verve_proto_init_shared. -FI_ENOMEM. On success the caller owns *engine.
 */
int verve_engine_open_shared(const struct verve_engine_attr *attr, struct verve_engine **engine);
/*
 * The engines that use the context are closed before. Receives that are still posted end without a
 * completion: there is no queue left to report them to.
 */
void verve_engine_close_shared(struct verve_engine *engine);

/* From now on the engine's operations report to sink, which is copied. Takes the lock. */
void verve_engine_set_sink(struct verve_engine *engine, const struct verve_sink *sink);

/*
 * The endpoint's name, with the UDP port that was bound. Constant; valid until verve_engine_stop
 * begins.
 */
const struct verve_addr *verve_engine_addr(const struct verve_engine *engine);

/*
 * Lock and unlock for the length of one API call. verve_engine_lock returns the transport, which
 * may be used until verve_engine_unlock.
 */
static inline struct verve_xport *verve_engine_lock(struct verve_engine *engine)
{
	verve_lock_acquire(verve_engine_head(engine)->lock);
	return verve_engine_head(engine)->xport;
}

static inline void verve_engine_unlock(struct verve_engine *engine)
{
	struct verve_engine_head *head = verve_engine_head(engine);

	if (__builtin_expect(head->group->asleep || *head->errands, 0))
		verve_engine_before_unlock(engine);
	verve_lock_release(head->lock);
}

/* Constant. Engines of one shared receive context have the same lock. */
const struct verve_lock *verve_engine_lock_of(const struct verve_engine *engine);

/*
 * fi_addr is being removed from the address vector (api/av.c): later requests do not reach the peer
 * by it. Takes the lock.
 */
void verve_engine_forget(struct verve_engine *engine, uint64_t fi_addr);

/*
 * The wait descriptor, for epoll(7) or poll(2): once armed, it is readable when a turn would find
 * something. The engine owns it.
 */
int verve_engine_fd(const struct verve_engine *engine);

#endif
