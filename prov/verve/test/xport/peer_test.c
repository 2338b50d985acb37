/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peers: their addresses, and who is kept. */
#include "xport/peer.h"

#include "msg/send.h"
#include "peer_fixture.h"
#include "xport/watched.h"

/* An address that no endpoint has. */
static struct verve_addr stranger(uint16_t port)
{
	struct verve_addr addr = b.addr;

	verve_addr_set_port(&addr, port);
	return addr;
}

/* Puts count strangers into b's address vector, looks each up, and removes it. */
static void strangers_come_and_go(uint16_t count)
{
	for (uint16_t port = 1000; port < 1000 + count; port++) {
		struct verve_addr addr = stranger(port);
		struct verve_peer *peer;
		uint64_t fi_addr;

		cr_assert_eq(verve_addrvec_insert(&b.addrvec, &addr, &fi_addr), 0);
		cr_assert_eq(verve_peer_find(b.xport, fi_addr, &peer), 0);
		verve_peer_forget(b.xport, fi_addr);
		cr_assert_eq(verve_addrvec_remove(&b.addrvec, fi_addr), 1);
		verve_proto_poll(&b.proto);
	}
}

Test(peer, is_the_same_for_each_of_its_names)
{
	struct verve_peer *one, *two;
	uint64_t fi_addr = node_addr(&a, &b);

	cr_assert_eq(verve_peer_find(a.xport, fi_addr, &one), 0);
	cr_assert_eq(verve_peer_find(a.xport, fi_addr, &two), 0);
	cr_expect_eq(one, two);
	cr_expect(verve_addr_equal(&one->addr, &b.addr));
	cr_expect_eq(verve_peer_fi_addr(a.xport, one), fi_addr);
	cr_expect_eq(verve_idtab_get(&a.xport->peer_ids, one->id), one);
}

Test(peer, unknown_address_is_refused)
{
	struct verve_peer *peer;

	node_addr(&a, &b);
	cr_expect_eq(verve_peer_find(a.xport, 1, &peer), -FI_EINVAL);
	cr_expect_eq(verve_peer_find(a.xport, 1ull << 30, &peer), -FI_EINVAL);
	cr_expect_eq(verve_peer_find(a.xport, 1ull << 63, &peer), -FI_EINVAL);
	cr_expect_eq(verve_peer_find(a.xport, UINT64_MAX, &peer), -FI_EINVAL);
	cr_expect_null(a.xport->peers);
}

Test(peer, table_grows_with_the_address_vector)
{
	enum { COUNT = 1000 };
	struct verve_peer *peers[COUNT], *peer;

	for (uint64_t i = 0; i < COUNT; i++) {
		struct verve_addr addr = stranger(1000 + i);
		uint64_t fi_addr;

		cr_assert_eq(verve_addrvec_insert(&a.addrvec, &addr, &fi_addr), 0);
		cr_assert_eq(fi_addr, i);
	}
	for (uint64_t i = COUNT; i-- > 0;)
		cr_assert_eq(verve_peer_find(a.xport, i, &peers[i]), 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		cr_assert_eq(verve_peer_find(a.xport, i, &peer), 0);
		cr_assert_eq(peer, peers[i]);
		cr_assert_eq(verve_addr_port(&peer->addr), 1000 + i);
	}
}

Test(peer, forgotten_address_reaches_nobody_and_may_become_another)
{
	uint64_t fi_addr = node_addr(&a, &b), other;
	struct verve_peer *peer = node_peer(&a, &b), *next;
	struct verve_addr addr = stranger(1);

	verve_peer_forget(a.xport, fi_addr);
	cr_assert_eq(verve_addrvec_remove(&a.addrvec, fi_addr), 1);
	cr_expect_eq(verve_peer_find(a.xport, fi_addr, &next), -FI_EINVAL);
	cr_expect_eq(verve_peer_fi_addr(a.xport, peer), UINT64_MAX);
	cr_assert_eq(verve_addrvec_insert(&a.addrvec, &addr, &other), 0);
	cr_assert_eq(other, fi_addr);
	cr_assert_eq(verve_peer_find(a.xport, fi_addr, &next), 0);
	cr_expect_neq(next, peer);
	cr_expect(verve_addr_equal(&next->addr, &addr));
	cr_expect_eq(verve_peer_fi_addr(a.xport, peer), UINT64_MAX);
	/* The removed address again, under another fi_addr_t. */
	cr_expect_neq(node_addr(&a, &b), fi_addr);
	cr_expect_eq(node_peer(&a, &b), peer);
	cr_expect_eq(verve_peer_fi_addr(a.xport, peer), node_addr(&a, &b));
}

Test(peer, peer_that_comes_and_goes_does_not_stay)
{
	struct verve_peer *known = node_peer(&b, &a);

	strangers_come_and_go(20000);
	cr_expect_lt(HASH_COUNT(b.xport->peers), 2000);
	cr_expect_eq(node_peer(&b, &a), known);
}

static void receive_from_a(void)
{
	cr_assert_eq(node_recv(&b, &(struct message){.peer = &a, .buf = in, .len = ROOM,
						     .context = in}),
		     0);
}

static void forget_a(void)
{
	uint64_t fi_addr = node_addr(&b, &a);

	verve_peer_forget(b.xport, fi_addr);
	cr_assert_eq(verve_addrvec_remove(&b.addrvec, fi_addr), 1);
}

Test(peer, peer_that_is_waited_for_stays)
{
	receive_from_a();
	forget_a();
	strangers_come_and_go(5000);
	node_connect(&a, &b, NODE_WINDOW);
	send_len(100);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 100);
}

Test(peer, peer_that_left_a_message_stays)
{
	node_join(&a, &b, NODE_WINDOW);
	send_len(100);
	nodes_settle();
	verve_link_break(b.xport, node_link(&b, &a), FI_ENOTCONN, 0, "test");
	nodes_settle();
	forget_a();
	strangers_come_and_go(5000);
	receive_from_a();
	cr_expect_eq(expect_comp(&b.rx_queue).len, 100);
}

Test(peer, forgetting_what_was_never_looked_up_is_harmless)
{
	verve_peer_forget(a.xport, 0);
	verve_peer_forget(a.xport, 12345);
	verve_peer_forget(a.xport, UINT64_MAX);
	node_peer(&a, &b);
	verve_peer_forget(a.xport, 63);
	cr_expect_eq(verve_peer_fi_addr(a.xport, node_peer(&a, &b)), node_addr(&a, &b));
}

Test(peer, sender_outside_the_address_vector_has_no_number_until_it_is_put_there)
{
	struct verve_peer *peer;

	node_connect(&a, &b, NODE_WINDOW);
	nodes_settle();
	peer = b.xport->peers;
	cr_assert_not_null(peer);
	cr_expect_eq(verve_peer_fi_addr(b.xport, peer), UINT64_MAX);
	recv_any();
	send_len(1);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).src, UINT64_MAX);
	cr_expect_eq(verve_peer_fi_addr(b.xport, peer), UINT64_MAX);
	cr_expect_eq(node_addr(&b, &a), 0); /* now a is in b's address vector */
	cr_expect_eq(verve_peer_fi_addr(b.xport, peer), 0);
	recv_any();
	send_len(1);
	nodes_settle();
	cr_expect_eq(expect_comp(&b.rx_queue).src, node_addr(&b, &a));
}
