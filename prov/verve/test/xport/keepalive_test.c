/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Keep-alive: when a peer is probed, and which peers are. */
#include "xport/keepalive.h"

#include "../proto/pair.h"
#include "xport/post.h"

enum { ROOM = 10 };

static char out[ROOM], in[ROOM];
static struct verve_link *link;

static void setup(void)
{
	pair_open(out, in, ROOM);
	link = node_link(&a, &b);
}

TestSuite(keepalive, .init = setup, .fini = pair_close);

static int post(uint32_t flags)
{
	struct verve_net_wr wr = {.op = VERVE_NET_WRITE, .flags = flags};

	return verve_link_post_slot(a.xport, link, &wr, &(struct verve_slot){.op = NULL});
}

Test(keepalive, probe_is_sent_where_no_completion_is_asked_for)
{
	verve_keepalive_probe(a.xport, link);
	cr_expect_eq(link->produced, 1);
	cr_expect_eq(link->signaled, 0);
	verve_keepalive_probe(a.xport, link); /* the first probe is outstanding */
	cr_expect_eq(link->produced, 1);
	nodes_settle();
	cr_expect_eq(link->retired, 1);
	cr_assert_eq(post(0), 0);
	verve_keepalive_probe(a.xport, link); /* the request asks for no completion */
	cr_expect_eq(link->produced, 3);
	nodes_settle();
	cr_expect_eq(link->retired, 3);
	expect_none(&a.tx_queue);
	expect_none(&b.rx_queue);
}

Test(keepalive, probe_waits_where_nothing_may_be_sent)
{
	struct verve_link *back = node_link(&b, &a);

	verve_keepalive_probe(b.xport, back);
	cr_expect_eq(back->produced, 0);
}

/* A message that was copied is complete, and nobody waits for its request's end. */
Test(keepalive, device_that_repeats_for_ever_is_asked_about_requests_that_do_not_end)
{
	struct fake_net_config config;

	pair_close();
	fake_net_config_default(&config);
	config.limits.repeats_forever = true;
	fake_net_start(&config);
	setup();
	cr_expect_not(verve_keepalive_is_needed(a.xport));
	pair_send(ROOM, 0, NULL);
	cr_expect_eq(expect_comp(&a.tx_queue).len, ROOM);
	cr_expect(verve_keepalive_is_needed(a.xport));
	verve_keepalive_step(a.xport);
	verve_keepalive_step(a.xport);
	cr_expect(link->is_owing);
	cr_expect_eq(link->produced, 2, "a request that asks for its completion");
	verve_keepalive_step(a.xport);
	cr_expect(link->silent, "the peer's port is asked");
	nodes_settle();
	cr_expect_not(verve_keepalive_is_needed(a.xport));
	verve_keepalive_step(a.xport);
	cr_expect_not(link->is_owing);
	cr_expect_eq(link->produced, 2);
}

Test(keepalive, probe_finds_a_dead_peer)
{
	pair_send(ROOM, VERVE_OP_ACK, NULL);
	nodes_settle();
	fake_net_host_kill(1);
	nodes_settle();
	expect_none(&a.tx_queue); /* neither an answer nor an error */
	verve_keepalive_probe(a.xport, link);
	nodes_settle();
	expect_error(&a.tx_queue, FI_EHOSTUNREACH);
}
