/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cancelling sends, writes and reads: before they begin, under way, and when the peer has the
 * message.
 */
#include "proto/cancel.h"
#include "xport/transfer.h"

#include <string.h>

#include "mr/region.h"
#include "msg/peek.h"
#include "msg/recv.h"
#include "net/mr.h"
#include "pair.h"
#include "rma/rma.h"

enum { LONG = 4 * NODE_EAGER, LONGEST = 400 * NODE_EAGER };

static char out[LONGEST], in[LONGEST];
static int first, second, third;

static void setup(void)
{
	nodes_limit(2 * NODE_EAGER); /* a long write takes many requests */
	pair_open_apart(out, in, sizeof(out));
}

TestSuite(cancel, .init = setup, .fini = pair_close);

static void send_to_b(size_t len, uint64_t tag, uint32_t flags, void *context)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = len, .tag = tag,
						     .context = context,
						     .flags = VERVE_OP_TAGGED | flags}),
		     0);
}

static void expect_received(uint64_t tag, size_t len)
{
	struct verve_comp comp;

	memset(in, 0, LONG);
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = LONG,
						     .ignore = UINT64_MAX,
						     .flags = VERVE_OP_TAGGED}),
		     0);
	nodes_settle();
	comp = expect_comp(&b.rx_queue);
	cr_expect_eq(comp.tag, tag);
	cr_expect_eq(comp.len, len);
	cr_expect(pattern_holds(in, len, 1));
}

static void expect_cancelled(void *context)
{
	cr_expect_eq(expect_error(&a.tx_queue, FI_ECANCELED).comp.context, context);
}

static size_t waiting(void)
{
	return b.proto.msg.match[1].unexpected_count;
}

Test(cancel, what_waits_for_a_connection_ends_at_once)
{
	send_to_b(1, 1, 0, &first);
	send_to_b(LONG, 2, 0, &second);
	send_to_b(3, 3, 0, &third);
	cr_expect_eq(verve_cancel(a.xport, &second), 0);
	expect_cancelled(&second);
	cr_expect_eq(verve_cancel(a.xport, &second), -FI_ENOENT, "only once");
	cr_expect_eq(verve_cancel(a.xport, &first), 0);
	expect_cancelled(&first);
	node_join(&a, &b, NODE_WINDOW);
	nodes_settle();
	expect_received(3, 3);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &third);
	cr_expect_eq(AO_load(&a.send.errors), 2);
	cr_expect_eq(AO_load(&a.send.value), 1);
	cr_expect_eq(a.xport->tx_used, 0);
}

Test(cancel, no_context_names_nothing)
{
	node_join(&a, &b, NODE_WINDOW);
	send_to_b(LONG, 1, 0, NULL);
	nodes_settle();
	cr_expect_eq(verve_cancel(a.xport, NULL), -FI_ENOENT);
	cr_expect_eq(verve_cancel(a.xport, &first), -FI_ENOENT);
	expect_received(1, LONG);
	expect_comp(&a.tx_queue);
}

/* The message is offered, or eager with delivery complete. */
Test(cancel, a_message_that_nobody_received_is_taken_back)
{
	static const size_t lens[] = {0, 1, NODE_EAGER, LONG};

	node_join(&a, &b, NODE_WINDOW);
	for (int i = 0; i < 40; i++) {
		send_to_b(lens[i % 4], i, VERVE_OP_ACK, &first);
		send_to_b(7, 1000 + i, 0, &second);
		cr_expect_eq(expect_comp(&a.tx_queue).context, &second);
		nodes_settle();
		cr_expect_eq(waiting(), 2);
		cr_expect_eq(verve_cancel(a.xport, &first), 0);
		cr_expect_eq(verve_cancel(a.xport, &first), 0, "still pending");
		expect_none(&a.tx_queue);
		nodes_settle();
		expect_cancelled(&first);
		cr_expect_eq(waiting(), 1);
		expect_received(1000 + i, 7);
	}
	expect_none(&a.tx_queue);
	cr_expect_eq(verve_cancel(a.xport, &first), -FI_ENOENT);
}

Test(cancel, a_message_that_a_receive_has_arrives)
{
	node_join(&a, &b, NODE_WINDOW);
	send_to_b(LONG, 1, 0, &first);
	nodes_settle();
	/* The peer's receive takes the message while the cancel is on its way. */
	cr_expect_eq(verve_cancel(a.xport, &first), 0);
	expect_received(1, LONG);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &first);
	expect_none(&a.tx_queue);
}

Test(cancel, a_claimed_message_stays)
{
	node_join(&a, &b, NODE_WINDOW);
	send_to_b(LONG, 1, 0, &first);
	nodes_settle();
	cr_assert_eq(node_peek(&b, &(struct message){.tag = 1, .context = &second,
						     .peek = VERVE_PEEK | VERVE_CLAIM,
						     .flags = VERVE_OP_TAGGED}),
		     0);
	expect_comp(&b.rx_queue);
	cr_expect_eq(verve_cancel(a.xport, &first), 0);
	nodes_settle();
	expect_none(&a.tx_queue);
	cr_assert_eq(node_peek(&b, &(struct message){.buf = in,
						     .len = LONG,
						     .context = &second,
						     .peek = VERVE_CLAIM,
						     .flags = VERVE_OP_TAGGED}),
		     0);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, LONG);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &first);
}

Test(cancel, what_the_peer_never_sent_is_not_taken_back)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_WITHDRAW, .op_id = 77};
	unsigned char bytes[VERVE_WIRE_RTS_MAX];

	node_join(&a, &b, NODE_WINDOW);
	send_to_b(LONG, 1, 0, &first);
	nodes_settle();
	packet.dest = node_link(&a, &b)->remote_id;
	node_send_raw(&a, &b, bytes, verve_wire_encode(&packet, bytes));
	cr_expect_eq(waiting(), 1);
	expect_received(1, LONG);
}

Test(cancel, the_connection_breaks_meanwhile)
{
	node_join(&a, &b, NODE_WINDOW);
	send_to_b(LONG, 1, 0, &first);
	nodes_settle();
	cr_expect_eq(verve_cancel(a.xport, &first), 0);
	verve_link_break(a.xport, node_link(&a, &b), FI_ENOTCONN, 0, "test");
	nodes_settle();
	cr_expect_eq(expect_error(&a.tx_queue, FI_ENOTCONN).comp.context, &first);
	expect_none(&a.tx_queue);
}

/* Writes to an address of b. key: any key that the device of b knows. */
static void write_to_b(size_t len, uint64_t key, void *context)
{
	struct verve_wire_segment remote = {(uintptr_t)in, len, key};
	struct iovec iov = {out, len};

	cr_assert_eq(verve_rma(a.xport, VERVE_RMA_WRITE,
			       &(struct verve_request){.iov = &iov,
						       .iov_count = 1,
						       .addr = node_addr(&a, &b),
						       .context = context,
						       .flags = VERVE_OP_NOTIFY,
						       .remote = &remote,
						       .remote_count = 1}),
		     0);
}

Test(cancel, writes_that_wait_behind_one_another)
{
	struct verve_mr_region *region;

	memset(in, 0, sizeof(in));
	cr_assert_eq(verve_mr_cache_get(&b.mr_cache, in, sizeof(in), VERVE_NET_REMOTE_WRITE,
					&region),
		     0);
	write_to_b(10, region->rkey, &first);
	write_to_b(20, region->rkey, &second);
	cr_expect_eq(verve_cancel(a.xport, &second), 0);
	expect_cancelled(&second);
	node_join(&a, &b, NODE_WINDOW);
	nodes_settle();
	cr_expect_eq(expect_comp(&a.tx_queue).context, &first);
	cr_expect(pattern_holds(in, 10, 1));
	cr_expect_eq(in[15], 0);
	cr_expect_eq(AO_load(&a.write.errors), 1);
	verve_mr_cache_put(&b.mr_cache, region);
}

/*
 * Requests that are posted go on, and no more are posted. The buffer is in use until the error is
 * reported.
 */
Test(cancel, a_write_that_is_half_posted)
{
	struct verve_mr_region *region;
	size_t written = 0;

	memset(in, 0, sizeof(in));
	cr_assert_eq(verve_mr_cache_get(&b.mr_cache, in, sizeof(in), VERVE_NET_REMOTE_WRITE,
					&region),
		     0);
	node_join(&a, &b, NODE_WINDOW);
	write_to_b(LONGEST, region->rkey, &first);
	write_to_b(10, region->rkey, &second);
	cr_assert_not(TAILQ_EMPTY(&node_peer(&a, &b)->pending));
	cr_expect_gt(verve_op_transfer(TAILQ_FIRST(&node_peer(&a, &b)->pending))->offset, 0);
	cr_expect_eq(verve_cancel(a.xport, &first), 0);
	expect_none(&a.tx_queue);
	memset(in, 0, sizeof(in));
	nodes_settle();
	expect_cancelled(&first);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &second);
	expect_none(&a.tx_queue);
	while (written < LONGEST && in[written] == out[written])
		written++;
	cr_expect_lt(written, LONGEST);
	verve_mr_cache_put(&b.mr_cache, region);
}
