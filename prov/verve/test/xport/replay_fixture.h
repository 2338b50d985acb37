/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the tests of replay: two joined nodes, and requests that b refuses. The test plays the
 * manager's part (node_resume).
 */
#ifndef VERVE_TEST_XPORT_REPLAY_FIXTURE_H
#define VERVE_TEST_XPORT_REPLAY_FIXTURE_H

#include "../proto/fixture.h"
#include "mr/region.h"
#include "net/sys.h"
#include "rma/rma.h"

enum { SLOT = 256, SLOTS = 32, ROOM = SLOT * SLOTS };

extern struct node a, b;
extern char local[ROOM], remote[ROOM], in[3 * NODE_EAGER], out[3 * NODE_EAGER];
extern struct verve_mr_region *region; /* of remote, at b */

/* As before and after each test. */
void setup(void);
void teardown(void);

/* Starts a write from a slot of local to the same slot of remote, or a read back. */
void start_with(enum verve_rma_kind kind, uint32_t slot, uint32_t key, void *context,
		uint32_t flags);
void start(enum verve_rma_kind kind, uint32_t slot, uint32_t key, void *context);
/* Starts a write that b refuses: its key is wrong. */
void refuse(void *context);

void send_to(struct node *from, struct node *to, size_t len, uint64_t tag, uint32_t flags);
/* The node's next message has this length and tag. */
void expect_message(struct node *node, size_t len, uint64_t tag);
void expect_nothing_waits(struct node *node);

bool is_suspended(struct node *node, struct node *peer);

#endif
