/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lost receives: connections that end in the middle of messages, with devices that flush the
 * receive late, never, or into a completion queue from which closing removes it. a sends to b; c
 * has a connection with b, too.
 */
#include "xport/rx_lost.h"

#include <atomic_ops.h>
#include <string.h>

#include "../proto/fixture.h"
#include "mr/keytab.h"
#include "net/sys.h"
#include "xport/dispatch.h"
#include "xport/post.h"
#include "xport/rx_buffers.h"
#include "xport/turn.h"
#include "xport/watched.h"

enum { LEN = 500, ROUNDS = 200, PART = 8 };

static struct node a, b, c;
static struct verve_mr_keytab keytab; /* of all: nobody has a region */
static char in[2 * LEN], out[LEN];

static struct verve_xport_attr start_net(bool keeps, bool cleans)
{
	struct fake_net_config config;
	struct verve_xport_attr attr;

	fake_net_config_default(&config);
	config.hosts = 3;
	config.partial = 1000; /* each message begins to arrive, and completes later */
	config.error_keeps_recv = keeps;
	config.close_cleans_cq = cleans;
	fake_net_start(&config);
	pattern_fill(out, LEN, 1);
	verve_mr_keytab_init(&keytab);
	node_attr(&attr);
	attr.mr_keytab = &keytab;
	return attr;
}

/* b has so many receive buffers, and at most limit of them; 0: as all nodes. */
static void open_world_of(bool keeps, bool cleans, uint32_t buffers, uint32_t limit)
{
	struct verve_xport_attr attr = start_net(keeps, cleans), of_b = attr;

	of_b.rx_uncredited = buffers ? buffers : attr.rx_uncredited;
	of_b.rx_limit = buffers ? limit : attr.rx_limit;
	node_open(&a, 0, &attr);
	node_open(&b, 1, &of_b);
	node_open(&c, 2, &attr);
	node_join(&a, &b, NODE_WINDOW);
}

static void open_world(bool keeps, bool cleans)
{
	open_world_of(keeps, cleans, 0, 0);
}

static void join_c(void)
{
	node_join(&c, &b, NODE_WINDOW);
	node_event(&b, VERVE_CM_READY, &c, node_link(&b, &c)->conn_id, 0);
}

static void stop_net(void)
{
	node_close(&b);
	node_close(&c);
	verve_mr_keytab_fini(&keytab);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

static void close_world(void)
{
	node_close(&a);
	stop_net();
}

static void send_to_b(struct node *from)
{
	cr_assert_eq(node_send(from, &(struct message){.peer = &b, .buf = out, .len = LEN}), 0);
}

/* Receive buffers of b that are free, posted, or have a completion: all that are not lost. */
static uint32_t found(void)
{
	return b.xport->rx_free_count + fake_net_srq_count(b.xport->srq) +
	       fake_net_cq_count(b.xport->recv_cq);
}

static void expect_message(void)
{
	struct verve_comp comp;

	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = sizeof(in)}), 0);
	nodes_settle();
	comp = expect_comp(&b.rx_queue);
	cr_expect_eq(comp.len, LEN);
	cr_expect(pattern_holds(in, LEN, 1));
}

static void read_all(struct verve_comp_queue *queue)
{
	struct verve_comp_error error;
	struct verve_comp comp;

	while (!verve_comp_queue_is_empty(queue))
		if (verve_comp_queue_read(queue, &comp, 1) < 0)
			verve_comp_queue_read_error(queue, &error);
}

/* So many messages have begun to arrive since the world was opened. */
static void run_until_begun(uint64_t count)
{
	while (nodes_stats().begun < count)
		cr_assert(fake_net_run_next());
}

/* The connection of a and b ends in the middle of a message; then a and b get another one. */
static void end_in_the_middle(void)
{
	uint32_t held = fake_net_srq_count(b.xport->srq);
	uint64_t begun = nodes_stats().begun;

	send_to_b(&a);
	run_until_begun(begun + 1);
	cr_assert_eq(fake_net_srq_count(b.xport->srq), held);
	node_event(&b, VERVE_CM_DOWN, &a, node_link(&b, &a)->conn_id, FI_ENOTCONN);
	node_event(&a, VERVE_CM_DOWN, &b, node_link(&a, &b)->conn_id, FI_ENOTCONN);
	while (verve_proto_poll(&b.proto) || !TAILQ_EMPTY(&b.xport->broken_links))
		;
	nodes_settle();
	read_all(&a.tx_queue);
	node_join(&a, &b, NODE_WINDOW);
}

static void end_often(bool keeps, bool cleans)
{
	struct fake_net_stats stats;

	open_world(keeps, cleans);
	for (int i = 0; i < ROUNDS; i++) {
		end_in_the_middle();
		cr_assert_eq(found(), b.xport->attr.rx_uncredited, "round %d", i);
	}
	send_to_b(&a);
	expect_message();
	fake_net_stats(&stats);
	cr_expect_eq(stats.lost_recvs, keeps || cleans ? ROUNDS : stats.lost_recvs);
	close_world();
}

Test(lost, receives_that_are_never_flushed_come_back)
{
	end_often(true, false);
}

Test(lost, receives_whose_flush_is_cleaned_away_come_back)
{
	end_often(false, true);
}

Test(lost, receives_that_are_flushed_late_come_back)
{
	end_often(false, false);
}

/*
 * While c's queue pair may have the lost buffer, the buffer is not posted. c's next message shows
 * that it does not have it.
 */
Test(lost, a_connection_that_goes_on_is_not_suspected)
{
	open_world(true, true);
	node_join(&c, &b, NODE_WINDOW);
	end_in_the_middle();
	cr_expect_eq(b.xport->lost.count, 1);
	cr_expect_eq(found(), b.xport->attr.rx_uncredited - 1);
	send_to_b(&c);
	expect_message();
	verve_rx_lost_watch(b.xport);
	cr_expect_eq(b.xport->lost.count, 0);
	cr_expect_eq(found(), b.xport->attr.rx_uncredited);
	cr_expect_null(node_link(&b, &c)->replay);
	close_world();
}

/* Looking at every buffer in every turn would be slow while one is in question, maybe for ever. */
Test(lost, turns_with_no_or_few_packets_do_not_search)
{
	uint64_t before;

	open_world(true, true);
	node_join(&c, &b, NODE_WINDOW);
	end_in_the_middle();
	cr_assert_eq(b.xport->lost.count, 1);
	verve_rx_lost_step(b.xport);
	before = b.xport->count.searches;
	b.xport->handled += b.xport->rx_count / 4 - 1;
	for (int i = 0; i < 10; i++)
		verve_rx_lost_step(b.xport);
	cr_expect_eq(b.xport->count.searches, before);
	b.xport->handled++;
	for (int i = 0; i < 10; i++)
		verve_rx_lost_step(b.xport);
	cr_expect_eq(b.xport->count.searches, before + 1);
	send_to_b(&c);
	expect_message();
	b.xport->handled += b.xport->rx_count / 4;
	verve_rx_lost_step(b.xport);
	cr_expect_eq(b.xport->lost.count, 0);
	close_world();
}

/* c's message has begun to arrive when the lost buffer is looked for, and completes afterwards. */
Test(lost, a_receive_that_is_being_filled_is_left_alone)
{
	open_world(true, true);
	node_join(&c, &b, NODE_WINDOW);
	end_in_the_middle();
	send_to_b(&c);
	run_until_begun(2);
	verve_rx_lost_step(b.xport);
	cr_expect_eq(b.xport->lost.count, 1);
	cr_expect_eq(found(), b.xport->attr.rx_uncredited - 1);
	expect_message();
	verve_rx_lost_watch(b.xport);
	cr_expect_eq(found(), b.xport->attr.rx_uncredited);
	close_world();
}

/*
 * c sends nothing, so its queue pair may have any of the lost buffers. Once too many buffers are in
 * question, c is asked, and its answer settles the question.
 */
Test(lost, silence_ends_when_too_many_are_in_question)
{
	uint32_t tolerated;

	open_world(true, true);
	join_c();
	tolerated = b.xport->attr.rx_uncredited / PART;
	for (uint32_t round = 0; round < 3 * tolerated; round++) {
		end_in_the_middle();
		verve_rx_lost_step(b.xport);
		nodes_settle();
		cr_expect_geq(found(), b.xport->attr.rx_uncredited - tolerated - 1);
		cr_assert_null(node_link(&b, &c)->replay, "operations of c would stand still");
		cr_assert_leq(node_link(&b, &c)->keys.asked, 1);
	}
	close_world();
}

/* One buffer may be in question for as long as c likes: nobody is woken for it. */
Test(lost, few_in_question_wake_nobody)
{
	open_world(true, true);
	node_join(&c, &b, NODE_WINDOW);
	cr_assert_not(verve_turn_is_due(b.xport));
	end_in_the_middle();
	cr_assert_eq(b.xport->lost.count, 1);
	cr_expect_not(verve_turn_is_due(b.xport));
	close_world();
}

/* c does not answer: as its last resort, b gives the connection another queue pair. */
Test(lost, silence_of_a_peer_that_does_not_answer_ends_when_half_are_in_question)
{
	uint32_t half, rounds = 0;

	open_world(true, true);
	join_c();
	node_link(&b, &c)->keys.asked = 1; /* long ago */
	half = b.xport->attr.rx_uncredited / 2;
	while (!node_link(&b, &c)->replay) {
		cr_assert_leq(rounds++, half);
		end_in_the_middle();
		cr_expect_geq(found(), b.xport->attr.rx_uncredited - half - 1);
	}
	cr_expect_gt(rounds, half);
	node_link(&b, &c)->keys.asked = 0;
	node_resume(&b, &c);
	cr_expect_null(node_link(&b, &c)->replay);
	verve_rx_lost_step(b.xport);
	cr_expect_eq(b.xport->lost.count, 0);
	cr_expect_eq(found(), b.xport->attr.rx_uncredited);
	send_to_b(&c);
	expect_message();
	close_world();
}

/* An endpoint begins with few buffers, but may have more before honest links are disturbed. */
Test(lost, buffers_are_added_before_links_get_other_queue_pairs)
{
	open_world_of(true, true, 16, 16 + 2 * VERVE_RX_STEP);
	b.xport->attr.rx_uncredited = b.xport->attr.rx_limit;
	join_c();
	node_link(&b, &c)->keys.asked = 1; /* c does not answer */
	for (uint32_t i = 0; !node_link(&b, &c)->replay && i < 100; i++)
		end_in_the_middle();
	cr_expect_not_null(node_link(&b, &c)->replay);
	cr_expect_eq(b.xport->rx_count, b.xport->attr.rx_limit);
	close_world();
}

/*
 * b takes no packets while its completion queue is flooded. Meanwhile c's first message is in the
 * device's completion queue, and the second has begun to arrive. Taking the first message later
 * must not be read as a sign that c's queue pair has no buffer.
 */
Test(lost, what_a_flood_kept_in_the_device_is_no_news)
{
	open_world(true, true);
	node_event(&b, VERVE_CM_DOWN, &a, node_link(&b, &a)->conn_id, FI_ENOTCONN);
	node_event(&a, VERVE_CM_DOWN, &b, node_link(&a, &b)->conn_id, FI_ENOTCONN);
	nodes_settle();
	node_join(&c, &b, NODE_WINDOW);
	send_to_b(&c);
	send_to_b(&c);
	run_until_begun(2);
	cr_assert_eq(fake_net_cq_count(b.xport->recv_cq), 1);
	AO_store(&b.rx_queue.uninvited, VERVE_COMP_UNINVITED);
	b.xport->lost.closed--; /* as if the manager had closed a queue pair */
	verve_rx_lost_step(b.xport);
	AO_store(&b.rx_queue.uninvited, 0);
	cr_assert(verve_cm_events_receive(b.xport));
	verve_rx_lost_step(b.xport);
	cr_expect_eq(found(), b.xport->attr.rx_uncredited);
	expect_message();
	expect_message();
	close_world();
}

/* Brings so many buffers into question that c's link would get another queue pair. */
static void lose_too_many(void)
{
	uint32_t tolerated = b.xport->attr.rx_uncredited / PART;

	for (uint32_t i = 0; i <= tolerated; i++)
		end_in_the_middle();
	cr_assert_eq(found(), b.xport->attr.rx_uncredited - tolerated - 1);
}

/* First the buffers in question come back, then those that were lost meanwhile. */
static void expect_all_back(void)
{
	for (int i = 0; i < 2; i++) {
		send_to_b(&a);
		send_to_b(&c);
		expect_message();
		expect_message();
		verve_rx_lost_watch(b.xport);
	}
	cr_expect_eq(b.xport->lost.count, 0);
	cr_expect_eq(found(), b.xport->rx_count);
}

/* Until b is done with putting buffers aside, or so many are. */
static void messages_come(uint32_t aside)
{
	struct verve_rx_load *load = &b.xport->rx_load;

	for (int i = 0; i < 100 && load->shrinking && load->aside_count < aside; i++) {
		send_to_b(&a);
		expect_message();
	}
}

/* b gets a step of spare buffers, and puts most of them aside as messages come. */
static void put_aside(uint32_t count)
{
	for (int i = 0; i < 100 && b.xport->rx_count < b.xport->attr.rx_limit; i++) {
		b.xport->rx_load.grown = false;
		verve_rx_buffers_count(b.xport, b.xport->rx_count);
		verve_rx_buffers_turn(b.xport);
	}
	verve_rx_buffers_watch(b.xport, fake_net_time());
	verve_dispatch_refill(b.xport);
	b.xport->rx_load.shrinking = true;
	messages_come(count);
	verve_link_ask(b.xport, node_link(&b, &a)); /* no request of b is under way any more */
	nodes_settle();
	cr_assert_geq(b.xport->rx_load.aside_count, count);
	cr_assert(b.xport->rx_load.shrinking);
}

/* Buffers that are put aside receive nothing: of the others, an eighth may be in question. */
Test(lost, buffers_put_aside_do_not_count_and_come_back)
{
	enum { FIRST = 16, ALL = FIRST + VERVE_RX_STEP };
	uint32_t tolerated;

	open_world_of(true, true, FIRST, ALL);
	put_aside(VERVE_RX_STEP - 8);
	join_c();
	node_link(&b, &c)->keys.asked = 1; /* c does not answer */
	tolerated = verve_rx_buffers_in_use(b.xport) / PART;
	cr_assert_lt(tolerated + 1, ALL / PART);
	for (uint32_t i = 0; i < tolerated; i++)
		end_in_the_middle();
	cr_expect_gt(b.xport->rx_load.aside_count, 0);
	end_in_the_middle();
	cr_expect_eq(b.xport->rx_load.aside_count, 0);
	cr_expect_not(b.xport->rx_load.shrinking);
	node_link(&b, &c)->keys.asked = 0;
	expect_all_back();
	close_world();
}

/* The queue pair took a buffer of the step along that is to go: c is asked, if only for that. */
Test(lost, one_in_question_does_not_keep_a_step_that_is_to_go)
{
	open_world_of(true, true, 16, 16 + VERVE_RX_STEP);
	put_aside(VERVE_RX_STEP - 8);
	join_c();
	node_link(&b, &c)->keys.asked = 1; /* not now */
	end_in_the_middle();
	messages_come(UINT32_MAX);
	cr_assert(b.xport->rx_load.shrinking);
	node_link(&b, &c)->keys.asked = 0;
	verve_rx_lost_watch(b.xport);
	nodes_settle();
	verve_rx_lost_watch(b.xport);
	messages_come(UINT32_MAX);
	cr_expect_eq(b.xport->rx_count, 16);
	close_world();
}

/* c has begun to connect, and may not exist: its link gets no other queue pair. */
Test(lost, a_half_open_connection_gets_no_other_queue_pair)
{
	open_world(true, true);
	node_join(&c, &b, NODE_WINDOW);
	node_link(&b, &c)->may_send = false;
	node_link(&b, &c)->listen = true;
	node_link(&b, &c)->listening = verve_net_now();
	verve_watched_update(b.xport, node_link(&b, &c));
	lose_too_many();
	cr_expect_null(node_link(&b, &c)->replay);
	expect_all_back();
	close_world();
}

/* HELLOs crossed: c may not have b's, and would take that connection's end for a refusal. */
Test(lost, a_connection_that_the_peer_may_not_have_gets_no_other_queue_pair)
{
	open_world(true, true);
	node_join(&c, &b, NODE_WINDOW);
	node_link(&b, &c)->may_send = false;
	lose_too_many();
	cr_expect_null(node_link(&b, &c)->replay);
	expect_all_back();
	close_world();
}

/* They leave the buffers' marks alone. b closes a's queue pair, which removes the completions. */
static void send_empty_packets(void)
{
	struct verve_net_wr wr = {.wr_id = UINT64_MAX, .op = VERVE_NET_SEND};
	uint32_t count = VERVE_POLL_BATCH + 4;

	verve_cm_events_step(a.xport);
	for (uint32_t i = 0; i < count; i++)
		cr_assert_eq(verve_net_qp_post(node_link(&a, &b)->qp, &wr), 0);
	do
		cr_assert(fake_net_run_next());
	while (fake_net_cq_count(b.xport->recv_cq) < count);
	nodes_settle();
	cr_expect_eq(found(), b.xport->attr.rx_uncredited);
}

Test(lost, a_connection_that_is_refused_takes_nothing_along)
{
	open_world(true, true);
	node_claim(&a, &b, NODE_WINDOW);
	send_empty_packets();
	close_world();
}

Test(lost, a_queue_pair_that_gets_no_connection_takes_nothing_along)
{
	open_world(true, true);
	node_fail_to_connect(&a, &b);
	send_empty_packets();
	close_world();
}

enum { BUFFERS = 16, HOSTILE = BUFFERS };

static struct node hostile[HOSTILE];

/* c is honest; each of the others has sent a packet, and then begins a message. */
static void open_crowd(void)
{
	struct verve_xport_attr attr = start_net(false, false);

	attr.rx_uncredited = BUFFERS;
	node_open(&b, 1, &attr);
	node_open(&c, 2, &attr);
	join_c();
	for (int i = 0; i < HOSTILE; i++) {
		node_open(&hostile[i], 0, &attr);
		node_join(&hostile[i], &b, NODE_WINDOW);
		node_event(&b, VERVE_CM_READY, &hostile[i], node_link(&b, &hostile[i])->conn_id, 0);
	}
	nodes_settle();
}

static void close_crowd(void)
{
	fake_net_hold(0, false);
	for (int i = 0; i < HOSTILE; i++)
		node_close(&hostile[i]);
	stop_net();
}

/* So many of them begin a message, and do not go on. */
static void begin_messages(uint32_t count)
{
	uint64_t begun = nodes_stats().begun;

	fake_net_hold(0, true);
	for (uint32_t i = 0; i < count; i++)
		send_to_b(&hostile[i]);
	run_until_begun(begun + count);
	cr_assert_eq(fake_net_cq_count(b.xport->recv_cq), 0);
}

/* The time between two looks of a busy application passes. */
static void watch_b(void)
{
	fake_net_advance(b.xport->attr.keepalive);
	for (int i = 0; i < VERVE_WATCH_POLLS; i++)
		verve_proto_poll(&b.proto);
}

/*
 * All buffers are taken: nobody else's message arrives. Nothing of the device says so, and no queue
 * pair ends by itself. At the first watch the messages have begun; at the second, they still have.
 */
Test(lost, messages_that_begin_and_do_not_end_stop_nobody)
{
	open_crowd();
	begin_messages(HOSTILE);
	send_to_b(&c);
	watch_b();
	watch_b();
	cr_assert(node_link(&b, &c)->replay, "c's queue pair may have a buffer, too");
	node_resume(&b, &c);
	expect_message();
	cr_expect_eq(b.xport->lost.count, 0);
	cr_expect_eq(found(), BUFFERS);
	close_crowd();
}

/* Half of the buffers are enough for the others: connections are left alone. */
Test(lost, messages_that_do_not_end_renew_no_connection_while_half_of_the_buffers_are_left)
{
	open_crowd();
	begin_messages(BUFFERS / 2);
	for (int i = 0; i < 4; i++)
		watch_b();
	for (int i = 0; i < HOSTILE; i++)
		cr_expect_null(node_link(&b, &hostile[i])->replay);
	fake_net_hold(0, false);
	for (int i = 0; i < BUFFERS / 2; i++)
		expect_message();
	close_crowd();
}

/* The watch comes while messages arrive as ever: they have begun since the last watch. */
Test(lost, messages_that_arrive_during_a_watch_are_not_suspected)
{
	open_crowd();
	watch_b();
	for (uint32_t i = 0; i < HOSTILE; i++)
		send_to_b(&hostile[i]);
	run_until_begun(HOSTILE);
	b.xport->watch_time = 0;
	verve_turn_expect(b.xport);
	verve_proto_poll(&b.proto);
	cr_expect_eq(b.xport->lost.count, 0);
	for (int i = 0; i < HOSTILE; i++)
		expect_message();
	close_crowd();
}

/* A message that begins wakes nobody. With so many connections, a sleeper looks by itself. */
Test(lost, sleeper_with_many_connections_looks_for_messages_that_do_not_end)
{
	open_crowd();
	cr_expect(verve_turn_is_due(b.xport));
	cr_expect_not(verve_turn_is_due(c.xport));
	close_crowd();
}
