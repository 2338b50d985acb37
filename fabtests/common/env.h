/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * env: what one run of a test program has: its options, the connection to its other half and the
 * nodes that are open. Waiting anywhere drives all of them, as manual progress asks.
 */
#ifndef FABTESTS_ENV_H
#define FABTESTS_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/oob.h"
#include "common/opts.h"

struct node;
LIST_HEAD(node_list, node);

struct env {
	struct opts opts;
	struct oob oob;
	struct node_list nodes;
	bool server; /* the half without a server address; local programs serve too */
};

/* Nanoseconds of the monotonic clock. */
uint64_t env_now(void);
/* A point in time opts.timeout seconds ahead; for bounding waits only. */
uint64_t env_deadline(const struct env *env);
/* Drives every open node once. */
void env_progress(struct env *env);
/* Drives everything for so many milliseconds. */
void env_settle(struct env *env, unsigned milliseconds);
/* Returns when both halves are here; the names must agree. */
void env_sync(struct env *env, const char *name);

/* One named part of a program. It runs when getinfo offers caps on both sides. */
struct suite_case {
	const char *name;
	uint64_t caps;
	void (*run)(struct env *env);
};

struct suite {
	struct opts_usage usage;
	const struct suite_case *cases;
	size_t count;
};

/* main() of a test program: its exit status. */
int suite_main(const struct suite *suite, int argc, char **argv);

#endif
