/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tagged messages: what each call of fi_tagged(3) sends and receives, and the flags it takes. */
#include "ep_pair.h"

#include "api/attr.h"

enum { LEN = 100, DATA = 0x1234 };

static const uint64_t tag = 0xfedcba9876543210;

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

TestSuite(tagged, .init = setup, .fini = teardown);

static void expect_arrived(bool data)
{
	struct fi_cq_tagged_entry entry = ep_pair_comp(&pair, b);

	cr_expect_eq(entry.op_context, in);
	cr_expect_eq(entry.len, LEN);
	cr_expect_eq(entry.tag, tag);
	cr_expect_eq(entry.flags, FI_RECV | FI_TAGGED | (data ? FI_REMOTE_CQ_DATA : 0));
	cr_expect_eq(data ? entry.data : DATA, DATA);
	cr_expect_eq(memcmp(in, out, LEN), 0);
	memset(in, 0, LEN);
}

static void expect_sent(void)
{
	struct fi_cq_tagged_entry entry = ep_pair_comp(&pair, a);

	cr_expect_eq(entry.op_context, out);
	cr_expect_eq(entry.flags, FI_SEND | FI_TAGGED);
}

static void post(void)
{
	cr_assert_eq(fi_trecv(b->ep, in, LEN, NULL, FI_ADDR_UNSPEC, tag, 0, in), 0);
}

Test(tagged, each_way_of_sending)
{
	struct iovec iov[2] = {{out, 10}, {out + 10, LEN - 10}};
	struct fi_msg_tagged msg = {.msg_iov = iov, .iov_count = 2, .addr = a->peer, .tag = tag,
				    .context = out, .data = DATA};

	post();
	cr_assert_eq(fi_tsend(a->ep, out, LEN, NULL, a->peer, tag, out), 0);
	expect_arrived(false);
	expect_sent();
	post();
	cr_assert_eq(fi_tsendv(a->ep, iov, NULL, 2, a->peer, tag, out), 0);
	expect_arrived(false);
	expect_sent();
	post();
	cr_assert_eq(fi_tsendmsg(a->ep, &msg, 0), 0);
	expect_arrived(false);
	expect_sent();
	post();
	cr_assert_eq(fi_tsendmsg(a->ep, &msg, FI_REMOTE_CQ_DATA), 0);
	expect_arrived(true);
	expect_sent();
	post();
	cr_assert_eq(fi_tsenddata(a->ep, out, LEN, NULL, DATA, a->peer, tag, out), 0);
	expect_arrived(true);
	expect_sent();
	post();
	cr_assert_eq(fi_tinject(a->ep, out, LEN, a->peer, tag), 0);
	expect_arrived(false);
	post();
	cr_assert_eq(fi_tinjectdata(a->ep, out, LEN, DATA, a->peer, tag), 0);
	expect_arrived(true);
	ep_pair_nothing(&pair, a);
}

Test(tagged, each_way_of_receiving)
{
	struct iovec iov[2] = {{in, 10}, {in + 10, LEN - 10}};
	struct fi_msg_tagged msg = {.msg_iov = iov, .iov_count = 2, .addr = FI_ADDR_UNSPEC,
				    .context = in, .tag = ~tag, .ignore = UINT64_MAX};

	post();
	cr_assert_eq(fi_tinject(a->ep, out, LEN, a->peer, tag), 0);
	expect_arrived(false);
	cr_assert_eq(fi_trecvv(b->ep, iov, NULL, 2, FI_ADDR_UNSPEC, tag ^ 1, 1, in), 0);
	cr_assert_eq(fi_tinject(a->ep, out, LEN, a->peer, tag), 0);
	expect_arrived(false);
	cr_assert_eq(fi_trecvmsg(b->ep, &msg, 0), 0);
	cr_assert_eq(fi_tinject(a->ep, out, LEN, a->peer, tag), 0);
	expect_arrived(false);
}

Test(tagged, message_waits_for_its_tag)
{
	cr_assert_eq(fi_trecv(b->ep, in, LEN, NULL, FI_ADDR_UNSPEC, tag + 1, 0, b), 0);
	cr_assert_eq(fi_recv(b->ep, in, LEN, NULL, FI_ADDR_UNSPEC, b), 0);
	cr_assert_eq(fi_tinject(a->ep, out, LEN, a->peer, tag), 0);
	ep_pair_nothing(&pair, b);
	post();
	expect_arrived(false);
}

Test(tagged, peek_claim_and_discard)
{
	struct iovec iov = {in, LEN};
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
				    .context = in, .tag = tag};

	cr_assert_eq(fi_trecvmsg(b->ep, &msg, FI_PEEK), 0);
	ep_pair_error(&pair, b, FI_ENOMSG);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(fi_tinject(a->ep, out, LEN, a->peer, tag), 0);
	ep_pair_run(&pair, 50);
	cr_assert_eq(fi_trecvmsg(b->ep, &msg, FI_PEEK | FI_CLAIM), 0);
	cr_expect_eq(ep_pair_comp(&pair, b).tag, tag);
	cr_assert_eq(fi_trecvmsg(b->ep, &msg, FI_CLAIM), 0);
	expect_arrived(false);
	cr_assert_eq(fi_trecvmsg(b->ep, &msg, FI_PEEK | FI_DISCARD), 0);
	cr_expect_eq(ep_pair_comp(&pair, b).len, LEN);
	cr_assert_eq(fi_trecvmsg(b->ep, &msg, FI_PEEK | FI_CLAIM), 0);
	cr_expect_eq(ep_pair_comp(&pair, b).len, LEN);
	cr_assert_eq(fi_trecvmsg(b->ep, &msg, FI_CLAIM | FI_DISCARD), 0);
	cr_expect_eq(ep_pair_comp(&pair, b).len, LEN);
	cr_assert_eq(fi_trecvmsg(b->ep, &msg, FI_PEEK), 0);
	ep_pair_error(&pair, b, FI_ENOMSG);
	cr_expect_eq(fi_trecvmsg(b->ep, &msg, FI_CLAIM), -FI_EINVAL);
	cr_expect_eq(fi_trecvmsg(b->ep, &msg, FI_DISCARD), -FI_EINVAL);
}

/* First for a message that waits for its receive, then for a message that a receiver discards. */
Test(tagged, match_complete_waits_for_the_match)
{
	struct iovec iov = {out, LEN};
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .addr = a->peer, .tag = tag,
				    .context = out};
	struct fi_msg_tagged look = {.addr = FI_ADDR_UNSPEC, .tag = tag, .context = in};
	struct fi_cq_tagged_entry entry;

	for (int discard = 0; discard < 2; discard++) {
		cr_assert_eq(fi_tsendmsg(a->ep, &msg, FI_MATCH_COMPLETE), 0);
		for (int i = 0; i < 200; i++) {
			cr_assert_eq(fi_cq_read(a->cq, &entry, 1), -FI_EAGAIN);
			cr_assert_eq(fi_cq_read(b->cq, &entry, 1), -FI_EAGAIN);
			fake_net_advance(20000);
		}
		if (discard) {
			cr_assert_eq(fi_trecvmsg(b->ep, &look, FI_PEEK | FI_DISCARD), 0);
			cr_expect_eq(ep_pair_comp(&pair, b).len, LEN);
		} else {
			post();
			expect_arrived(false);
		}
		expect_sent();
	}
}

Test(tagged, flags_that_mean_nothing_here_are_refused)
{
	struct iovec iov = {out, LEN};
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .addr = a->peer};

	cr_expect_eq(fi_tsendmsg(a->ep, &msg, FI_CLAIM), -FI_EBADFLAGS);
	cr_expect_eq(fi_tsendmsg(a->ep, &msg, 1ull << 63), -FI_EBADFLAGS);
	cr_expect_eq(fi_trecvmsg(a->ep, &msg, FI_MULTI_RECV), -FI_EBADFLAGS);
	cr_expect_eq(fi_trecvmsg(a->ep, &msg, FI_FENCE), -FI_EBADFLAGS);
	ep_pair_nothing(&pair, a);
}

Test(tagged, default_of_multi_receive_is_not_for_tagged_ones)
{
	uint64_t flags = FI_RECV | FI_MULTI_RECV;

	cr_assert_eq(fi_control(&b->ep->fid, FI_SETOPSFLAG, &flags), 0);
	post();
	cr_assert_eq(fi_tinject(a->ep, out, LEN, a->peer, tag), 0);
	expect_arrived(false); /* the receive ignores FI_MULTI_RECV */
}

/*
 * FI_TAGGED_DIRECTED_RECV of libfabric 2.0: tagged receives name their source, untagged ones do
 * not.
 */

static void setup_directed(void)
{
	fixture_init(&pair.fix, FI_VERSION(2, 0));
	pair.fix.info->caps =
		(pair.fix.info->caps & ~FI_DIRECTED_RECV) | VERVE_TAGGED_DIRECTED_RECV;
	ep_pair_open(&pair);
	memset(out, 'x', LEN);
}

TestSuite(tagged_directed, .init = setup_directed, .fini = teardown);

Test(tagged_directed, tagged_receives_alone_name_their_source)
{
	fi_addr_t self;
	struct sockaddr_in6 name;
	size_t len = sizeof(name);

	cr_assert_eq(fi_getname(&b->ep->fid, &name, &len), 0);
	cr_assert_eq(fi_av_insert(b->av, &name, 1, &self, 0, NULL), 1);
	/* Receives from b itself, which sends nothing; then from the peer. */
	cr_assert_eq(fi_trecv(b->ep, in, LEN, NULL, self, tag, 0, &self), 0);
	cr_assert_eq(fi_trecv(b->ep, in, LEN, NULL, b->peer, tag, 0, in), 0);
	cr_assert_eq(fi_recv(b->ep, in, LEN, NULL, self, in), 0);
	cr_assert_eq(fi_tsend(a->ep, out, LEN, NULL, a->peer, tag, out), 0);
	expect_arrived(false);
	cr_assert_eq(fi_send(a->ep, out, LEN, NULL, a->peer, out), 0);
	cr_expect_eq(ep_pair_comp(&pair, b).flags, FI_RECV | FI_MSG);
}
