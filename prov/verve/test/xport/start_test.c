/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Starting operations: an operation that is queued while another one starts waits for its end. */
#include "xport/start.h"

#include "../proto/pair.h"

enum { MANY = 1000 };

static char out[8], in[8];
static struct verve_op asking[MANY], owing[MANY];
static int depth, deepest, started, answered;

static void setup(void)
{
	pair_open(out, in, sizeof(out));
}

TestSuite(start, .init = setup, .fini = pair_close);

static enum verve_outcome answer(struct verve_xport *xport, struct verve_link *link,
				 struct verve_op *op)
{
	(void)xport, (void)link;
	verve_op_dequeue(op);
	answered++;
	return VERVE_DONE;
}

static const struct verve_op_class owing_class = {.name = "owing", .answer = answer};

/* Ends at once, and owes a packet, as a receive that fails. */
static enum verve_outcome start(struct verve_xport *xport, struct verve_link *link,
				struct verve_op *op)
{
	struct verve_op *other = &owing[started++];

	depth++;
	deepest = depth > deepest ? depth : deepest;
	verve_op_dequeue(op);
	*other = (struct verve_op){.cls = &owing_class, .peer = link->peer};
	verve_peer_queue_control(xport, link->peer, other);
	cr_expect_lt(answered, started, "the answer waits");
	depth--;
	return VERVE_DONE;
}

static const struct verve_op_class asking_class = {
	.name = "asking", .is_receive = true, .start = start};

Test(start, operations_do_not_end_within_each_other)
{
	struct verve_peer *peer = node_peer(&a, &b);
	uint32_t limit = a.xport->wr_limit;

	a.xport->wr_limit = 0;
	for (int i = 0; i < MANY; i++) {
		asking[i] = (struct verve_op){.cls = &asking_class, .flags = VERVE_OP_REPORTED};
		verve_peer_queue(a.xport, peer, &asking[i]);
	}
	cr_expect_eq(started, 0);
	a.xport->wr_limit = limit;
	verve_peer_kick(a.xport, peer);
	cr_expect_eq(started, MANY);
	cr_expect_eq(answered, MANY);
	cr_expect_eq(deepest, 1);
}
