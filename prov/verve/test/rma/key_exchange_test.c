/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The exchange of keys: queries, answers and revocations, in every order; peers that ask for too
 * many keys, and answers that no honest peer gives.
 */
#include "key_fixture.h"

#include <string.h>

Test(key, is_asked_for_once)
{
	uint64_t before;

	key_export_one(&x, 8, 100);
	before = nodes_stats().requests;
	key_finish(VERVE_RMA_WRITE, 8, 0, 100);
	cr_expect_eq(nodes_stats().requests - before, 3, "a question, an answer, a write");
	before = nodes_stats().requests;
	key_finish(VERVE_RMA_WRITE, 8, 0, 100);
	cr_expect_eq(nodes_stats().requests - before, 1);
	cr_expect_eq(AO_load(&x.key.told), 1);
	key_unexport(&x);
}

Test(key, nothing_overtakes_an_operation_that_waits_for_an_answer)
{
	struct message message = {.peer = &b, .buf = local, .len = 8};
	struct message take = {.buf = local + 100, .len = 8};

	key_export_one(&x, 8, 100);
	cr_assert_eq(node_recv(&b, &take), 0);
	key_begin(VERVE_RMA_WRITE, 8, 0, 100);
	cr_assert_eq(node_send(&a, &message), 0);
	expect_none(&a.tx_queue);
	cr_expect_not(TAILQ_EMPTY(&node_peer(&a, &b)->pending), "the message waits, too");
	nodes_settle();
	expect_comp(&a.tx_queue);
	expect_comp(&a.tx_queue);
	expect_comp(&b.rx_queue);
	key_unexport(&x);
}

/* The old key's answer, its revocation and the new key's answer arrive in this order. */
Test(key, that_changes_while_it_is_asked_for)
{
	static const size_t lens[] = {10, 10, 10, 10, 10, 10};

	key_export(&x, 8, 6, lens, false, both);
	key_begin(VERVE_RMA_WRITE, 8, 0, 20);
	verve_proto_poll(&a.proto);
	key_unexport(&x);
	key_export_one(&x, 8, 20);
	nodes_settle();
	expect_comp(&a.tx_queue);
	cr_expect_eq(memcmp(key_byte(&x, 0), local, 20), 0);
	key_unexport(&x);
}

Test(key, revoked_under_way_ends_what_is_under_way)
{
	struct verve_wire_packet revoke = {.type = VERVE_WIRE_KEY_REVOKE, .tag = 8};

	for (int kind = VERVE_RMA_WRITE; kind <= VERVE_RMA_READ; kind++) {
		key_export_one(&x, 8, MEMORY / 2);
		key_finish(VERVE_RMA_WRITE, 8, 0, 1);
		key_begin(kind, 8, 0, MEMORY / 2); /* more requests than there is room for */
		cr_assert_not(TAILQ_EMPTY(&node_peer(&a, &b)->pending));
		key_begin(VERVE_RMA_WRITE, 8, 0, 8); /* this write asks for the key again */
		revoke.key.generation = x.key.generation;
		verve_key_forget(a.xport, node_link(&a, &b), &revoke);
		nodes_settle();
		expect_error(&a.tx_queue, FI_EACCES);
		expect_comp(&a.tx_queue);
		key_unexport(&x);
		nodes_settle();
	}
}

Test(key, many_are_remembered_up_to_a_limit)
{
	static struct exported all[MANY];
	const struct verve_remote_keys *cache = &node_link(&a, &b)->keys;
	uint64_t before;

	for (unsigned i = 0; i < MANY; i++)
		key_export_one(&all[i], i, 16);
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < MANY; i++) {
			key_finish(VERVE_RMA_READ, i, 0, 16);
			cr_assert_leq(cache->count, VERVE_REMOTE_KEYS_MAX);
			key_finish(VERVE_RMA_READ, 0, 0, 16);
		}
	before = nodes_stats().requests;
	key_finish(VERVE_RMA_READ, 0, 0, 16);
	cr_expect_eq(nodes_stats().requests - before, 1, "what is used often stays");
	for (unsigned i = 0; i < MANY; i++)
		key_unexport(&all[i]);
	nodes_settle();
	cr_expect_eq(cache->count, 0);
}

Test(key, whoever_asks_for_too_many_at_once_is_cut_off)
{
	struct verve_wire_packet query = {.type = VERVE_WIRE_KEY_QUERY, .tag = 8};
	struct verve_link *link = node_link(&b, &a);

	link->may_send = false; /* so no answer can leave */
	for (int i = 0; i < VERVE_KEY_QUERIES; i++)
		verve_key_answer(b.xport, link, &query);
	cr_expect_not(link->broken);
	verve_key_answer(b.xport, link, &query);
	cr_expect(link->broken);
}

static size_t owed_to_a(void)
{
	struct verve_op *op;
	size_t count = 0;

	TAILQ_FOREACH(op, &node_peer(&b, &a)->control, link)
		count++;
	return count;
}

/*
 * a has asked for many keys, and takes nothing any more. Regions that others use come and go: a
 * hears of the end of those alone that it was told.
 */
Test(key, whoever_takes_no_revocation_is_owed_no_more_than_it_was_told)
{
	static struct exported told[4];

	for (unsigned i = 0; i < 4; i++) {
		key_export_one(&told[i], i, 16);
		key_finish(VERVE_RMA_READ, i, 0, 16);
	}
	node_link(&b, &a)->keys.told = UINT64_MAX;
	node_link(&b, &a)->may_send = false;
	for (unsigned i = 0; i < MANY; i++) {
		key_export_one(&x, 100 + i, 16);
		AO_store(&x.key.told, 1);
		key_unexport(&x);
	}
	cr_expect_eq(owed_to_a(), 0);
	for (unsigned i = 0; i < 4; i++)
		key_unexport(&told[i]);
	cr_expect_eq(owed_to_a(), 4);
	node_link(&b, &a)->may_send = true;
	verve_peer_kick(b.xport, node_peer(&b, &a));
	nodes_settle();
	cr_expect_eq(owed_to_a(), 0);
	cr_expect_eq(node_link(&a, &b)->keys.count, 0);
}

/* Answers that no honest peer gives. */
static void reply(struct verve_wire_key key, uint64_t len, uint32_t count)
{
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_KEY_REPLY, .tag = 8, .key = key, .segment_count = count};

	for (uint32_t i = 0; i < count; i++)
		packet.segment[i] = (struct verve_wire_segment){0, len, 1};
	verve_key_learn(a.xport, node_link(&a, &b), &packet);
	verve_peer_kick(a.xport, node_peer(&a, &b));
}

Test(key, answers_that_nobody_asked_for_are_dropped)
{
	reply((struct verve_wire_key){1, VERVE_WIRE_KEY_READ, 1, 0}, 16, 1);
	cr_expect_eq(node_link(&a, &b)->keys.count, 0);
	key_expect_refused(VERVE_RMA_READ, 8, 0, 8, "no region with the key");
}

Test(key, segments_longer_than_memory_make_no_sense)
{
	key_begin(VERVE_RMA_READ, 8, 0, 8);
	reply((struct verve_wire_key){1, VERVE_WIRE_KEY_READ, 2, 0}, UINT64_MAX, 2);
	expect_error(&a.tx_queue, FI_EIO);
}

Test(key, answers_out_of_order_are_asked_for_again)
{
	static const size_t lens[] = {10, 10, 10, 10, 10};

	key_export(&x, 8, 5, lens, false, both);
	key_begin(VERVE_RMA_READ, 8, 0, 50);
	reply((struct verve_wire_key){99, VERVE_WIRE_KEY_READ, 5, 4}, 10, 1);
	nodes_settle();
	expect_comp(&a.tx_queue);
	key_begin(VERVE_RMA_READ, 8, 0, 50);
	nodes_settle();
	expect_comp(&a.tx_queue);
	key_unexport(&x);
}

Test(key, operation_that_waits_for_an_answer_fails_with_the_peer)
{
	key_begin(VERVE_RMA_READ, 8, 0, 8);
	cr_expect(verve_proto_is_waiting(&a.proto));
	fake_net_host_kill(1);
	nodes_settle();
	expect_error(&a.tx_queue, FI_EHOSTUNREACH);
}

Test(key, is_asked_for_anew_over_a_new_connection)
{
	key_export_one(&x, 8, 100);
	key_finish(VERVE_RMA_WRITE, 8, 0, 100);
	verve_link_break(a.xport, node_link(&a, &b), FI_ENOTCONN, 0, "test");
	node_event(&b, VERVE_CM_DOWN, &a, b.next_conn, FI_ENOTCONN);
	nodes_settle();
	node_join(&a, &b, NODE_WINDOW);
	cr_expect_eq(node_link(&a, &b)->keys.count, 0);
	key_finish(VERVE_RMA_WRITE, 8, 0, 100);
	key_unexport(&x);
}
