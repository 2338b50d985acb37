/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* env: progress of all open members, and meeting the other half. */
#include "common/env.h"

#include <sched.h>
#include <string.h>

#include "common/check.h"
#include "common/clock.h"

uint64_t env_deadline(const struct env *env)
{
	return clock_now() + env->opts.timeout * 1000000000ull;
}

void env_progress(struct env *env)
{
	struct env_member *member;

	LIST_FOREACH(member, &env->members, entry)
		member->progress(member);
	/* Both halves may share one processor. */
	if (env->opts.method != OPTS_SPIN)
		sched_yield();
}

void env_wait(void *env)
{
	env_progress(env);
	sched_yield();
}

void env_settle(struct env *env, unsigned milliseconds)
{
	uint64_t end = clock_now() + milliseconds * 1000000ull;

	while (clock_now() < end)
		env_wait(env);
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
