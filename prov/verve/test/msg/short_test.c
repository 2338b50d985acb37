/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The short ways against the long ones. A small message leaves without an operation, and ends its
 * receive at once; with delivery complete, the same message is an operation, and its receive owes a
 * FIN. But for that, applications and peers see the same of both.
 */
#include <string.h>

#include "../proto/pair.h"
#include "msg/recv.h"
#include "msg/send.h"

static char out[NODE_EAGER], in[NODE_EAGER];

static void setup(void)
{
	pair_open(out, in, sizeof(out));
}

TestSuite(short, .init = setup, .fini = pair_close);

/* One message: its flags for both sides, which of them want no completion, and how it meets. */
struct trial {
	size_t len, room;
	uint32_t flags; /* VERVE_OP_TAGGED, VERVE_OP_DATA */
	bool quiet_send, quiet_recv, late;
};

/* What both sides see. */
struct view {
	struct verve_comp sent, received;
	ssize_t sent_count, received_count;
	AO_t send, recv;     /* counters */
	size_t in_use;	     /* operations */
	uint32_t owed, held; /* credits */
	char in[NODE_EAGER];
};

static void post_recv(const struct trial *trial)
{
	struct message message = {
		.buf = in,
		.len = trial->room,
		.tag = 5,
		.context = in,
		.flags = trial->flags & VERVE_OP_TAGGED,
		.quiet = trial->quiet_recv,
	};

	cr_assert_eq(node_recv(&b, &message), 0);
}

static size_t in_use(const struct node *node)
{
	size_t used = 0;

	for (int i = 0; i < VERVE_OP_SIZES; i++)
		used += node->xport->ops[i].used;
	return used;
}

static void take(struct verve_comp_queue *queue, struct verve_comp *comp, ssize_t *count)
{
	*count = verve_comp_queue_read(queue, comp, 1);
	expect_none(queue);
}

/* way: flags of the send that choose the way. */
static struct view try(const struct trial *trial, uint32_t way)
{
	struct message message = {
		.peer = &b,
		.buf = out,
		.len = trial->len,
		.tag = 5,
		.data = 77,
		.context = out,
		.flags = trial->flags | way,
		.quiet = trial->quiet_send,
	};
	AO_t send = AO_load(&a.send.value), recv = AO_load(&b.recv.value);
	struct view view;

	memset(&view, 0, sizeof(view));
	memset(in, 0, sizeof(in));
	if (!trial->late)
		post_recv(trial);
	cr_assert_eq(node_send(&a, &message), 0);
	nodes_settle();
	if (trial->late)
		post_recv(trial);
	nodes_settle();
	take(&a.tx_queue, &view.sent, &view.sent_count);
	take(&b.rx_queue, &view.received, &view.received_count);
	view.send = AO_load(&a.send.value) - send;
	view.recv = AO_load(&b.recv.value) - recv;
	view.in_use = in_use(&a) + in_use(&b);
	view.held = node_link(&b, &a)->held;
	/* A FIN takes credits along that the next packet would have taken. */
	view.owed = node_link(&a, &b)->credits + node_link(&b, &a)->owed;
	memcpy(view.in, in, sizeof(in));
	return view;
}

static void compare(const struct trial *trial)
{
	struct view brief = try(trial, 0), whole = try(trial, VERVE_OP_ACK);

	cr_assert_eq(memcmp(&brief, &whole, sizeof(brief)), 0,
		     "%zu bytes, flags %#x, quiet %d %d, late %d", trial->len, trial->flags,
		     trial->quiet_send, trial->quiet_recv, trial->late);
	cr_assert_eq(brief.recv, 1);
	cr_assert_eq(brief.send, 1);
	cr_assert_eq(brief.sent_count, !trial->quiet_send);
	cr_assert_eq(brief.received_count, !trial->quiet_recv);
	cr_assert_eq(brief.in_use, 0);
	cr_assert(pattern_holds(brief.in, trial->len, 1));
}

Test(short, a_message_looks_the_same_whichever_way_it_takes)
{
	static const size_t sizes[] = {0, 1, 8, VERVE_WIRE_SMALL, VERVE_WIRE_SMALL + 1, NODE_EAGER};

	for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++)
		for (uint32_t bits = 0; bits < 64; bits++) {
			struct trial trial = {
				.len = sizes[size],
				.room = bits & 1 ? sizes[size] : sizeof(in),
				.flags = (bits & 2 ? VERVE_OP_TAGGED : 0) |
					 (bits & 4 ? VERVE_OP_DATA : 0),
				.quiet_send = bits & 8,
				.quiet_recv = bits & 16,
				.late = bits & 32,
			};

			compare(&trial);
		}
}
