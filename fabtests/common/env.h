/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * env: one run of a test program: its options, the connection to its other half and its members,
 * which are the open nodes. Every wait drives all of them, because progress may be manual. env
 * knows nothing of nodes: each member has a function that drives it.
 */
#ifndef FABTESTS_ENV_H
#define FABTESTS_ENV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/oob.h"
#include "common/opts.h"

struct env_member {
	LIST_ENTRY(env_member) entry;
	void (*progress)(struct env_member *member);
};
LIST_HEAD(env_members, env_member);

struct env {
	struct opts opts;
	struct oob oob;
	struct env_members members;
	bool server; /* the half without a server address; local programs serve too */
};

/* A point in time opts.timeout seconds ahead; for bounding waits only. */
uint64_t env_deadline(const struct env *env);
/*
 * Drives every member once. turns: how often this wait did that in vain. Unless -c is spin the
 * processor is given away, after many turns for up to a millisecond: other processes may need it.
 */
void env_progress(struct env *env, unsigned turns);
/* The same; gives the processor away in any case. env: struct env *; for struct oob. */
void env_wait(void *env, unsigned turns);
/* Drives everything for so many milliseconds. */
void env_settle(struct env *env, unsigned milliseconds);
/* Returns when both halves are here; the names must agree. */
void env_sync(struct env *env, const char *name);

#endif
