/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors of local buffers (fi_mr(3), FI_MR_LOCAL). Before 1.22, each call of an application
 * that did not set the bit ignores them, whatever they are. Otherwise they are used, which saves a
 * registration.
 */
#include "ep_pair.h"

#include <rdma/fi_atomic.h>
#include <stdlib.h>

/* Longer than an eager message, so that local and remote buffers must be registered. */
enum { LEN = 100000, HALF = LEN / 2 };

static struct ep_pair pair;
static struct ep_side *a = &pair.a, *b = &pair.b;
static char source[LEN], target[LEN], rma[LEN];
static uint64_t operand, compare, result;
static struct iovec from[2] = {{source, HALF}, {source + HALF, HALF}};
static struct iovec into[2] = {{target, HALF}, {target + HALF, HALF}};
static struct fid_mr *mr;

/* A pointer that must not be read from. */
static void *const nonsense = (void *)0x10;
static void *nonsenses[2] = {(void *)0x10, (void *)0x20};

static void open_pair(uint32_t version, int mr_mode)
{
	fixture_init(&pair.fix, version);
	pair.fix.info->domain_attr->mr_mode |= mr_mode;
	ep_pair_open(&pair);
	cr_assert_eq(fi_mr_reg(pair.fix.domain, rma, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0,
			       &mr, NULL),
		     0);
	for (int i = 0; i < LEN; i++)
		source[i] = (char)(i * 7);
}

static void setup(void)
{
	open_pair(FI_VERSION(1, 17), 0);
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&mr->fid), 0);
	ep_pair_close(&pair);
}

TestSuite(ignored_desc, .init = setup, .fini = teardown);

/* A message, short or long, has arrived, and both sides have their completion. */
static void expect_moved(size_t len)
{
	ep_pair_comp(&pair, a);
	ep_pair_comp(&pair, b);
	cr_assert_eq(memcmp(source, target, len), 0);
	memset(target, 0, LEN);
}

static void receive(size_t len)
{
	cr_assert_eq(fi_recv(b->ep, target, len, nonsense, FI_ADDR_UNSPEC, NULL), 0);
}

static void send_each_way(size_t len)
{
	struct iovec iov[2] = {{source, len / 2}, {source + len / 2, len / 2}};
	struct fi_msg msg = {
		.msg_iov = iov, .desc = nonsenses, .iov_count = 2, .addr = a->peer};

	receive(len);
	cr_assert_eq(fi_send(a->ep, source, len, nonsense, a->peer, NULL), 0);
	expect_moved(len);
	receive(len);
	cr_assert_eq(fi_sendv(a->ep, iov, nonsenses, 2, a->peer, NULL), 0);
	expect_moved(len);
	receive(len);
	cr_assert_eq(fi_senddata(a->ep, source, len, nonsense, 5, a->peer, NULL), 0);
	expect_moved(len);
	receive(len);
	cr_assert_eq(fi_sendmsg(a->ep, &msg, FI_COMPLETION), 0);
	expect_moved(len);
}

Test(ignored_desc, messages_sent)
{
	send_each_way(8);
	send_each_way(LEN);
}

static void send_plainly(size_t len)
{
	cr_assert_eq(fi_send(a->ep, source, len, NULL, a->peer, NULL), 0);
	expect_moved(len);
}

Test(ignored_desc, messages_received)
{
	struct fi_msg msg = {.msg_iov = into, .desc = nonsenses, .iov_count = 2};

	receive(LEN);
	send_plainly(LEN);
	cr_assert_eq(fi_recvv(b->ep, into, nonsenses, 2, FI_ADDR_UNSPEC, NULL), 0);
	send_plainly(LEN);
	cr_assert_eq(fi_recvmsg(b->ep, &msg, FI_COMPLETION), 0);
	send_plainly(LEN);
}

/* One message fills the whole buffer. */
Test(ignored_desc, multi_receive)
{
	struct iovec iov = {target, LEN};
	struct fi_msg msg = {.msg_iov = &iov, .desc = nonsenses, .iov_count = 1};

	cr_assert_eq(fi_recvmsg(b->ep, &msg, FI_COMPLETION | FI_MULTI_RECV), 0);
	send_plainly(LEN);
}

static void treceive(size_t len)
{
	cr_assert_eq(fi_trecv(b->ep, target, len, nonsense, FI_ADDR_UNSPEC, 3, 0, NULL), 0);
}

static void tsend_each_way(size_t len)
{
	struct iovec iov[2] = {{source, len / 2}, {source + len / 2, len / 2}};
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .desc = nonsenses, .iov_count = 2, .addr = a->peer, .tag = 3};

	treceive(len);
	cr_assert_eq(fi_tsend(a->ep, source, len, nonsense, a->peer, 3, NULL), 0);
	expect_moved(len);
	treceive(len);
	cr_assert_eq(fi_tsendv(a->ep, iov, nonsenses, 2, a->peer, 3, NULL), 0);
	expect_moved(len);
	treceive(len);
	cr_assert_eq(fi_tsenddata(a->ep, source, len, nonsense, 5, a->peer, 3, NULL), 0);
	expect_moved(len);
	treceive(len);
	cr_assert_eq(fi_tsendmsg(a->ep, &msg, FI_COMPLETION), 0);
	expect_moved(len);
}

Test(ignored_desc, tagged_messages_sent)
{
	tsend_each_way(8);
	tsend_each_way(LEN);
}

static void tsend_plainly(size_t len)
{
	cr_assert_eq(fi_tsend(a->ep, source, len, NULL, a->peer, 3, NULL), 0);
	expect_moved(len);
}

Test(ignored_desc, tagged_messages_received)
{
	struct fi_msg_tagged msg = {.msg_iov = into,
				    .desc = nonsenses,
				    .iov_count = 2,
				    .addr = FI_ADDR_UNSPEC,
				    .tag = 3};

	treceive(LEN);
	tsend_plainly(LEN);
	cr_assert_eq(fi_trecvv(b->ep, into, nonsenses, 2, FI_ADDR_UNSPEC, 3, 0, NULL), 0);
	tsend_plainly(LEN);
	cr_assert_eq(fi_trecvmsg(b->ep, &msg, FI_COMPLETION), 0);
	tsend_plainly(LEN);
}

Test(ignored_desc, claimed_messages)
{
	struct fi_context context;
	struct fi_msg_tagged msg = {.msg_iov = into,
				    .desc = nonsenses,
				    .iov_count = 2,
				    .addr = FI_ADDR_UNSPEC,
				    .tag = 3,
				    .context = &context};

	cr_assert_eq(fi_tsend(a->ep, source, LEN, NULL, a->peer, 3, NULL), 0);
	ep_pair_run(&pair, 50);
	cr_assert_eq(fi_trecvmsg(b->ep, &msg, FI_PEEK | FI_CLAIM), 0);
	ep_pair_comp(&pair, b);
	cr_assert_eq(fi_trecvmsg(b->ep, &msg, FI_CLAIM), 0);
	expect_moved(LEN);
}

static void expect_written(void)
{
	ep_pair_comp(&pair, a);
	cr_assert_eq(memcmp(source, rma, LEN), 0);
	memset(rma, 0, LEN);
}

Test(ignored_desc, writes)
{
	uint64_t addr = (uintptr_t)rma, key = fi_mr_key(mr);
	struct fi_rma_iov to = {addr, LEN, key};
	struct fi_msg_rma msg = {.msg_iov = from,
				 .desc = nonsenses,
				 .iov_count = 2,
				 .addr = a->peer,
				 .rma_iov = &to,
				 .rma_iov_count = 1};

	cr_assert_eq(fi_write(a->ep, source, LEN, nonsense, a->peer, addr, key, NULL), 0);
	expect_written();
	cr_assert_eq(fi_writev(a->ep, from, nonsenses, 2, a->peer, addr, key, NULL), 0);
	expect_written();
	cr_assert_eq(fi_writemsg(a->ep, &msg, FI_COMPLETION), 0);
	expect_written();
	cr_assert_eq(fi_writedata(a->ep, source, LEN, nonsense, 5, a->peer, addr, key, NULL), 0);
	ep_pair_comp(&pair, b);
	expect_written();
}

static void expect_read(void)
{
	ep_pair_comp(&pair, a);
	cr_assert_eq(memcmp(source, target, LEN), 0);
	memset(target, 0, LEN);
}

Test(ignored_desc, reads)
{
	uint64_t addr = (uintptr_t)rma, key = fi_mr_key(mr);
	struct fi_rma_iov at = {addr, LEN, key};
	struct fi_msg_rma msg = {.msg_iov = into,
				 .desc = nonsenses,
				 .iov_count = 2,
				 .addr = a->peer,
				 .rma_iov = &at,
				 .rma_iov_count = 1};

	memcpy(rma, source, LEN);
	cr_assert_eq(fi_read(a->ep, target, LEN, nonsense, a->peer, addr, key, NULL), 0);
	expect_read();
	cr_assert_eq(fi_readv(a->ep, into, nonsenses, 2, a->peer, addr, key, NULL), 0);
	expect_read();
	cr_assert_eq(fi_readmsg(a->ep, &msg, FI_COMPLETION), 0);
	expect_read();
}

/* The target has executed one more atomic, and its value is now value. */
static void expect_value(uint64_t value)
{
	ep_pair_comp(&pair, a);
	cr_assert_eq(*(uint64_t *)rma, value);
}

Test(ignored_desc, atomics)
{
	static _Alignas(8) char zero[8];
	uint64_t addr = (uintptr_t)rma, key = fi_mr_key(mr);
	struct fi_ioc ioc = {&operand, 1}, comparev = {&compare, 1}, resultv = {&result, 1};
	struct fi_rma_ioc to = {addr, 1, key};
	struct fi_msg_atomic msg = {
		.msg_iov = &ioc, .desc = nonsenses, .iov_count = 1, .addr = a->peer, .rma_iov = &to,
		.rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM};

	memcpy(rma, zero, 8);
	operand = 1;
	cr_assert_eq(fi_atomic(a->ep, &operand, 1, nonsense, a->peer, addr, key, FI_UINT64, FI_SUM,
			       NULL),
		     0);
	expect_value(1);
	cr_assert_eq(fi_atomicv(a->ep, &ioc, nonsenses, 1, a->peer, addr, key, FI_UINT64, FI_SUM,
				NULL),
		     0);
	expect_value(2);
	cr_assert_eq(fi_atomicmsg(a->ep, &msg, FI_COMPLETION), 0);
	expect_value(3);
	cr_assert_eq(fi_fetch_atomic(a->ep, &operand, 1, nonsense, &result, nonsense, a->peer, addr,
				     key, FI_UINT64, FI_SUM, NULL),
		     0);
	expect_value(4);
	cr_assert_eq(fi_fetch_atomicv(a->ep, &ioc, nonsenses, 1, &resultv, nonsenses, 1, a->peer,
				      addr, key, FI_UINT64, FI_SUM, NULL),
		     0);
	expect_value(5);
	cr_assert_eq(fi_fetch_atomicmsg(a->ep, &msg, &resultv, nonsenses, 1, FI_COMPLETION), 0);
	expect_value(6);
	cr_expect_eq(result, 5);
	compare = 6;
	operand = 10;
	cr_assert_eq(fi_compare_atomic(a->ep, &operand, 1, nonsense, &compare, nonsense, &result,
				       nonsense, a->peer, addr, key, FI_UINT64, FI_CSWAP, NULL),
		     0);
	expect_value(10);
	compare = 10;
	operand = 11;
	cr_assert_eq(fi_compare_atomicv(a->ep, &ioc, nonsenses, 1, &comparev, nonsenses, 1,
					&resultv, nonsenses, 1, a->peer, addr, key, FI_UINT64,
					FI_CSWAP, NULL),
		     0);
	expect_value(11);
	compare = 11;
	operand = 12;
	msg.op = FI_CSWAP;
	cr_assert_eq(fi_compare_atomicmsg(a->ep, &msg, &comparev, nonsenses, 1, &resultv, nonsenses,
					  1, FI_COMPLETION),
		     0);
	expect_value(12);
	cr_expect_eq(result, 11);
}

static uint64_t registrations(void)
{
	struct fake_net_stats stats;

	fake_net_stats(&stats);
	return stats.regs;
}

/* Returns the registrations that a write of registered memory costs, with the descriptor. */
static uint64_t cost_of_a_write(uint32_t version, int mr_mode)
{
	struct fid_mr *local;
	uint64_t before;

	open_pair(version, mr_mode);
	cr_assert_eq(fi_mr_reg(pair.fix.domain, source, LEN, FI_WRITE, 0, 0, 0, &local, NULL), 0);
	before = registrations();
	cr_assert_eq(fi_write(a->ep, source, LEN, fi_mr_desc(local), a->peer, (uintptr_t)rma,
			      fi_mr_key(mr), NULL), 0);
	expect_written();
	before = registrations() - before;
	cr_expect_eq(fi_close(&local->fid), 0);
	teardown();
	return before;
}

/* fi_mr(3) of 1.22: descriptors are "valid or NULL", with and without FI_MR_LOCAL. */
Test(used_desc, of_applications_that_set_the_bit_or_asked_for_1_22)
{
	cr_expect_eq(cost_of_a_write(FI_VERSION(1, 17), FI_MR_LOCAL), 0);
	cr_expect_eq(cost_of_a_write(FI_VERSION(1, 22), 0), 0);
	cr_expect_eq(cost_of_a_write(FI_VERSION(2, 1), FI_MR_LOCAL), 0);
	cr_expect_eq(cost_of_a_write(FI_VERSION(1, 21), 0), 1);
	cr_expect_eq(cost_of_a_write(FI_VERSION(1, 4), 0), 1);
}
