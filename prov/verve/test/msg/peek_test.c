/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peek, claim, discard and cancel: for each combination, its completion, the messages that stay,
 * and the answer that the sender gets.
 */
#include "msg/peek.h"

#include <string.h>

#include "../proto/pair.h"
#include "msg/recv.h"
#include "msg/unexpected.h"

enum { ROOM = 2 * NODE_EAGER };

static char out[ROOM], in[ROOM];
static int context, other;

static void setup(void)
{
	pair_open(out, in, sizeof(out));
}

TestSuite(peek, .init = setup, .fini = pair_close);

static void send_tagged(size_t len, uint64_t tag)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = len, .tag = tag,
						     .flags = VERVE_OP_TAGGED | VERVE_OP_ACK}),
		     0);
	nodes_settle();
}

static int peek(uint64_t tag, unsigned what, void *ctx)
{
	int ret = node_peek(&b, &(struct message){.buf = in, .len = sizeof(in), .tag = tag,
						  .context = ctx, .flags = VERVE_OP_TAGGED,
						  .peek = what});

	nodes_settle();
	return ret;
}

static void expect_message(size_t len, uint64_t tag)
{
	struct verve_comp comp = expect_comp(&b.rx_queue);

	cr_expect_eq(comp.context, &context);
	cr_expect_eq(comp.len, len);
	cr_expect_eq(comp.tag, tag);
	cr_expect_eq(comp.src, node_addr(&b, &a));
	cr_expect_eq(comp.flags, VERVE_COMP_RECV | VERVE_COMP_TAGGED);
}

static size_t waiting(void)
{
	return b.proto.msg.match[1].unexpected_count;
}

/* Sizes of an empty, a small eager, an eager and an offered message. */
static const size_t sizes[] = {0, 64, NODE_EAGER, ROOM};

Test(peek, nothing_there_is_an_error_entry)
{
	static const unsigned whats[] = {VERVE_PEEK, VERVE_PEEK | VERVE_CLAIM,
					 VERVE_PEEK | VERVE_DISCARD,
					 VERVE_PEEK | VERVE_CLAIM | VERVE_DISCARD};

	send_tagged(1, 5);
	for (int i = 0; i < 4; i++) {
		cr_assert_eq(peek(6, whats[i], &context), 0);
		cr_expect_eq(expect_error(&b.rx_queue, FI_ENOMSG).comp.context, &context);
	}
	cr_expect_eq(waiting(), 1);
	cr_expect_eq(peek(5, VERVE_CLAIM, &context), -FI_EINVAL);
}

Test(peek, looks_and_leaves)
{
	for (size_t i = 0; i < 4; i++) {
		send_tagged(sizes[i], i);
		for (int twice = 0; twice < 2; twice++) {
			memset(in, 0, sizeof(in));
			cr_assert_eq(peek(i, VERVE_PEEK, &context), 0);
			expect_message(sizes[i], i);
			cr_expect_eq(in[0], 0);
		}
		expect_none(&a.tx_queue);
		cr_expect_eq(waiting(), i + 1);
		cr_expect_eq(AO_load(&b.recv.value), 0);
	}
}

Test(peek, looks_by_mask_and_source)
{
	struct node c;

	node_open(&c, 0, NULL);
	send_tagged(3, 0x12);
	cr_assert_eq(node_peek(&b, &(struct message){.tag = 0xf2, .ignore = 0xf0,
		.peek = VERVE_PEEK,
						     .context = &context,
						     .flags = VERVE_OP_TAGGED}),
		     0);
	expect_message(3, 0x12);
	cr_assert_eq(node_peek(&b, &(struct message){.peer = &c, .tag = 0x12, .peek = VERVE_PEEK,
						     .flags = VERVE_OP_TAGGED}),
		     0);
	expect_error(&b.rx_queue, FI_ENOMSG);
	cr_assert_eq(node_peek(&b, &(struct message){.peer = &a, .tag = 0x12, .peek = VERVE_PEEK,
						     .context = &context,
						     .flags = VERVE_OP_TAGGED}),
		     0);
	expect_message(3, 0x12);
	cr_assert_eq(node_peek(&b, &(struct message){.tag = 0x12, .peek = VERVE_PEEK}), 0);
	expect_error(&b.rx_queue, FI_ENOMSG); /* an untagged peek finds no tagged message */
	node_close(&c);
}

Test(peek, unknown_source_is_refused)
{
	struct verve_request request = {.addr = 99, .flags = VERVE_OP_TAGGED};

	cr_expect_eq(verve_recv_peek(b.xport, &request, VERVE_PEEK), -FI_EINVAL);
	expect_none(&b.rx_queue);
}

Test(peek, claimed_message_is_kept_for_its_context)
{
	for (size_t i = 0; i < 4; i++) {
		send_tagged(sizes[i], 7);
		cr_assert_eq(peek(7, VERVE_PEEK | VERVE_CLAIM, &context), 0);
		expect_message(sizes[i], 7);
		cr_expect_eq(waiting(), 0);
		/* A peek or claim with another context does not get the claimed message. */
		cr_assert_eq(peek(7, VERVE_PEEK, &other), 0);
		expect_error(&b.rx_queue, FI_ENOMSG);
		cr_expect_eq(peek(7, VERVE_CLAIM, &other), -FI_EINVAL);
		expect_none(&a.tx_queue);

		memset(in, 0, sizeof(in));
		cr_assert_eq(peek(0, VERVE_CLAIM, &context), 0);
		expect_message(sizes[i], 7);
		cr_expect(pattern_holds(in, sizes[i], 1));
		expect_comp(&a.tx_queue);
		/* A claimed message is received only once. */
		cr_expect_eq(peek(0, VERVE_CLAIM, &context), -FI_EINVAL);
	}
}

Test(peek, claimed_message_can_be_truncated)
{
	struct verve_comp_error error;

	send_tagged(ROOM, 7);
	cr_assert_eq(peek(7, VERVE_PEEK | VERVE_CLAIM, &context), 0);
	expect_message(ROOM, 7);
	cr_assert_eq(node_peek(&b, &(struct message){.buf = in, .len = 10, .context = &context,
						     .flags = VERVE_OP_TAGGED,
							.peek = VERVE_CLAIM}),
		     0);
	nodes_settle();
	error = expect_error(&b.rx_queue, FI_ETRUNC);
	cr_expect_eq(error.comp.len, 10);
	cr_expect_eq(error.olen, ROOM - 10);
	expect_comp(&a.tx_queue);
}

Test(peek, claims_of_several_contexts_do_not_mix)
{
	send_tagged(1, 7);
	send_tagged(2, 7);
	cr_assert_eq(peek(7, VERVE_PEEK | VERVE_CLAIM, &other), 0);
	cr_expect_eq(expect_comp(&b.rx_queue).len, 1);
	cr_assert_eq(peek(7, VERVE_PEEK | VERVE_CLAIM, &context), 0);
	expect_message(2, 7);
	cr_assert_eq(peek(0, VERVE_CLAIM, &context), 0);
	expect_message(2, 7);
	cr_assert_eq(peek(0, VERVE_CLAIM, &other), 0);
	cr_expect_eq(expect_comp(&b.rx_queue).len, 1);
}

Test(peek, tagged_claim_is_not_an_untagged_one)
{
	send_tagged(1, 7);
	cr_assert_eq(peek(7, VERVE_PEEK | VERVE_CLAIM, &context), 0);
	expect_message(1, 7);
	cr_expect_eq(node_peek(&b, &(struct message){.buf = in, .len = 1, .context = &context,
						     .peek = VERVE_CLAIM}),
		     -FI_EINVAL);
}

Test(peek, discarded_message_is_gone_and_its_sender_content)
{
	static const unsigned whats[] = {VERVE_PEEK | VERVE_DISCARD,
					 VERVE_PEEK | VERVE_CLAIM | VERVE_DISCARD};

	for (size_t i = 0; i < 8; i++) {
		send_tagged(sizes[i % 4], i);
		cr_assert_eq(peek(i, whats[i / 4], &context), 0);
		expect_message(sizes[i % 4], i);
		expect_comp(&a.tx_queue);
		cr_expect_eq(waiting(), 0);
		cr_expect_eq(peek(i, VERVE_CLAIM, &context), -FI_EINVAL);
	}
	/* The credits of the discarded messages are returned, or are owed. */
	cr_expect_eq(node_link(&a, &b)->credits + node_link(&b, &a)->owed, NODE_WINDOW);
	cr_expect_eq(node_link(&b, &a)->weight_kept, 0);
}

Test(peek, claimed_message_can_be_discarded)
{
	for (size_t i = 0; i < 4; i++) {
		send_tagged(sizes[i], 7);
		cr_assert_eq(peek(7, VERVE_PEEK | VERVE_CLAIM, &context), 0);
		expect_message(sizes[i], 7);
		cr_assert_eq(peek(7, VERVE_CLAIM | VERVE_DISCARD, &context), 0);
		expect_message(sizes[i], 7);
		expect_comp(&a.tx_queue);
		cr_expect_eq(peek(7, VERVE_CLAIM | VERVE_DISCARD, &context), -FI_EINVAL);
	}
	cr_expect_eq(node_link(&a, &b)->credits + node_link(&b, &a)->owed, NODE_WINDOW);
	cr_expect_eq(node_link(&b, &a)->weight_kept, 0);
}

Test(peek, claimed_offer_of_a_peer_that_is_gone_is_an_error)
{
	send_tagged(ROOM, 7);
	cr_assert_eq(peek(7, VERVE_PEEK | VERVE_CLAIM, &context), 0);
	expect_message(ROOM, 7);
	verve_link_break(b.xport, node_link(&b, &a), FI_ENOTCONN, 0, "test");
	nodes_settle();
	cr_assert_eq(peek(7, VERVE_CLAIM, &context), 0);
	cr_expect_eq(expect_error(&b.rx_queue, FI_ENOTCONN).comp.context, &context);
	cr_expect_eq(peek(7, VERVE_CLAIM, &context), -FI_EINVAL);
}

Test(peek, claimed_payload_of_a_peer_that_is_gone_is_there)
{
	send_tagged(NODE_EAGER, 7);
	cr_assert_eq(peek(7, VERVE_PEEK | VERVE_CLAIM, &context), 0);
	expect_message(NODE_EAGER, 7);
	verve_link_break(b.xport, node_link(&b, &a), FI_ENOTCONN, 0, "test");
	nodes_settle();
	cr_assert_eq(peek(7, VERVE_CLAIM, &context), 0);
	expect_message(NODE_EAGER, 7);
	cr_expect(pattern_holds(in, NODE_EAGER, 1));
}

Test(peek, discarding_what_a_gone_peer_offered_answers_nobody)
{
	send_tagged(ROOM, 7);
	send_tagged(10, 8);
	cr_assert_eq(peek(7, VERVE_PEEK | VERVE_CLAIM, &context), 0);
	expect_message(ROOM, 7);
	verve_link_break(b.xport, node_link(&b, &a), FI_ENOTCONN, 0, "test");
	nodes_settle();
	cr_assert_eq(peek(7, VERVE_CLAIM | VERVE_DISCARD, &context), 0);
	expect_message(ROOM, 7);
	cr_assert_eq(peek(8, VERVE_PEEK | VERVE_DISCARD, &context), 0);
	expect_message(10, 8);
	cr_expect(TAILQ_EMPTY(&node_peer(&b, &a)->control));
}

Test(peek, forget_takes_the_offers_of_one_connection_alone)
{
	struct node c;

	node_open(&c, 0, NULL);
	node_join(&c, &b, NODE_WINDOW);
	send_tagged(ROOM, 1);
	send_tagged(10, 2);
	cr_assert_eq(node_send(&c, &(struct message){.peer = &b, .buf = out, .len = ROOM, .tag = 3,
						     .flags = VERVE_OP_TAGGED}),
		     0);
	nodes_settle();
	cr_expect_eq(waiting(), 3);
	verve_unexpected_forget(b.xport, node_link(&b, &a));
	cr_expect_eq(waiting(), 2);
	cr_assert_eq(peek(1, VERVE_PEEK, &context), 0);
	expect_error(&b.rx_queue, FI_ENOMSG);
	cr_assert_eq(peek(2, VERVE_PEEK, &context), 0);
	expect_message(10, 2);
	cr_assert_eq(peek(3, VERVE_PEEK, &context), 0);
	cr_expect_eq(expect_comp(&b.rx_queue).src, node_addr(&b, &c));
	node_close(&c);
}

/* Cancel. */

static void post(void *ctx, uint64_t tag, uint32_t flags)
{
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = sizeof(in), .tag = tag,
						     .context = ctx, .flags = flags}),
		     0);
}

Test(peek, cancel_ends_the_oldest_of_a_context)
{
	post(&other, 1, VERVE_OP_TAGGED);
	post(&context, 2, VERVE_OP_TAGGED);
	post(&context, 3, VERVE_OP_TAGGED);
	cr_assert_eq(verve_recv_cancel(b.xport, &context), 0);
	cr_expect_eq(expect_error(&b.rx_queue, FI_ECANCELED).comp.context, &context);
	cr_expect_eq(AO_load(&b.recv.errors), 1);
	send_tagged(1, 2);
	expect_none(&b.rx_queue);
	send_tagged(1, 3);
	expect_message(1, 3);
	cr_expect_eq(verve_recv_cancel(b.xport, &context), -FI_ENOENT);
	cr_assert_eq(verve_recv_cancel(b.xport, &other), 0);
	expect_error(&b.rx_queue, FI_ECANCELED);
}

Test(peek, cancel_finds_untagged_receives)
{
	post(&context, 0, 0);
	cr_assert_eq(verve_recv_cancel(b.xport, &context), 0);
	cr_expect_eq(expect_error(&b.rx_queue, FI_ECANCELED).comp.flags,
		     VERVE_COMP_RECV | VERVE_COMP_MSG);
}

Test(peek, cancel_leaves_what_is_being_read)
{
	post(&context, 7, VERVE_OP_TAGGED);
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = ROOM, .tag = 7,
						     .flags = VERVE_OP_TAGGED}),
		     0);
	while (TAILQ_EMPTY(&node_peer(&b, &a)->active)) {
		cr_assert(fake_net_run_next());
		verve_proto_poll(&b.proto);
	}
	cr_expect_eq(verve_recv_cancel(b.xport, &context), -FI_ENOENT);
	nodes_settle();
	expect_message(ROOM, 7);
}

Test(peek, cancel_does_not_know_sends)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = ROOM,
						     .context = &context}),
		     0);
	cr_expect_eq(verve_recv_cancel(a.xport, &context), -FI_ENOENT);
}

Test(peek, cancel_all_ends_receives_and_forgets_messages)
{
	post(&context, 100, VERVE_OP_TAGGED);
	post(&other, 0, 0);
	for (size_t i = 0; i < 4; i++)
		send_tagged(sizes[i], i);
	cr_assert_eq(peek(3, VERVE_PEEK | VERVE_CLAIM, &context), 0);
	expect_message(ROOM, 3);
	verve_recv_cancel_all(b.xport);
	expect_error(&b.rx_queue, FI_ECANCELED);
	expect_error(&b.rx_queue, FI_ECANCELED);
	expect_none(&b.rx_queue);
	cr_expect_eq(waiting(), 0);
	cr_expect(LIST_EMPTY(&b.proto.msg.claimed));
	cr_expect_eq(peek(3, VERVE_CLAIM, &context), -FI_EINVAL);
}
