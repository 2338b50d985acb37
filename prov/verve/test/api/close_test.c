/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Closing an endpoint, by fi_endpoint(3): operations that were posted to it and are not complete
 * end without a completion, because their contexts may be gone when another endpoint's reader reads
 * a shared queue. Accepted operations are executed all the same.
 */
#include "../support/child.h"
#include "ep_pair.h"

enum { LONG = 300000, SHORT = 10 };

static struct ep_pair pair;
static struct ep_side third; /* shares side a's queue and address vector */
static struct fid_cntr *cntr;
static char from[LONG], to[4][LONG];

static void setup(void)
{
	fixture_init(&pair.fix, FI_VERSION(1, 17));
	ep_pair_open(&pair);
	third.av = pair.a.av;
	third.cq = pair.a.cq;
	cr_assert_eq(fi_endpoint(pair.fix.domain, pair.fix.info, &third.ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(third.ep, &third.av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(third.ep, &third.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_cntr_open(pair.fix.domain, NULL, &cntr, NULL), 0);
	cr_assert_eq(fi_ep_bind(pair.a.ep, &cntr->fid, FI_SEND | FI_RECV | FI_WRITE), 0);
	cr_assert_eq(fi_enable(third.ep), 0);
	ep_side_insert(&pair.b, &third);
	third.peer = pair.a.peer;
	ep_side_insert(&pair.b, &pair.a);
	memset(from, 'x', sizeof(from));
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&third.ep->fid), 0);
	if (pair.a.ep)
		cr_expect_eq(fi_close(&pair.a.ep->fid), 0);
	cr_expect_eq(fi_close(&cntr->fid), 0);
	cr_expect_eq(fi_close(&pair.a.av->fid), 0);
	cr_expect_eq(fi_close(&pair.a.cq->fid), 0);
	ep_side_close(&pair.b);
	fixture_fini(&pair.fix);
}

TestSuite(close, .init = setup, .fini = teardown);

static void b_turns(void *arg)
{
	(void)arg;
	fi_cq_read(pair.b.cq, NULL, 0);
}

/* The application of side b goes on polling meanwhile. */
static void close_a(void)
{
	fake_net_on_pause(b_turns, NULL);
	cr_assert_eq(fi_close(&pair.a.ep->fid), 0);
	fake_net_on_pause(NULL, NULL);
	pair.a.ep = NULL;
}

static void post(struct ep_side *side, char *buf, size_t len)
{
	cr_assert_eq(fi_recv(side->ep, buf, len, NULL, FI_ADDR_UNSPEC, buf), 0);
}

static void send_to_peer(struct ep_side *side, size_t len, uint64_t flags)
{
	struct iovec iov = {from, len};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = side->peer, .context = from};

	cr_assert_eq(fi_sendmsg(side->ep, &msg, flags), 0);
}

static void connect_both(void)
{
	post(&pair.b, to[0], SHORT);
	send_to_peer(&pair.a, SHORT, 0);
	ep_pair_comp(&pair, &pair.a);
	ep_pair_comp(&pair, &pair.b);
}

/*
 * The shared queue has no completion of the closed endpoint, the counter has the given values, and
 * the third endpoint, which shares both, still works.
 */
static void expect_third_alone(uint64_t values, uint64_t errors)
{
	struct fi_cq_tagged_entry entry;

	cr_expect_eq(fi_cq_read(pair.a.cq, &entry, 1), -FI_EAGAIN);
	cr_expect_eq(fi_cntr_read(cntr), values);
	cr_expect_eq(fi_cntr_readerr(cntr), errors);
	post(&pair.b, to[3], SHORT);
	send_to_peer(&third, SHORT, FI_DELIVERY_COMPLETE);
	cr_expect_eq(ep_pair_comp(&pair, &third).op_context, from);
	cr_expect_eq(ep_pair_comp(&pair, &pair.b).op_context, to[3]);
	cr_expect_eq(fi_cq_read(pair.a.cq, &entry, 1), -FI_EAGAIN);
}

Test(close, posted_receives_are_dropped)
{
	struct iovec iov = {to[2], LONG};
	struct fi_msg msg = {.msg_iov = &iov,
			     .iov_count = 1,
			     .addr = FI_ADDR_UNSPEC,
			     .context = to[2]};

	post(&pair.a, to[0], SHORT);
	cr_assert_eq(fi_trecv(pair.a.ep, to[1], SHORT, NULL, FI_ADDR_UNSPEC, 7, 0, to[1]), 0);
	cr_assert_eq(fi_recvmsg(pair.a.ep, &msg, FI_MULTI_RECV), 0);
	close_a();
	expect_third_alone(0, 0);
}

Test(close, what_was_accepted_leaves_and_completes_at_the_peer_alone)
{
	for (int i = 0; i < 3; i++)
		post(&pair.b, to[i], LONG);
	/* The endpoint closes before there is a connection. */
	send_to_peer(&pair.a, SHORT, FI_INJECT);
	send_to_peer(&pair.a, LONG, 0);
	send_to_peer(&pair.a, SHORT, FI_DELIVERY_COMPLETE);
	close_a();
	cr_expect_eq(ep_pair_comp(&pair, &pair.b).op_context, to[0]);
	for (int i = 1; i < 3; i++)
		cr_expect_eq(ep_pair_comp(&pair, &pair.b).len, to[i] == to[1] ? SHORT : LONG);
	cr_expect_eq(to[1][LONG - 1], 'x');
	expect_third_alone(0, 0);
}

Test(close, what_cannot_leave_fails_without_a_word)
{
	/*
	 * The peer has one message and no receive for it. The other message waits behind a fence.
	 */
	connect_both();
	send_to_peer(&pair.a, SHORT, FI_DELIVERY_COMPLETE);
	send_to_peer(&pair.a, LONG, FI_FENCE);
	ep_pair_run(&pair, 10);
	close_a();
	/* The peer has the message. */
	post(&pair.b, to[1], LONG);
	cr_expect_eq(ep_pair_comp(&pair, &pair.b).len, SHORT);
	expect_third_alone(1, 0);
}

Test(close, what_is_cancelled_and_not_over_is_dropped)
{
	connect_both();
	send_to_peer(&pair.a, SHORT, FI_DELIVERY_COMPLETE);
	ep_pair_run(&pair, 10);
	cr_assert_eq(fi_cancel(&pair.a.ep->fid, from), 0);
	close_a();
	expect_third_alone(1, 0);
}

Test(close, completions_of_before_stay)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_tagged_entry entry;

	connect_both();
	send_to_peer(&pair.a, SHORT, 0);
	post(&pair.a, to[1], SHORT);
	cr_assert_eq(fi_cancel(&pair.a.ep->fid, to[1]), 0);
	close_a();
	cr_expect_eq(fi_cq_read(pair.a.cq, &entry, 1), 1);
	cr_expect_eq(entry.op_context, from);
	cr_expect_eq(fi_cq_read(pair.a.cq, &entry, 1), -FI_EAVAIL);
	cr_expect_eq(fi_cq_readerr(pair.a.cq, &error, 0), 1);
	cr_expect_eq(error.op_context, to[1]);
	cr_expect_eq(error.err, FI_ECANCELED);
	post(&pair.b, to[2], SHORT);
	ep_pair_comp(&pair, &pair.b);
	expect_third_alone(2, 1);
}

/*
 * If the message found a receive, its sender would get a completion for a message that no
 * application ever sees.
 */
Test(close, message_that_comes_meanwhile_finds_no_receive)
{
	connect_both();
	memset(to[1], 0, SHORT);
	post(&pair.a, to[1], SHORT);
	send_to_peer(&pair.b, SHORT, FI_DELIVERY_COMPLETE);
	fake_net_advance(1000000); /* the message is in a receive buffer */
	close_a();
	ep_pair_error(&pair, &pair.b, FI_ENOTCONN);
	cr_expect_eq(to[1][0], 0);
	expect_third_alone(1, 0);
}

/*
 * The message is read, and its sender is told so. When the close returns, the buffer belongs to the
 * application again.
 */
Test(close, message_that_is_being_received_is_received)
{
	struct fi_cq_err_entry error = {0};
	uint64_t cancelled = 0;

	connect_both();
	post(&pair.a, to[1], LONG);
	send_to_peer(&pair.b, LONG, FI_DELIVERY_COMPLETE);
	/* Cancel and post until the receive has a message. */
	while (!fi_cancel(&pair.a.ep->fid, to[1])) {
		cr_assert_eq(fi_cq_readerr(pair.a.cq, &error, 0), 1);
		cr_assert_lt(++cancelled, 1000);
		post(&pair.a, to[1], LONG);
		fake_net_advance(100);
		fi_cq_read(pair.a.cq, NULL, 0);
	}
	cr_assert_eq(to[1][LONG - 1], 0);
	close_a();
	cr_expect_eq(ep_pair_comp(&pair, &pair.b).op_context, from);
	cr_expect_eq(to[1][LONG - 1], 'x');
	expect_third_alone(1, cancelled);
}

/*
 * A child after fork(2) closes what its parent opened, while messages are under way: nothing waits
 * for ever, and nothing is given to the parent's device, for whose queues both would write.
 */
Test(close, in_a_child_leaves_the_device_to_the_parent)
{
	struct fake_net_stats before, after;
	pid_t child;

	connect_both();
	send_to_peer(&pair.a, LONG, 0);
	send_to_peer(&pair.a, SHORT, FI_DELIVERY_COMPLETE);
	child = fork();
	if (!child) {
		alarm(10);
		fake_net_stats(&before);
		if (fi_close(&pair.a.ep->fid) || fi_close(&third.ep->fid))
			_exit(1);
		fake_net_stats(&after);
		_exit(after.calls != before.calls ? 2 : 0);
	}
	child_expect_success(child);
	/* The parent goes on. */
	post(&pair.b, to[0], LONG);
	post(&pair.b, to[1], SHORT);
	close_a();
}
