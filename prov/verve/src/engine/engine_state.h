/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An engine's state, for the files of this folder that are the engine: engine.c opens and closes
 * it, engine_turn.c takes its turns. Its lock protects what changes, unless a field says otherwise.
 */
#ifndef VERVE_ENGINE_ENGINE_STATE_H
#define VERVE_ENGINE_ENGINE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/lock.h"
#include "engine/engine_head.h"
#include "proto/proto.h"

struct verve_engine {
	struct verve_engine_head head; /* first: verve_engine_head casts an engine to its head */
	struct verve_lock own_lock;
	struct verve_engine *shared; /* of the shared receive context that it uses; NULL: none */
	LIST_HEAD(, verve_engine) members; /* that use this shared context; guarded by lock */
	LIST_ENTRY(verve_engine) member;
	void (*failed)(void *arg, int error); /* see struct verve_engine_attr; constant */
	void *failed_arg;
	unsigned away; /* threads that do errands (engine_turn.c) */
	bool started; /* turns of the shared receive context are turns of this engine, too */
	struct verve_proto proto;
	int event_fd; /* eventfd(2): mail of the service thread, or work that a turn left behind */
	int timer_fd; /* timerfd(2): wakes a sleeper that must look after its peers */
	bool timer_set;
	int wait_fd;  /* epoll(7): event_fd, timer_fd and the device's channel */
	pid_t pid; /* the process that opened the engine */
	uint32_t idle_turns; /* found nothing; each HELP_TURNS-th may help the service thread */
	uint64_t helped;     /* verve_net_now() when this engine last helped the service thread */
};

_Static_assert(!offsetof(struct verve_engine, head), "verve_engine_head casts");

/* The engine whose lock counts: head.group is its head. */
static inline struct verve_engine *verve_engine_group(struct verve_engine *engine)
{
	return engine->shared ? engine->shared : engine;
}

#endif
