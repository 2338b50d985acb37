/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory access: what each call of fi_rma(3) moves, and the keys, lengths and flags that it
 * takes.
 */
#include "ep_pair.h"

enum { LEN = 100, DATA = 0x1234 };

static struct ep_pair pair;
static struct ep_side *a = &pair.a, *b = &pair.b;
static char local[LEN], remote[LEN];
static struct fid_mr *mr;
static uint64_t key, addr;

static void setup(void)
{
	fixture_init(&pair.fix, FI_VERSION(1, 17));
	ep_pair_open(&pair);
	cr_assert_eq(fi_mr_reg(pair.fix.domain, remote, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1,
			       0, &mr, NULL),
		     0);
	key = fi_mr_key(mr);
	addr = (uintptr_t)remote;
	for (int i = 0; i < LEN; i++)
		local[i] = (char)(i + 1);
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&mr->fid), 0);
	ep_pair_close(&pair);
}

TestSuite(rma, .init = setup, .fini = teardown);

static void expect_done(uint64_t flags)
{
	struct fi_cq_tagged_entry entry = ep_pair_comp(&pair, a);

	cr_expect_eq(entry.op_context, local);
	cr_expect_eq(entry.flags, FI_RMA | flags);
	cr_expect_eq(memcmp(local, remote, LEN), 0);
	memset(flags == FI_WRITE ? remote : local, 0, LEN);
}

static void expect_data(void)
{
	struct fi_cq_tagged_entry entry = ep_pair_comp(&pair, b);

	cr_expect_eq(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	cr_expect_eq(entry.data, DATA);
	cr_expect_eq(memcmp(local, remote, LEN), 0);
}

Test(rma, each_way_of_writing)
{
	struct iovec iov[2] = {{local, 10}, {local + 10, LEN - 10}};
	struct fi_rma_iov to[2] = {{addr, 50, key}, {addr + 50, LEN - 50, key}};
	struct fi_msg_rma msg = {.msg_iov = iov, .iov_count = 2, .addr = a->peer, .rma_iov = to,
				 .rma_iov_count = 2, .context = local, .data = DATA};

	cr_assert_eq(fi_write(a->ep, local, LEN, NULL, a->peer, addr, key, local), 0);
	expect_done(FI_WRITE);
	cr_assert_eq(fi_writev(a->ep, iov, NULL, 2, a->peer, addr, key, local), 0);
	expect_done(FI_WRITE);
	cr_assert_eq(fi_writemsg(a->ep, &msg, 0), 0);
	expect_done(FI_WRITE);
	ep_pair_nothing(&pair, b);
	cr_assert_eq(fi_writemsg(a->ep, &msg, FI_REMOTE_CQ_DATA), 0);
	expect_data();
	expect_done(FI_WRITE);
	cr_assert_eq(fi_writedata(a->ep, local, LEN, NULL, DATA, a->peer, addr, key, local), 0);
	expect_data();
	expect_done(FI_WRITE);
	cr_assert_eq(fi_inject_writedata(a->ep, local, LEN, DATA, a->peer, addr, key), 0);
	expect_data();
	memset(remote, 0, LEN);
	cr_assert_eq(fi_inject_write(a->ep, local, LEN, a->peer, addr, key), 0);
	ep_pair_nothing(&pair, a);
	cr_expect_eq(memcmp(local, remote, LEN), 0);
}

Test(rma, each_way_of_reading)
{
	struct iovec iov[2] = {{local, 10}, {local + 10, LEN - 10}};
	struct fi_rma_iov from[2] = {{addr, 50, key}, {addr + 50, LEN - 50, key}};
	struct fi_msg_rma msg = {.msg_iov = iov, .iov_count = 2, .addr = a->peer, .rma_iov = from,
				 .rma_iov_count = 2, .context = local};

	memcpy(remote, local, LEN);
	memset(local, 0, LEN);
	cr_assert_eq(fi_read(a->ep, local, LEN, NULL, a->peer, addr, key, local), 0);
	expect_done(FI_READ);
	cr_assert_eq(fi_readv(a->ep, iov, NULL, 2, a->peer, addr, key, local), 0);
	expect_done(FI_READ);
	cr_assert_eq(fi_readmsg(a->ep, &msg, FI_DELIVERY_COMPLETE), 0);
	expect_done(FI_READ);
}

Test(rma, default_of_inject_is_not_for_reads)
{
	uint64_t flags = FI_TRANSMIT | FI_INJECT;

	memcpy(remote, local, LEN);
	memset(local, 0, LEN);
	cr_assert_eq(fi_control(&a->ep->fid, FI_SETOPSFLAG, &flags), 0);
	cr_assert_eq(fi_read(a->ep, local, LEN, NULL, a->peer, addr, key, local), 0);
	expect_done(FI_READ);
}

/* Each operation fails alone: the connection still works. */
Test(rma, keys_that_cannot_be_the_targets_fail_alone)
{
	uint64_t wide = key | 1ull << 48;
	struct iovec iov = {local, LEN};
	struct fi_rma_iov to[2] = {{addr, LEN - 8, key}, {addr, 8, wide}};
	struct fi_msg_rma msg = {.msg_iov = &iov, .iov_count = 1, .addr = a->peer, .rma_iov = to,
				 .rma_iov_count = 2};

	cr_expect_eq(fi_write(a->ep, local, LEN, NULL, a->peer, addr, wide, NULL), 0);
	ep_pair_error(&pair, a, FI_EACCES);
	cr_expect_eq(fi_read(a->ep, local, LEN, NULL, a->peer, addr, UINT64_MAX, NULL), 0);
	ep_pair_error(&pair, a, FI_EACCES);
	cr_expect_eq(fi_inject_write(a->ep, local, LEN, a->peer, addr, wide), 0);
	ep_pair_error(&pair, a, FI_EACCES);
	cr_expect_eq(fi_writemsg(a->ep, &msg, 0), 0);
	ep_pair_error(&pair, a, FI_EACCES);
	cr_assert_eq(fi_read(a->ep, local, LEN, NULL, a->peer, addr, key, local), 0);
	expect_done(FI_READ);
}

Test(rma, lengths_of_both_sides_must_agree)
{
	struct iovec iov = {local, LEN};
	struct fi_rma_iov to[5] = {{addr, LEN - 1, key}};
	struct fi_msg_rma msg = {.msg_iov = &iov, .iov_count = 1, .addr = a->peer, .rma_iov = to,
				 .rma_iov_count = 1};

	cr_expect_eq(fi_writemsg(a->ep, &msg, 0), -FI_EINVAL);
	to[1] = (struct fi_rma_iov){addr, 2, key};
	msg.rma_iov_count = 2;
	cr_expect_eq(fi_readmsg(a->ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 0;
	cr_expect_eq(fi_writemsg(a->ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 5;
	cr_expect_eq(fi_writemsg(a->ep, &msg, 0), -FI_EINVAL);
	ep_pair_nothing(&pair, a);
}

Test(rma, flags_that_mean_nothing_here_are_refused)
{
	struct iovec iov = {local, LEN};
	struct fi_rma_iov to = {addr, LEN, key};
	struct fi_msg_rma msg = {.msg_iov = &iov, .iov_count = 1, .addr = a->peer, .rma_iov = &to,
				 .rma_iov_count = 1};

	cr_expect_eq(fi_writemsg(a->ep, &msg, FI_PEEK), -FI_EBADFLAGS);
	cr_expect_eq(fi_readmsg(a->ep, &msg, FI_INJECT), -FI_EBADFLAGS);
	cr_expect_eq(fi_readmsg(a->ep, &msg, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	ep_pair_nothing(&pair, a);
}

Test(rma, memory_that_is_not_the_keys_is_an_error)
{
	cr_assert_eq(fi_write(a->ep, local, LEN, NULL, a->peer, addr + 1, key, local), 0);
	cr_expect_eq(ep_pair_error(&pair, a, FI_EACCES).op_context, local);
	cr_expect_eq(remote[1], 0);
}
