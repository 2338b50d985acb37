/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Data transfer: the checks that all calls share: segments, lengths, addresses. */
#include "ep_pair.h"

#include "api/attr.h"

enum { SEGMENTS = 4 };

static struct ep_pair pair;
static struct ep_side *a = &pair.a, *b = &pair.b;
static char buf[VERVE_INJECT_SIZE + 1];

static void setup(void)
{
	fixture_init(&pair.fix, FI_VERSION(1, 17));
}

static void teardown(void)
{
	ep_pair_close(&pair);
}

TestSuite(request, .init = setup, .fini = teardown);

Test(request, segments_are_as_many_as_info_says_and_no_more)
{
	struct iovec iov[SEGMENTS + 1] = {{buf, 1}, {buf, 1}, {buf, 1}, {buf, 1}, {buf, 1}};

	ep_pair_open(&pair);
	cr_assert_eq(pair.fix.info->tx_attr->iov_limit, SEGMENTS);
	cr_assert_eq(pair.fix.info->rx_attr->iov_limit, SEGMENTS);
	cr_expect_eq(fi_sendv(a->ep, iov, NULL, SEGMENTS + 1, a->peer, NULL), -FI_EINVAL);
	cr_expect_eq(fi_tsendv(a->ep, iov, NULL, SEGMENTS + 1, a->peer, 0, NULL), -FI_EINVAL);
	cr_expect_eq(fi_recvv(a->ep, iov, NULL, SEGMENTS + 1, a->peer, NULL), -FI_EINVAL);
	cr_expect_eq(fi_trecvv(a->ep, iov, NULL, SEGMENTS + 1, a->peer, 0, 0, NULL), -FI_EINVAL);
	cr_expect_eq(fi_writev(a->ep, iov, NULL, SEGMENTS + 1, a->peer, 0, 0, NULL), -FI_EINVAL);
	cr_expect_eq(fi_readv(a->ep, iov, NULL, SEGMENTS + 1, a->peer, 0, 0, NULL), -FI_EINVAL);
	cr_expect_eq(fi_sendv(a->ep, iov, NULL, SEGMENTS, a->peer, NULL), 0);
	cr_expect_eq(fi_recvv(b->ep, iov, NULL, SEGMENTS, FI_ADDR_UNSPEC, NULL), 0);
	cr_expect_eq(ep_pair_comp(&pair, b).len, SEGMENTS);
}

Test(request, injected_length_is_as_long_as_info_says_and_no_longer)
{
	size_t limit = pair.fix.info->tx_attr->inject_size;
	struct iovec iov[2] = {{buf, 1}, {buf, limit}};
	struct fi_msg msg = {.msg_iov = iov, .iov_count = 2};

	ep_pair_open(&pair);
	cr_assert_leq(limit, VERVE_INJECT_SIZE);
	msg.addr = a->peer;
	cr_expect_eq(fi_inject(a->ep, buf, limit + 1, a->peer), -FI_EMSGSIZE);
	cr_expect_eq(fi_tinject(a->ep, buf, limit + 1, a->peer, 0), -FI_EMSGSIZE);
	cr_expect_eq(fi_inject_write(a->ep, buf, limit + 1, a->peer, 0, 0), -FI_EMSGSIZE);
	cr_expect_eq(fi_sendmsg(a->ep, &msg, FI_INJECT), -FI_EMSGSIZE);
	/* a message that is not injected may be longer */
	cr_expect_eq(fi_sendmsg(a->ep, &msg, 0), 0);
	cr_expect_eq(fi_inject(a->ep, buf, limit, a->peer), 0);
}

Test(request, message_is_as_long_as_info_says_and_no_longer)
{
	size_t limit = pair.fix.info->ep_attr->max_msg_size;
	struct iovec iov[2] = {{buf, limit}, {buf, 1}};

	ep_pair_open(&pair);
	cr_expect_eq(fi_send(a->ep, buf, limit + 1, NULL, a->peer, NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_send(a->ep, buf, SIZE_MAX, NULL, a->peer, NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_sendv(a->ep, iov, NULL, 2, a->peer, NULL), -FI_EMSGSIZE);
	iov[1].iov_len = SIZE_MAX; /* the sum of the lengths overflows */
	cr_expect_eq(fi_tsendv(a->ep, iov, NULL, 2, a->peer, 0, NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_write(a->ep, buf, limit + 1, NULL, a->peer, 0, 0, NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_read(a->ep, buf, limit + 1, NULL, a->peer, 0, 0, NULL), -FI_EMSGSIZE);
}

Test(request, length_of_a_receive_does_not_wrap_around)
{
	struct iovec iov[2] = {{buf, SIZE_MAX}, {buf, 9}};

	ep_pair_open(&pair);
	cr_expect_eq(fi_recvv(b->ep, iov, NULL, 2, FI_ADDR_UNSPEC, NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_trecvv(b->ep, iov, NULL, 2, FI_ADDR_UNSPEC, 0, 0, NULL), -FI_EMSGSIZE);
	iov[0].iov_len = 1;
	cr_expect_eq(fi_recvv(b->ep, iov, NULL, 2, FI_ADDR_UNSPEC, NULL), 0);
	cr_expect_eq(fi_inject(a->ep, buf, 10, a->peer), 0);
	cr_expect_eq(ep_pair_comp(&pair, b).len, 10);
}

Test(request, unknown_peers_are_refused)
{
	static const fi_addr_t unknown[] = {1, 12345, FI_ADDR_UNSPEC, FI_ADDR_UNSPEC - 1};

	ep_pair_open(&pair);
	for (int i = 0; i < 4; i++) {
		cr_expect_eq(fi_send(a->ep, buf, 1, NULL, unknown[i], NULL), -FI_EINVAL);
		cr_expect_eq(fi_tinject(a->ep, buf, 1, unknown[i], 0), -FI_EINVAL);
		cr_expect_eq(fi_write(a->ep, buf, 1, NULL, unknown[i], 0, 0, NULL), -FI_EINVAL);
		cr_expect_eq(fi_read(a->ep, buf, 1, NULL, unknown[i], 0, 0, NULL), -FI_EINVAL);
	}
	ep_pair_nothing(&pair, a);
}

Test(request, removed_peer_is_refused)
{
	ep_pair_open(&pair);
	cr_expect_eq(fi_inject(a->ep, buf, 1, a->peer), 0);
	ep_pair_run(&pair, 50);
	cr_assert_eq(fi_av_remove(a->av, &a->peer, 1, 0), 0);
	cr_expect_eq(fi_inject(a->ep, buf, 1, a->peer), -FI_EINVAL);
	ep_side_insert(a, b);
	cr_expect_eq(fi_inject(a->ep, buf, 1, a->peer), 0);
}

Test(request, source_of_a_receive_counts_only_where_it_was_asked_for)
{
	pair.fix.info->caps &= ~FI_DIRECTED_RECV;
	ep_pair_open(&pair);
	cr_expect_eq(fi_recv(b->ep, buf, 1, NULL, 4711, NULL), 0);
	cr_expect_eq(fi_trecv(b->ep, buf, 1, NULL, 4711, 0, 0, NULL), 0);
	cr_expect_eq(fi_inject(a->ep, buf, 1, a->peer), 0);
	ep_pair_comp(&pair, b);
}

Test(request, unknown_source_is_refused_where_it_counts)
{
	pair.fix.info->caps |= FI_DIRECTED_RECV;
	ep_pair_open(&pair);
	cr_expect_eq(fi_recv(b->ep, buf, 1, NULL, 4711, NULL), -FI_EINVAL);
	cr_expect_eq(fi_trecv(b->ep, buf, 1, NULL, 4711, 0, 0, NULL), -FI_EINVAL);
	cr_expect_eq(fi_recv(b->ep, buf, 1, NULL, b->peer, NULL), 0);
	cr_expect_eq(fi_recv(b->ep, buf, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
}

Test(request, multi_receive_buffer_is_one_piece)
{
	struct iovec iov[2] = {{buf, 100}, {buf + 100, 100}};
	struct fi_msg msg = {.msg_iov = iov, .iov_count = 2, .addr = FI_ADDR_UNSPEC};

	ep_pair_open(&pair);
	cr_expect_eq(fi_recvmsg(b->ep, &msg, FI_MULTI_RECV), -FI_EINVAL);
	msg.iov_count = 0;
	cr_expect_eq(fi_recvmsg(b->ep, &msg, FI_MULTI_RECV), -FI_EINVAL);
	msg.iov_count = 1;
	cr_expect_eq(fi_recvmsg(b->ep, &msg, FI_MULTI_RECV), 0);
}
