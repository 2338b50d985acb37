/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* env: progress of all open members, and meeting the other half. */
#include "common/env.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "common/check.h"
#include "common/clock.h"

#define PATIENCE 500
#define NAP_MAX_US 1000

uint64_t env_deadline(const struct env *env)
{
	return clock_now() + env->opts.timeout * 1000000000ull;
}

/* What many turns did not bring is a matter of time, a time-out perhaps. */
static void rest(unsigned turns)
{
	unsigned over = turns > PATIENCE ? turns - PATIENCE : 0;

	if (over)
		usleep(over < NAP_MAX_US ? over : NAP_MAX_US);
	else
		sched_yield();
}

void env_progress(struct env *env, unsigned turns)
{
	struct env_member *member;

	LIST_FOREACH(member, &env->members, entry)
		member->progress(member);
	/* Both halves may share one processor. */
	if (env->opts.method != OPTS_SPIN)
		rest(turns);
}

void env_wait(void *arg, unsigned turns)
{
	struct env *env = arg;

	env_progress(env, turns);
	if (env->opts.method == OPTS_SPIN)
		sched_yield();
}

void env_settle(struct env *env, unsigned milliseconds)
{
	uint64_t end = clock_now() + milliseconds * 1000000ull;

	for (unsigned turns = 0; clock_now() < end; turns++)
		env_wait(env, turns);
}

void env_sync(struct env *env, const char *name)
{
	char theirs[OOB_MAX];
	size_t len;

	len = oob_exchange(&env->oob, name, strlen(name), theirs, sizeof(theirs) - 1);
	theirs[len] = '\0';
	if (strcmp(name, theirs))
		check_fatal("out of step: we are at \"%s\", the other side at \"%s\"", name,
			    theirs);
}
