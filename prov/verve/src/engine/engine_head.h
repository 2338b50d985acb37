/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Head: the part of an engine by which its lock is taken (engine/engine.h). */
#ifndef VERVE_ENGINE_ENGINE_HEAD_H
#define VERVE_ENGINE_ENGINE_HEAD_H

#include <stdbool.h>
#include <stdint.h>

struct verve_engine;
struct verve_lock;
struct verve_xport;

/*
 * The beginning of each engine, public so that verve_engine_lock and verve_engine_unlock are
 * inline, and used by nothing else outside this folder. The lock guards asleep.
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
	const uint32_t *errands; /* how many wait (xport/errand_state.h); of group; constant */
};

static inline struct verve_engine_head *verve_engine_head(struct verve_engine *engine)
{
	return (struct verve_engine_head *)engine; /* its first member */
}

#endif
