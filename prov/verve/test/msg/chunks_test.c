/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pulling: rendezvous where one side or both cannot register more memory; messages that were copied
 * into a slab; peers that ask for bytes that they were not offered.
 */
#include "msg/chunks.h"

#include <stdlib.h>
#include <string.h>

#include "../proto/pair.h"
#include "mr/region.h"
#include "msg/recv.h"
#include "msg/recv_op.h"
#include "msg/send_op.h"
#include "msg/unexpected.h"
#include "proto/cancel.h"
#include "xport/post.h"

enum { LONG = 100 * NODE_EAGER + 77 };

static char out[LONG], in[LONG];
static int first, second;

static void setup(void)
{
	pair_open(out, in, sizeof(out));
}

TestSuite(pull, .init = setup, .fini = pair_close);

static void receive(size_t room)
{
	memset(in, 0, sizeof(in));
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = room}), 0);
}

static void expect_both(size_t len)
{
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, len);
	cr_expect(pattern_holds(in, len, 1));
	cr_expect_eq(expect_comp(&a.tx_queue).context, &first);
	expect_none(&a.tx_queue);
	expect_none(&b.rx_queue);
}

Test(pull, the_sender_cannot_register)
{
	for (int expected = 0; expected < 2; expected++) {
		fake_net_memlock(0);
		if (expected)
			receive(LONG);
		pair_send(LONG, 0, &first);
		nodes_settle();
		fake_net_memlock(UINT64_MAX);
		if (!expected)
			receive(LONG);
		expect_both(LONG);
	}
}

Test(pull, the_receiver_cannot_register)
{
	pair_send(LONG, 0, &first);
	nodes_settle();
	fake_net_memlock(0);
	receive(LONG);
	expect_both(LONG);
}

Test(pull, nobody_can_register)
{
	uint64_t before = nodes_stats().pinned;

	fake_net_memlock(0);
	for (size_t len = NODE_EAGER + 1; len < LONG; len += 7 * NODE_EAGER + 3) {
		receive(len);
		pair_send(len, VERVE_OP_ACK, &first);
		expect_both(len);
	}
	cr_expect_eq(nodes_stats().pinned, before);
}

/* An injected or copied message that had no credit is pulled from its slab. */
Test(pull, what_the_sender_has_copied)
{
	uint64_t before;

	for (int i = 0; i < NODE_WINDOW; i++) {
		pair_send(NODE_EAGER, 0, NULL);
		expect_comp(&a.tx_queue);
	}
	pair_send(NODE_EAGER, 0, &first);
	nodes_settle();
	cr_expect_eq(expect_comp(&a.tx_queue).context, &first);
	for (int i = 0; i < NODE_WINDOW; i++) {
		receive(NODE_EAGER);
		nodes_settle();
		expect_comp(&b.rx_queue);
	}
	/* Pulling registers no memory, and this message fits one packet: PULL, CHUNK, FIN. */
	fake_net_memlock(0);
	before = nodes_stats().requests;
	receive(NODE_EAGER);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, NODE_EAGER);
	cr_expect(pattern_holds(in, NODE_EAGER, 1));
	cr_expect_eq(nodes_stats().requests - before, 3);
}

/* The peer's buffers are smaller than ours: the copy takes several packets. */
Test(pull, what_was_copied_and_is_longer_than_a_packet)
{
	static const uint32_t flags[] = {0, VERVE_OP_ACK, VERVE_OP_TRANSMIT};

	node_link(&a, &b)->eager_size = node_link(&b, &a)->eager_size = 300;
	for (int i = 0; i < 3; i++) {
		pair_send(NODE_EAGER, VERVE_OP_INJECT | flags[i], &first);
		receive(NODE_EAGER);
		expect_both(NODE_EAGER);
	}
}

/* A chunk that is the whole copy waits for room, and is sent again after its queue pair failed. */
Test(pull, what_was_copied_survives_its_queue_pair)
{
	node_link(&a, &b)->credits = 0;
	pair_send(NODE_EAGER, 0, &first);
	nodes_settle();
	a.xport->wr_limit = 0;
	receive(NODE_EAGER);
	nodes_settle();
	expect_none(&b.rx_queue);
	a.xport->wr_limit = 8192;
	verve_proto_poll(&a.proto);
	cr_expect_null(verve_op_memory(TAILQ_FIRST(&node_peer(&a, &b)->active))->slab,
		       "the chunk waits still");
	node_resume(&a, &b);
	expect_both(NODE_EAGER);
}

Test(pull, only_what_fits_is_pulled)
{
	struct verve_comp_error error;

	fake_net_memlock(0);
	receive(5 * NODE_EAGER);
	pair_send(LONG, 0, &first);
	nodes_settle();
	error = expect_error(&b.rx_queue, FI_ETRUNC);
	cr_expect_eq(error.comp.len, 5 * NODE_EAGER);
	cr_expect_eq(error.olen, LONG - 5 * NODE_EAGER);
	cr_expect(pattern_holds(in, 5 * NODE_EAGER, 1));
	cr_expect_eq(in[5 * NODE_EAGER], 0);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &first);
}

Test(pull, many_at_once_and_small_ones_between)
{
	enum { MANY = 20 };

	fake_net_memlock(0);
	for (int i = 0; i < MANY; i++) {
		cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = LONG}), 0);
		pair_send(LONG, 0, &first);
		cr_assert_eq(node_recv(&b, &(struct message){.buf = &in[LONG - 1], .len = 1}), 0);
		pair_send(1, 0, &second);
		cr_expect_eq(expect_comp(&a.tx_queue).context, &second);
	}
	nodes_settle();
	for (int i = 0; i < 2 * MANY; i++)
		expect_comp(&b.rx_queue);
	for (int i = 0; i < MANY; i++)
		cr_expect_eq(expect_comp(&a.tx_queue).context, &first);
	expect_none(&a.tx_queue);
}

/* Some wait for an id, while others, which have one, ask again and again. */
Test(pull, more_than_may_have_an_id)
{
	enum { MANY = VERVE_RECV_NAMED + 50, LEN = 20 * NODE_EAGER };

	fake_net_memlock(0);
	a.xport->attr.tx_size = MANY;
	for (int i = 0; i < MANY; i++)
		pair_send(LEN, 0, &first);
	nodes_settle();
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = LEN,
							     .context = &in[i]}), 0);
	for (int i = 0; i < MANY; i++) {
		cr_expect_leq(b.xport->op_ids.used, VERVE_RECV_NAMED);
		while (!AO_load(&b.rx_queue.count)) {
			cr_assert(fake_net_run_next(), "message %d does not come", i);
			verve_proto_poll(&a.proto);
			verve_proto_poll(&b.proto);
		}
		cr_expect_eq(expect_comp(&b.rx_queue).context, &in[i]);
	}
	nodes_settle();
	for (int i = 0; i < MANY; i++)
		cr_expect_eq(expect_comp(&a.tx_queue).context, &first);
	cr_expect_eq(node_peer(&b, &a)->named_receives, 0);
}

Test(pull, is_cancelled_before_it_begins)
{
	fake_net_memlock(0);
	pair_send(LONG, 0, &first);
	nodes_settle();
	cr_expect_eq(verve_cancel(a.xport, &first), 0);
	nodes_settle();
	cr_expect_eq(expect_error(&a.tx_queue, FI_ECANCELED).comp.context, &first);
	cr_expect_eq(b.proto.msg.match[0].unexpected_count, 0);
}

Test(pull, the_connection_breaks_meanwhile)
{
	fake_net_memlock(0);
	receive(LONG);
	pair_send(LONG, 0, &first);
	for (int i = 0; i < 20; i++) {
		verve_proto_poll(&a.proto);
		verve_proto_poll(&b.proto);
		fake_net_advance(2000);
	}
	verve_link_break(b.xport, node_link(&b, &a), FI_ENOTCONN, 0, "test");
	nodes_settle();
	expect_error(&b.rx_queue, FI_ENOTCONN);
	/* There is no connection manager to tell a that b has ended the link. */
	expect_error(&a.tx_queue, FI_EHOSTUNREACH);
}

static void send_raw(const struct verve_wire_packet *packet)
{
	unsigned char bytes[VERVE_WIRE_RTS_MAX];
	struct verve_wire_packet addressed = *packet;

	addressed.dest = node_link(&b, &a)->remote_id;
	node_send_raw(&b, &a, bytes, verve_wire_encode(&addressed, bytes));
}

/* b is hostile: it asks for more bytes than a has offered. Only the connection with b ends. */
Test(pull, asking_for_more_than_was_offered_ends_the_connection)
{
	static const uint64_t lens[] = {0, LONG + 1, UINT64_MAX};
	struct verve_wire_packet pull = {.type = VERVE_WIRE_PULL, .status = 5};

	for (int i = 0; i < 3; i++) {
		fake_net_memlock(0);
		pair_send(LONG, 0, &first);
		nodes_settle();
		pull.op_id = TAILQ_FIRST(&node_peer(&a, &b)->active)->id;
		pull.len = lens[i];
		send_raw(&pull);
		expect_error(&a.tx_queue, FI_EIO);
		nodes_settle();
		fake_net_memlock(UINT64_MAX);
		node_join(&a, &b, NODE_WINDOW);
	}
}

Test(pull, a_chunk_that_nobody_asked_for_ends_the_connection_or_is_dropped)
{
	struct verve_wire_packet chunk = {.type = VERVE_WIRE_CHUNK, .op_id = 77};

	send_raw(&chunk);
	cr_expect_not_null(node_peer(&a, &b)->link, "it answers nothing");
	fake_net_memlock(0);
	pair_send(LONG, 0, &first);
	nodes_settle();
	chunk.op_id = TAILQ_FIRST(&node_peer(&a, &b)->active)->id;
	send_raw(&chunk);
	expect_error(&a.tx_queue, FI_EIO);
}

/* The peer's FIN ends the message while a chunk of the message waits to be sent. */
Test(pull, a_message_that_ends_before_its_chunk_goes)
{
	struct verve_wire_packet pull = {.type = VERVE_WIRE_PULL, .status = 5, .len = 10};
	struct verve_wire_packet fin = {.type = VERVE_WIRE_FIN};
	struct verve_link *link = node_link(&a, &b);

	fake_net_memlock(0);
	pair_send(LONG, 0, &first);
	nodes_settle();
	pull.op_id = fin.op_id = TAILQ_FIRST(&node_peer(&a, &b)->active)->id;
	link->may_send = false;
	link->quiesce.state = VERVE_QUIESCE_OPEN;
	a.xport->wr_limit = 0;
	send_raw(&pull);
	send_raw(&fin);
	a.xport->wr_limit = 8192;
	cr_expect_eq(expect_comp(&a.tx_queue).context, &first);
	nodes_settle();
	cr_expect_not_null(node_peer(&a, &b)->link);
	cr_expect(TAILQ_EMPTY(&node_peer(&a, &b)->control));
}

static struct verve_op *awaiting(const struct node *peer)
{
	return TAILQ_FIRST(&node_peer(&a, peer)->active);
}

/*
 * An eager message that waits for its FIN cannot be pulled: its bytes were sent, and its memory is
 * the application's again, or freed.
 */
Test(pull, what_was_sent_whole_is_not_pulled)
{
	static const uint32_t flags[] = {VERVE_OP_ACK, VERVE_OP_ACK | VERVE_OP_INJECT};

	for (int i = 0; i < 2; i++) {
		struct verve_wire_packet pull = {.type = VERVE_WIRE_PULL, .status = 5, .len = 200};
		char *gone = malloc(200);

		memset(gone, 1, 200);
		cr_assert_eq(node_send(&a, &(struct message){.peer = &b,
							     .buf = gone,
							     .len = 200,
							     .flags = flags[i]}),
			     0);
		free(gone);
		nodes_settle();
		pull.op_id = awaiting(&b)->id;
		send_raw(&pull);
		expect_error(&a.tx_queue, FI_EIO);
		nodes_settle();
		node_join(&a, &b, NODE_WINDOW);
	}
}

/* Makes id the one that a's next operation gets. */
static void make_next(uint32_t id)
{
	uint32_t previous = id - (1u << VERVE_IDTAB_INDEX_BITS), other = 0;

	while (other != previous) {
		cr_assert_eq(verve_idtab_alloc(&a.xport->op_ids, &a, &other), 0);
		verve_idtab_free(&a.xport->op_ids, other);
	}
	while (verve_idtab_index(a.xport->op_ids.first_free) != verve_idtab_index(id)) {
		cr_assert_eq(verve_idtab_alloc(&a.xport->op_ids, &a, &other), 0);
		verve_idtab_free(&a.xport->op_ids, other);
	}
}

/*
 * An id is used again after some ten thousand others. A chunk may wait that long, behind another
 * chunk that finds no room. Then the chunk must not carry the bytes of another message.
 */
Test(pull, a_chunk_is_of_the_message_that_was_asked_for)
{
	struct verve_wire_packet pull = {.type = VERVE_WIRE_PULL, .status = 5, .len = 10};
	struct verve_wire_packet fin = {.type = VERVE_WIRE_FIN};
	static struct node c;

	node_open(&c, 1, NULL);
	node_join(&a, &c, NODE_WINDOW);
	fake_net_memlock(0);
	pair_send(LONG, 0, &second);
	pair_send(LONG, 0, &first);
	nodes_settle();
	a.xport->wr_limit = 0;
	pull.op_id = awaiting(&b)->id;
	send_raw(&pull);
	pull.op_id = fin.op_id = TAILQ_NEXT(awaiting(&b), link)->id;
	send_raw(&pull);
	send_raw(&fin);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &first);
	make_next(fin.op_id);
	/* b's chunks wait for room; the message for c does not. */
	TAILQ_REMOVE(&a.xport->waiting, node_peer(&a, &b), waiting);
	a.xport->wr_limit = 8192;
	cr_assert_eq(node_send(&a, &(struct message){.peer = &c, .buf = out, .len = LONG}), 0);
	nodes_settle();
	cr_assert_eq(awaiting(&c)->id, fin.op_id);
	TAILQ_INSERT_TAIL(&a.xport->waiting, node_peer(&a, &b), waiting);
	nodes_settle();
	cr_expect(TAILQ_EMPTY(&node_peer(&a, &b)->control));
	cr_expect_eq(verve_send_op_of(awaiting(&b))->pulled, 10);
	cr_expect_eq(verve_send_op_of(awaiting(&c))->pulled, 0, "b was sent of what is c's");
	memset(in, 0, sizeof(in));
	cr_assert_eq(node_recv(&c, &(struct message){.buf = in, .len = LONG}), 0);
	nodes_settle();
	cr_expect_eq(expect_comp(&c.rx_queue).len, LONG);
	cr_expect(pattern_holds(in, LONG, 1));
	node_close(&c);
}

/* The offer that waits at node for a receive. */
static const struct verve_wire_packet *offer_at(struct node *node)
{
	struct verve_match_msg *msg = TAILQ_FIRST(&node->proto.msg.match[0].unexpected);

	cr_assert_not_null(msg, "nothing was offered");
	return &verve_unexpected_of(msg)->packet;
}

/* b reads a's memory at from, with a key that a's packets have told b. */
static void steal(uint32_t key, const void *from, void *to, size_t len)
{
	struct verve_mr_region *region;
	struct verve_net_sge sge = {(uintptr_t)to, len, 0};
	struct verve_net_wr wr = {
		.op = VERVE_NET_READ,
		.flags = VERVE_NET_SIGNALED,
		.rkey = key,
		.remote_addr = (uintptr_t)from,
		.sge = &sge,
		.sge_count = 1,
	};

	cr_assert_eq(verve_mr_region_open(b.dev, to, len, VERVE_NET_LOCAL_WRITE, &region), 0);
	sge.lkey = region->lkey;
	cr_assert_eq(verve_link_post_slot(b.xport, node_link(&b, &a), &wr,
					  &(struct verve_slot){.op = NULL}),
		     0);
	nodes_settle();
	verve_mr_region_close(region);
}

/*
 * b announces a window of 0, so that a offers it every message. Then b tries to read the messages
 * to others with the keys of its offers.
 */
Test(pull, no_key_that_a_peer_learns_opens_a_message_to_another)
{
	static const uint32_t flags[] = {0, VERVE_OP_INJECT};
	static struct node c;

	node_open(&c, 1, NULL);
	node_join(&a, &c, 0);
	node_link(&a, &b)->credits = 0;
	for (int i = 0; i < 2; i++) {
		char stolen[NODE_EAGER] = {0};
		const struct verve_wire_packet *offer;
		struct verve_op *others;

		pair_send(NODE_EAGER, flags[i], NULL);
		cr_assert_eq(node_send(&a, &(struct message){.peer = &c,
							     .buf = out,
							     .len = NODE_EAGER,
							     .flags = flags[i]}),
			     0);
		nodes_settle();
		offer = offer_at(&b);
		others = awaiting(&c);
		cr_assert_not_null(verve_op_memory(others)->slab);
		for (uint32_t j = 0; j < offer->segment_count; j++)
			steal(offer->segment[j].key,
			      (char *)verve_op_memory(others)->slab->data + VERVE_WIRE_PREFIX,
			      stolen, sizeof(stolen));
		cr_expect_not(pattern_holds(stolen, sizeof(stolen), 1), "b has what c was sent");
		for (struct node *node = &b; node; node = node == &b ? &c : NULL) {
			memset(in, 0, sizeof(in));
			cr_assert_eq(
				node_recv(node, &(struct message){.buf = in, .len = NODE_EAGER}),
				0);
			nodes_settle();
			cr_expect_eq(expect_comp(&node->rx_queue).len, NODE_EAGER);
			cr_expect(pattern_holds(in, NODE_EAGER, 1));
		}
	}
	node_close(&c);
}

/*
 * The application's descriptor has a key that opens its whole region. An offer tells the peer
 * another key, which opens the message only.
 */
Test(pull, no_key_of_the_applications_region_is_told)
{
	struct verve_mr_region *region;
	void *desc[1];

	cr_assert_eq(verve_mr_region_open(a.dev, out, LONG, VERVE_NET_REMOTE_READ, &region), 0);
	desc[0] = region;
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b,
						     .buf = out,
						     .len = LONG / 2,
						     .desc = desc,
						     .context = &first}),
		     0);
	nodes_settle();
	for (uint32_t i = 0; i < offer_at(&b)->segment_count; i++)
		cr_expect_neq(offer_at(&b)->segment[i].key, region->rkey);
	receive(LONG);
	expect_both(LONG / 2);
	verve_mr_region_close(region);
}

/* A FIN whose status is no errno number is an error, too. */
Test(pull, a_fin_that_makes_no_sense_is_an_error_like_others)
{
	static const uint32_t statuses[] = {UINT32_MAX, 1u << 31, FI_ERRNO_MAX};

	for (int i = 0; i < 3; i++) {
		struct verve_wire_packet fin = {.type = VERVE_WIRE_FIN, .status = statuses[i]};

		pair_send(LONG, 0, &first);
		nodes_settle();
		fin.op_id = awaiting(&b)->id;
		send_raw(&fin);
		cr_expect_eq(expect_error(&a.tx_queue, FI_EIO).comp.context, &first);
	}
}
