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

struct verve_auth_key;
struct verve_engine;
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
 * The beginning of each engine, public so that verve_engine_lock and verve_engine_unlock are
 * inline, and used by nothing else outside engine.c. The lock guards asleep.
 */
struct verve_engine_head {
	struct verve_lock *lock; /* its own, the caller's, or that of the shared receive context */
	struct verve_xport *xport;
	struct verve_engine_head *group; /* of the engine whose lock counts: this one, or shared */
	/*
	 * A thread may sleep on the wait descriptor without a timer: the next verve_engine_unlock
	 * sets the timer. In the engine of a shared receive context: this is so for at least one
	 * of the engines that use it.
	 */
	bool asleep;
};

static inline struct verve_engine_head *verve_engine_head(struct verve_engine *engine)
{
	return (struct verve_engine_head *)engine; /* its first member */
}

/*
 * For verve_engine_unlock alone: sets the timer of each thread that may sleep without one, because
 * the caller may have started work that needs turns. The lock is held.
 */
void verve_engine_set_timers(struct verve_engine *engine);

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

	/* A thread that sleeps does not know of the work that the caller may just have started. */
	if (__builtin_expect(head->group->asleep, 0))
		verve_engine_set_timers(engine);
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
 * One turn of the loop: handles connection events, arrived packets and finished work. True if there
 * was any of these. False also if another thread has the lock, or waits for it: it probably polls,
 * and does this thread's work, too. So this call never waits.
 */
bool verve_engine_progress(struct verve_engine *engine);
/* The same for a caller that has the engine's lock. */
bool verve_engine_turn(struct verve_engine *engine);

/*
 * The wait descriptor, for epoll(7) or poll(2): once armed, it is readable when a turn would find
 * something. The engine owns it.
 */
int verve_engine_fd(const struct verve_engine *engine);
/*
 * Arms the wait descriptor. 0: armed, and there is nothing to do. -FI_EAGAIN: there was something
 * to do; take turns until they find nothing, then arm again. In this case the descriptor also
 * becomes readable for other sleepers. Takes the lock.
 */
int verve_engine_arm(struct verve_engine *engine);
/* The same for a caller that has the engine's lock. */
int verve_engine_arm_locked(struct verve_engine *engine);

#endif
