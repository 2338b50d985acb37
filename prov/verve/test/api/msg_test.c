/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages: which calls of fi_msg(3) send and receive what, and the flags that each call takes. */
#include "ep_pair.h"

enum { LEN = 100, DATA = 0x1234 };

static struct ep_pair pair;
static struct ep_side *a = &pair.a, *b = &pair.b;
static char out[LEN], in[LEN];

static void setup(void)
{
	fixture_init(&pair.fix, FI_VERSION(1, 17));
	ep_pair_open(&pair);
	for (int i = 0; i < LEN; i++)
		out[i] = (char)(i + 1);
}

static void teardown(void)
{
	ep_pair_close(&pair);
}

TestSuite(msg, .init = setup, .fini = teardown);

/* Takes b's next completion and checks it. In every test, the receive has the context in. */
static void expect_arrived(size_t len, bool data)
{
	struct fi_cq_tagged_entry entry = ep_pair_comp(&pair, b);

	cr_expect_eq(entry.op_context, in);
	cr_expect_eq(entry.len, len);
	cr_expect_eq(entry.flags, FI_RECV | FI_MSG | (data ? FI_REMOTE_CQ_DATA : 0));
	cr_expect_eq(data ? entry.data : DATA, DATA);
	cr_expect_eq(memcmp(in, out, len), 0);
	memset(in, 0, LEN);
}

static void expect_sent(void)
{
	struct fi_cq_tagged_entry entry = ep_pair_comp(&pair, a);

	cr_expect_eq(entry.op_context, out);
	cr_expect_eq(entry.flags, FI_SEND | FI_MSG);
}

static void post(void)
{
	cr_assert_eq(fi_recv(b->ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
}

Test(msg, each_way_of_sending)
{
	struct iovec iov[2] = {{out, 10}, {out + 10, LEN - 10}};
	struct fi_msg msg = {
		.msg_iov = iov, .iov_count = 2, .addr = a->peer, .context = out, .data = DATA};

	post();
	cr_assert_eq(fi_send(a->ep, out, LEN, NULL, a->peer, out), 0);
	expect_arrived(LEN, false);
	expect_sent();
	post();
	cr_assert_eq(fi_sendv(a->ep, iov, NULL, 2, a->peer, out), 0);
	expect_arrived(LEN, false);
	expect_sent();
	post();
	cr_assert_eq(fi_sendmsg(a->ep, &msg, 0), 0);
	expect_arrived(LEN, false);
	expect_sent();
	post();
	cr_assert_eq(fi_sendmsg(a->ep, &msg, FI_REMOTE_CQ_DATA), 0);
	expect_arrived(LEN, true);
	expect_sent();
	post();
	cr_assert_eq(fi_senddata(a->ep, out, LEN, NULL, DATA, a->peer, out), 0);
	expect_arrived(LEN, true);
	expect_sent();
	post();
	cr_assert_eq(fi_inject(a->ep, out, LEN, a->peer), 0);
	expect_arrived(LEN, false);
	post();
	cr_assert_eq(fi_injectdata(a->ep, out, LEN, DATA, a->peer), 0);
	expect_arrived(LEN, true);
	ep_pair_nothing(&pair, a); /* inject and injectdata write no completion */
}

Test(msg, each_way_of_receiving)
{
	struct iovec iov[2] = {{in, 10}, {in + 10, LEN - 10}};
	struct fi_msg msg = {.msg_iov = iov, .iov_count = 2, .addr = FI_ADDR_UNSPEC, .context = in};

	post();
	cr_assert_eq(fi_inject(a->ep, out, LEN, a->peer), 0);
	expect_arrived(LEN, false);
	cr_assert_eq(fi_recvv(b->ep, iov, NULL, 2, FI_ADDR_UNSPEC, in), 0);
	cr_assert_eq(fi_inject(a->ep, out, LEN, a->peer), 0);
	expect_arrived(LEN, false);
	cr_assert_eq(fi_recvmsg(b->ep, &msg, 0), 0);
	cr_assert_eq(fi_inject(a->ep, out, LEN, a->peer), 0);
	expect_arrived(LEN, false);
}

Test(msg, peek_and_claim)
{
	struct iovec iov = {in, LEN};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.context = in};

	cr_assert_eq(fi_recvmsg(b->ep, &msg, FI_PEEK), 0);
	cr_expect_eq(ep_pair_error(&pair, b, FI_ENOMSG).op_context, in);
	cr_assert_eq(fi_inject(a->ep, out, LEN, a->peer), 0);
	ep_pair_run(&pair, 50);
	cr_assert_eq(fi_recvmsg(b->ep, &msg, FI_PEEK | FI_CLAIM), 0);
	cr_expect_eq(ep_pair_comp(&pair, b).len, LEN);
	cr_expect_eq(in[0], 0);
	cr_assert_eq(fi_recvmsg(b->ep, &msg, FI_CLAIM), 0);
	expect_arrived(LEN, false);
	cr_expect_eq(fi_recvmsg(b->ep, &msg, FI_CLAIM), -FI_EINVAL);
}

Test(msg, flags_that_mean_nothing_here_are_refused)
{
	struct iovec iov = {out, LEN};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = a->peer};

	cr_expect_eq(fi_sendmsg(a->ep, &msg, FI_MULTI_RECV), -FI_EBADFLAGS);
	cr_expect_eq(fi_sendmsg(a->ep, &msg, FI_PEEK), -FI_EBADFLAGS);
	cr_expect_eq(fi_sendmsg(a->ep, &msg, 1ull << 63), -FI_EBADFLAGS);
	cr_expect_eq(fi_recvmsg(a->ep, &msg, FI_INJECT), -FI_EBADFLAGS);
	cr_expect_eq(fi_recvmsg(a->ep, &msg, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	/* FI_DISCARD alone names no message */
	cr_expect_eq(fi_recvmsg(a->ep, &msg, FI_DISCARD), -FI_EINVAL);
	ep_pair_nothing(&pair, a);
}

Test(msg, hints_that_may_be_ignored_are_taken)
{
	struct iovec iov = {out, LEN};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = a->peer, .context = out};

	post();
	cr_assert_eq(fi_sendmsg(a->ep, &msg, FI_MORE | FI_COMPLETION | FI_INJECT_COMPLETE), 0);
	expect_arrived(LEN, false);
	expect_sent();
}

/*
 * fi_msg(3): such a receive may complete as soon as the message is here. With verve, the data is
 * then in the buffer, too.
 */
Test(msg, receives_may_be_transmit_complete)
{
	struct iovec iov = {in, LEN};
	struct fi_msg msg = {.msg_iov = &iov,
			     .iov_count = 1,
			     .addr = FI_ADDR_UNSPEC,
			     .context = in};
	uint64_t flags = FI_RECV | FI_TRANSMIT_COMPLETE | FI_COMPLETION;

	cr_assert_eq(fi_recvmsg(b->ep, &msg, FI_TRANSMIT_COMPLETE | FI_MORE), 0);
	cr_assert_eq(fi_control(&b->ep->fid, FI_SETOPSFLAG, &flags), 0);
	cr_assert_eq(fi_recv(b->ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(fi_send(a->ep, out, LEN, NULL, a->peer, out), 0);
		expect_arrived(LEN, false);
		expect_sent();
	}
}

Test(msg, operation_flags_are_for_calls_without_any)
{
	struct iovec iov = {out, LEN};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = a->peer, .context = out};
	uint64_t flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;

	cr_assert_eq(fi_control(&a->ep->fid, FI_SETOPSFLAG, &flags), 0);
	cr_assert_eq(fi_sendmsg(a->ep, &msg, 0), 0);
	expect_sent();
	cr_assert_eq(fi_send(a->ep, out, LEN, NULL, a->peer, out), 0);
	ep_pair_nothing(&pair, a);
	post();
	post();
	expect_arrived(LEN, false);
	expect_sent();
}

Test(msg, multi_receive_buffer_says_where_each_message_lies)
{
	struct iovec iov = {in, LEN};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.context = in};
	struct fi_cq_tagged_entry entry;

	cr_assert_eq(fi_recvmsg(b->ep, &msg, FI_MULTI_RECV), 0);
	cr_assert_eq(fi_inject(a->ep, out, 20, a->peer), 0);
	cr_assert_eq(fi_inject(a->ep, out, 20, a->peer), 0);
	entry = ep_pair_comp(&pair, b);
	cr_expect_eq(entry.buf, in);
	cr_expect_eq(entry.flags, FI_RECV | FI_MSG);
	entry = ep_pair_comp(&pair, b);
	cr_expect_eq(entry.buf, in + 20);
	/* 60 bytes are left, less than the 64 that are needed */
	cr_expect_eq(entry.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
}
