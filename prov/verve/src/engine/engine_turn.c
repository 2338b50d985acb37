/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An engine's turns, and what wakes a sleeper for the next one. */
#include "engine/engine_turn.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/timerfd.h>

#include "base/log.h"
#include "base/wakefd.h"
#include "engine/engine_state.h"
#include "engine/service.h"
#include "net/sys.h"
#include "proto/proto.h"
#include "xport/errand_run.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

enum {
	HELP_TURNS = 64,
	ERRANDS = 16, /* that a thread does within one call */
};

static const uint64_t help_interval = 2 * 1000000;

/*
 * Where every processor has a thread that polls, the service thread gets a processor only for the
 * scheduler's time slices, and handshakes would wait for these. So a polling thread that finds
 * nothing steps its own manager every 2 ms.
 */
static void help_service(struct verve_engine *engine)
{
	uint64_t now = verve_net_now();

	if (now - engine->helped < help_interval)
		return;
	engine->helped = now;
	verve_service_help(engine->head.xport->cm, now);
}

/*
 * Ends the receives of an engine that has failed. The receives of a shared receive context end when
 * all of its engines have failed. True: there were any.
 */
static bool fail_receives(struct verve_engine *engine)
{
	const struct verve_engine *member;

	LIST_FOREACH(member, &verve_engine_group(engine)->members, member)
		if (!member->head.xport->failed)
			return false;
	return verve_recv_fail_all(verve_engine_group(engine)->head.xport,
				   engine->head.xport->failed);
}

/* The lock is held. */
static inline __attribute__((always_inline)) bool
take_turn(struct verve_engine *engine)
{
	bool any = verve_proto_poll(&engine->proto);

	if (__builtin_expect(!any && engine->head.xport->failed, 0))
		return fail_receives(engine);
	/* Late in verve_engine_stop the manager is closed, and xport->cm is NULL. */
	if (!any && engine->head.xport->cm && !(++engine->idle_turns % HELP_TURNS))
		help_service(engine);
	return any;
}

/* A shared receive context has no device of its own: its members take the turns. */
static __attribute__((noinline)) bool turn_members(struct verve_engine *shared)
{
	struct verve_engine *member;
	bool any = false;

	LIST_FOREACH(member, &shared->members, member)
		any |= member->started && take_turn(member);
	return any;
}

/*
 * Errands wait for a later turn: a thread that sleeps wakes for it. In a shared receive context
 * they may be any member's, and only threads of that member may be left to do them.
 */
static void leave_errands(struct verve_engine *engine)
{
	struct verve_engine *member;

	if (engine->head.xport->channel)
		verve_wakefd_signal(engine->event_fd);
	LIST_FOREACH(member, &verve_engine_group(engine)->members, member)
		verve_wakefd_signal(member->event_fd);
}

/*
 * Does errands that wait, of other threads, too, but not for ever. Other threads have the lock
 * meanwhile: an engine does not close before all are back (verve_engine_stop), not even one whose
 * errands this thread does not do, but by which it came.
 */
static __attribute__((noinline)) void run_errands(struct verve_engine *engine)
{
	struct verve_xport *home = engine->head.xport->home;
	struct verve_errand *errand;
	int done;

	for (done = 0; done < ERRANDS && (errand = verve_errand_take(home)); done++) {
		engine->away++;
		verve_lock_release(engine->head.lock);
		verve_errand_execute(errand);
		verve_lock_acquire(engine->head.lock);
		engine->away--;
		verve_errand_finish(errand);
	}
	if (done == ERRANDS && home->errands.waiting)
		leave_errands(engine);
}

bool verve_engine_turn(struct verve_engine *engine)
{
	bool any = engine->head.xport->channel ? take_turn(engine) : turn_members(engine);

	if (__builtin_expect(*engine->head.errands, 0))
		run_errands(engine);
	return any;
}

bool verve_engine_progress(struct verve_engine *engine)
{
	bool any = verve_lock_try(engine->head.lock);

	if (any) {
		any = verve_engine_turn(engine);
		verve_lock_release(engine->head.lock);
	}
	return any;
}

static void set_timer(struct verve_engine *engine, uint64_t ns)
{
	struct itimerspec when = {
		.it_value = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000},
	};

	engine->timer_set = ns;
	if (timerfd_settime(engine->timer_fd, 0, &when, NULL))
		VERVE_WARN(EP_CTRL, "cannot set the timer of an endpoint's wait descriptor: %s\n",
			   strerror(errno));
}

static void set_timer_of_sleeper(struct verve_engine *engine)
{
	if (!engine->head.asleep)
		return;
	engine->head.asleep = false;
	set_timer(engine, engine->head.xport->attr.keepalive);
}

/*
 * In a shared receive context any member may have new work: a receive takes a message that waits at
 * any member.
 */
static void set_timers(struct verve_engine *engine)
{
	struct verve_engine *member;

	if (!engine->shared && engine->head.xport->channel) {
		set_timer_of_sleeper(engine);
		return;
	}
	engine = verve_engine_group(engine);
	engine->head.asleep = false;
	LIST_FOREACH(member, &engine->members, member)
		set_timer_of_sleeper(member);
}

void verve_engine_before_unlock(struct verve_engine *engine)
{
	run_errands(engine);
	/* A thread that sleeps does not know of the work that the caller may just have started. */
	if (engine->head.group->asleep)
		set_timers(engine);
}

void verve_engine_unlock_within(struct verve_engine *engine)
{
	if (engine->head.group->asleep)
		set_timers(engine);
	if (*engine->head.errands)
		leave_errands(engine);
	verve_lock_release(engine->head.lock);
}

/*
 * A sleeper that waits for a peer's answer, or is to ask a peer again, needs the timer. Setting it
 * also makes timer_fd unreadable again after it has expired.
 */
static void arm_timer(struct verve_engine *engine)
{
	bool wanted = verve_proto_is_waiting(&engine->proto);

	if (wanted || engine->timer_set)
		set_timer(engine, wanted ? verve_proto_pause(&engine->proto) : 0);
	engine->head.asleep = !wanted;
	engine->head.group->asleep |= !wanted;
}

int verve_engine_arm_locked(struct verve_engine *engine)
{
	bool any;

	/* Mail that comes between drain and poll is found by the poll; later, it writes again. */
	verve_wakefd_drain(engine->event_fd);
	arm_timer(engine);
	verve_proto_arm(&engine->proto);
	any = verve_proto_poll(&engine->proto) || *engine->head.errands;
	/* What arming posts may have failed, and what the poll looked after may want an answer. */
	if (!any && engine->head.asleep && verve_proto_is_waiting(&engine->proto))
		arm_timer(engine);
	/*
	 * One turn may leave work behind. Also, draining may have taken the wake-up of
	 * another sleeper. So make event_fd readable again.
	 */
	if (any)
		verve_wakefd_signal(engine->event_fd);
	return any ? -FI_EAGAIN : 0;
}

int verve_engine_arm(struct verve_engine *engine)
{
	int ret;

	verve_lock_acquire(engine->head.lock);
	ret = verve_engine_arm_locked(engine);
	verve_lock_release(engine->head.lock);
	return ret;
}
