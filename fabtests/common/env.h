/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * env: what one run of a test program has: its options, the connection to its other half and its
 * members, which are the nodes that are open. Waiting anywhere drives all of them, as manual
 * progress asks. It must not know what a node is: members say how they are driven.
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
/* Drives every member once. */
void env_progress(struct env *env);
/* The same, and gives the processor away. env: struct env *; for struct oob. */
void env_wait(void *env);
/* Drives everything for so many milliseconds. */
void env_settle(struct env *env, unsigned milliseconds);
/* Returns when both halves are here; the names must agree. */
void env_sync(struct env *env, const char *name);

#endif
