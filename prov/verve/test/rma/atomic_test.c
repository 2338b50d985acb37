/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics between two endpoints on the fake net, through libfabric's calls: the values that come
 * back, the counters, the side that refuses an atomic and the reason, and the end of atomics whose
 * link breaks. Requests that no honest initiator sends are posted by hand.
 */
#include <criterion/criterion.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <string.h>

#include "api/domain.h"
#include "api/ep.h"
#include "../support/fake_memory.h"
#include "api/fixture.h"
#include "base/config.h"
#include "engine/engine.h"
#include "rma/atomic.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/xport.h"

enum { WORDS = 16384, CNTR_WRITE = 0, CNTR_READ, CNTR_REMOTE_WRITE, CNTR_REMOTE_READ, CNTRS };

static const uint64_t patience = 60000000000; /* simulated ns */

struct end {
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *cntr[CNTRS];
	struct fid_ep *ep;
	fi_addr_t peer;
	int completions;
	struct fi_cq_tagged_entry last;
	int error; /* errno of the last completion, if it was an error; or 0 */
	char reason[128];
};

static struct fixture fix;
static struct end ends[2], *const us = &ends[0], *const them = &ends[1];
static uint64_t words[WORDS]; /* the target's memory */
static struct fid_mr *mr;
static uint64_t key;

static void open_end(struct end *end)
{
	static const uint64_t events[CNTRS] = {FI_WRITE, FI_READ, FI_REMOTE_WRITE, FI_REMOTE_READ};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP};

	memset(end, 0, sizeof(*end));
	cr_assert_eq(fi_av_open(fix.domain, &av_attr, &end->av, NULL), 0);
	cr_assert_eq(fi_cq_open(fix.domain, &cq_attr, &end->cq, NULL), 0);
	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &end->ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(end->ep, &end->av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	for (int i = 0; i < CNTRS; i++) {
		cr_assert_eq(fi_cntr_open(fix.domain, &cntr_attr, &end->cntr[i], NULL), 0);
		cr_assert_eq(fi_ep_bind(end->ep, &end->cntr[i]->fid, events[i]), 0);
	}
	cr_assert_eq(fi_enable(end->ep), 0);
}

static void connect_ends(void)
{
	char name[64];

	for (int i = 0; i < 2; i++) {
		size_t len = sizeof(name);

		cr_assert_eq(fi_getname(&ends[1 - i].ep->fid, name, &len), 0);
		cr_assert_eq(fi_av_insert(ends[i].av, name, 1, &ends[i].peer, 0, NULL), 1);
	}
}

static void reg(uint64_t access)
{
	cr_assert_eq(fi_mr_reg(fix.domain, words, sizeof(words), access, 0, 0, 0, &mr, NULL), 0);
	key = fi_mr_key(mr);
}

static void setup(void)
{
	fixture_init(&fix, FI_VERSION(1, 17));
	fixture_open_domain(&fix);
	open_end(us);
	open_end(them);
	connect_ends();
	memset(words, 0, sizeof(words));
	reg(FI_REMOTE_READ | FI_REMOTE_WRITE);
}

static void progress(struct end *end)
{
	struct fi_cq_err_entry error = {0};
	ssize_t ret = fi_cq_read(end->cq, &end->last, 1);

	if (ret == 1) {
		end->completions++;
		end->error = 0;
	} else if (ret == -FI_EAVAIL) {
		error.err_data = end->reason;
		error.err_data_size = sizeof(end->reason);
		cr_assert_eq(fi_cq_readerr(end->cq, &error, 0), 1);
		end->last = (struct fi_cq_tagged_entry){.op_context = error.op_context,
							.flags = error.flags};
		end->error = error.err;
		end->completions++;
	} else {
		cr_assert_eq(ret, -FI_EAGAIN);
	}
}

static void turn(void *arg)
{
	(void)arg;
	if (us->ep)
		progress(us);
	if (them->ep)
		progress(them);
}

static void run(void)
{
	turn(NULL);
	fake_net_advance(fake_net_next() == UINT64_MAX ? 1000000
						       : fake_net_next() - fake_net_time());
}

/* Expects our endpoint to have completed count operations since it opened, the last with error. */
static void expect(int count, int error)
{
	uint64_t end = fake_net_time() + patience;

	while (us->completions < count) {
		cr_assert_lt(fake_net_time(), end, "an operation never completes");
		run();
	}
	cr_assert_eq(us->completions, count);
	cr_assert_eq(us->error, error, "error %d (%s)", us->error, us->reason);
}

static void settle(void)
{
	for (int i = 0; i < 200; i++)
		run();
}

static void close_end(struct end *end)
{
	struct fid_ep *ep = end->ep;

	if (!ep)
		return;
	end->ep = NULL;
	fake_net_on_pause(turn, NULL);
	cr_assert_eq(fi_close(&ep->fid), 0);
	fake_net_on_pause(NULL, NULL);
}

static void teardown(void)
{
	close_end(us);
	close_end(them);
	for (int i = 0; i < 2; i++) {
		for (int j = 0; j < CNTRS; j++)
			cr_expect_eq(fi_close(&ends[i].cntr[j]->fid), 0);
		cr_expect_eq(fi_close(&ends[i].cq->fid), 0);
		cr_expect_eq(fi_close(&ends[i].av->fid), 0);
	}
	if (mr)
		cr_expect_eq(fi_close(&mr->fid), 0);
	fixture_fini(&fix);
}

TestSuite(atomic, .init = setup, .fini = teardown);

static uint64_t at(size_t word)
{
	return (uintptr_t)&words[word];
}

static ssize_t add(size_t word, const uint64_t *value, void *context)
{
	return fi_atomic(us->ep, value, 1, NULL, us->peer, at(word), key, FI_UINT64, FI_SUM,
			 context);
}

static ssize_t fetch(size_t word, const uint64_t *value, uint64_t *result, enum fi_op op)
{
	return fi_fetch_atomic(us->ep, value, 1, NULL, result, NULL, us->peer, at(word), key,
			       FI_UINT64, op, result);
}

static void expect_counts(uint64_t write, uint64_t read)
{
	cr_expect_eq(fi_cntr_read(us->cntr[CNTR_WRITE]), write);
	cr_expect_eq(fi_cntr_read(us->cntr[CNTR_READ]), read);
	cr_expect_eq(fi_cntr_read(them->cntr[CNTR_REMOTE_WRITE]), write);
	cr_expect_eq(fi_cntr_read(them->cntr[CNTR_REMOTE_READ]), read);
}

Test(atomic, updates_before_the_connection_is_up)
{
	uint64_t value = 5;

	cr_assert_eq(add(3, &value, &value), 0);
	cr_assert_eq(add(3, &value, &words), 0);
	expect(2, 0);
	cr_expect_eq(us->last.op_context, &words);
	cr_expect_eq(us->last.flags, FI_ATOMIC | FI_WRITE);
	cr_expect_eq(words[3], 10);
	expect_counts(2, 0);
}

Test(atomic, fetches_what_was_there)
{
	uint64_t value = 5, result = 0;

	words[2] = 37;
	cr_assert_eq(fetch(2, &value, &result, FI_SUM), 0);
	expect(1, 0);
	cr_expect_eq(us->last.flags, FI_ATOMIC | FI_READ);
	cr_expect_eq(us->last.op_context, &result);
	cr_expect_eq(result, 37);
	cr_expect_eq(words[2], 42);
	cr_assert_eq(fetch(2, NULL, &result, FI_ATOMIC_READ), 0);
	expect(2, 0);
	cr_expect_eq(result, 42);
	expect_counts(0, 2);
}

Test(atomic, compares)
{
	uint64_t value = 5, compare = 36, result = 0;

	words[2] = 37;
	for (int i = 0; i < 2; i++, compare++) {
		cr_assert_eq(fi_compare_atomic(us->ep, &value, 1, NULL, &compare, NULL, &result,
					       NULL, us->peer, at(2), key, FI_UINT64, FI_CSWAP,
					       NULL),
			     0);
		expect(i + 1, 0);
		cr_expect_eq(result, 37);
		cr_expect_eq(words[2], i ? 5 : 37);
	}
	expect_counts(0, 2);
}

/* Operands, results and remote memory are cut into pieces of different sizes. */
Test(atomic, vectors_are_cut_anyhow)
{
	uint32_t operand[6] = {1, 2, 3, 4, 5, 6}, compare[6] = {10, 0, 30, 0, 50, 60},
		 result[6] = {0};
	uint32_t *target = (uint32_t *)words;
	struct fi_ioc iov[2] = {{operand, 2}, {operand + 2, 4}};
	struct fi_ioc comparev[3] = {{compare, 1}, {compare + 1, 0}, {compare + 1, 5}};
	struct fi_ioc resultv[2] = {{result, 5}, {result + 5, 1}};
	struct fi_rma_ioc remote[4] = {{at(0), 1, key}, {at(10), 3, key}, {at(20), 0, key},
				       {at(30), 2, key}};
	uint32_t *places[6] = {target,	    target + 20, target + 21,
			       target + 22, target + 60, target + 61};
	struct fi_msg_atomic msg = {
		.msg_iov = iov, .iov_count = 2, .addr = us->peer, .rma_iov = remote,
		.rma_iov_count = 4, .datatype = FI_UINT32, .op = FI_CSWAP, .context = &msg,
	};

	for (uint32_t i = 0; i < 6; i++)
		*places[i] = 10 * (i + 1);
	cr_assert_eq(fi_compare_atomicmsg(us->ep, &msg, comparev, NULL, 3, resultv, NULL, 2,
					  FI_DELIVERY_COMPLETE | FI_INJECT), 0);
	memset(operand, 0, sizeof(operand));
	expect(1, 0);
	for (uint32_t i = 0; i < 6; i++) {
		cr_expect_eq(result[i], 10 * (i + 1));
		cr_expect_eq(*places[i], compare[i] ? i + 1 : 10 * (i + 1));
	}
}

Test(atomic, injected_ones_are_silent_and_done_before_close)
{
	uint64_t value = 1;

	for (int i = 0; i < 100; i++) {
		while (fi_inject_atomic(us->ep, &value, 1, us->peer, at(0), key, FI_UINT64, FI_SUM))
			run();
	}
	value = 1000;
	close_end(us);
	cr_expect_eq(words[0], 100);
	cr_expect_eq(us->completions, 0);
	/* The target counts the atomics; an endpoint that closes reports no more completions. */
	cr_expect_eq(fi_cntr_read(them->cntr[CNTR_REMOTE_WRITE]), 100);
}

Test(atomic, as_many_as_valid_says_and_no_more)
{
	static uint64_t operand[WORDS], compare[WORDS], result[WORDS];
	size_t count = 0;

	cr_assert_eq(fi_compare_atomicvalid(us->ep, FI_UINT64, FI_CSWAP, &count), 0);
	cr_assert_eq(count, verve_config.eager_size / 16);
	for (size_t i = 0; i < count; i++)
		operand[i] = i + 1;
	cr_assert_eq(fi_compare_atomic(us->ep, operand, count, NULL, compare, NULL, result, NULL,
				       us->peer, at(0), key, FI_UINT64, FI_CSWAP, NULL), 0);
	expect(1, 0);
	cr_assert_arr_eq(words, operand, count * 8);
	cr_expect_eq(words[count], 0);
	cr_expect_eq(fi_compare_atomic(us->ep, operand, count + 1, NULL, compare, NULL, result,
				       NULL, us->peer, at(0), key, FI_UINT64, FI_CSWAP, NULL),
		     -FI_EMSGSIZE);

	cr_assert_eq(fi_fetch_atomicvalid(us->ep, FI_UINT64, FI_ATOMIC_READ, &count), 0);
	cr_assert_eq(count, verve_config.eager_size / 8);
	cr_assert_eq(fi_fetch_atomic(us->ep, NULL, count, NULL, result, NULL, us->peer, at(0), key,
				     FI_UINT64, FI_ATOMIC_READ, NULL), 0);
	expect(2, 0);
	cr_assert_arr_eq(words, result, count * 8);
	cr_expect_eq(fi_fetch_atomic(us->ep, NULL, SIZE_MAX, NULL, result, NULL, us->peer, at(0),
				     key, FI_UINT64, FI_ATOMIC_READ, NULL),
		     -FI_EMSGSIZE);
}

Test(atomic, query_says_the_same_as_valid)
{
	for (int datatype = -1; datatype < FI_UINT128 + 5; datatype++)
		for (int op = -1; op < 25; op++) {
			struct fi_atomic_attr attr[3];
			size_t count[3];
			int ret[3] = {
				fi_atomicvalid(us->ep, datatype, op, &count[0]),
				fi_fetch_atomicvalid(us->ep, datatype, op, &count[1]),
				fi_compare_atomicvalid(us->ep, datatype, op, &count[2]),
			};
			uint64_t flags[3] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};

			for (int i = 0; i < 3; i++) {
				bool valid =
					op != VERVE_AMO_DIFF && verve_amo_is_valid(i, op, datatype);

				cr_assert_eq(ret[i], valid ? 0 : -FI_EOPNOTSUPP);
				cr_assert_eq(fi_query_atomic(fix.domain, datatype, op, &attr[i],
							     flags[i]),
					     ret[i]);
				if (!valid)
					continue;
				cr_assert_eq(attr[i].count, count[i]);
				cr_assert_eq(attr[i].size, verve_amo_size(datatype));
				cr_assert_eq(count[i] * attr[i].size * (i == 2 ? 2 : 1),
					     verve_config.eager_size);
			}
		}
}

Test(atomic, query_flags)
{
	struct fi_atomic_attr attr;

	cr_expect_eq(fi_query_atomic(fix.domain, FI_INT32, FI_SUM, &attr,
				     FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC), -FI_EBADFLAGS);
	cr_expect_eq(fi_query_atomic(fix.domain, FI_INT32, FI_SUM, &attr, FI_MULTICAST),
		     -FI_EBADFLAGS);
	cr_expect_eq(fi_query_atomic(fix.domain, FI_INT32, FI_SUM, &attr, FI_TAGGED),
		     -FI_EOPNOTSUPP);
}

Test(atomic, difference_for_applications_that_know_it)
{
	uint64_t value = 5, result = 0;
	size_t count;

	cr_expect_eq(fetch(0, &value, &result, (enum fi_op)VERVE_AMO_DIFF), -FI_EOPNOTSUPP);
	verve_domain_from_fid(&fix.domain->fid)->api_version = FI_VERSION(2, 0);
	cr_expect_eq(fi_atomicvalid(us->ep, FI_UINT64, (enum fi_op)VERVE_AMO_DIFF, &count), 0);
	words[0] = 3;
	cr_assert_eq(fetch(0, &value, &result, (enum fi_op)VERVE_AMO_DIFF), 0);
	expect(1, 0);
	cr_expect_eq(result, 3);
	cr_expect_eq(words[0], (uint64_t)-2);
}

Test(atomic, bad_arguments_are_refused_at_once)
{
	static uint64_t buf[WORDS];
	struct fi_ioc iov[5] = {{buf, 1}, {buf, 1}, {buf, 1}, {buf, 1}, {buf, 1}};
	struct fi_rma_ioc remote = {at(0), 1, key};
	struct fi_msg_atomic msg = {
		.msg_iov = iov, .iov_count = 1, .addr = us->peer, .rma_iov = &remote,
		.rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM,
	};
	size_t inject = fix.info->tx_attr->inject_size / 8;

	cr_expect_eq(fi_atomicmsg(us->ep, &msg, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	cr_expect_eq(fi_atomicmsg(us->ep, &msg, FI_TAGGED), -FI_EBADFLAGS);
	cr_expect_eq(fi_fetch_atomicmsg(us->ep, &msg, iov, NULL, 1, FI_PEEK), -FI_EBADFLAGS);
	cr_expect_eq(fi_compare_atomicmsg(us->ep, &msg, iov, NULL, 1, iov, NULL, 1, FI_CLAIM),
		     -FI_EBADFLAGS);
	cr_expect_eq(fi_fetch_atomicmsg(us->ep, &msg, iov, NULL, 2, 0), -FI_EINVAL,
		     "longer result");
	cr_expect_eq(fi_compare_atomicmsg(us->ep, &msg, iov, NULL, 1, iov, NULL, 1, 0),
		     -FI_EOPNOTSUPP);
	msg.op = FI_CSWAP;
	cr_expect_eq(fi_compare_atomicmsg(us->ep, &msg, iov, NULL, 2, iov, NULL, 1, 0), -FI_EINVAL);
	cr_expect_eq(fi_atomicmsg(us->ep, &msg, 0), -FI_EOPNOTSUPP);
	msg.op = FI_SUM;
	msg.iov_count = 5;
	cr_expect_eq(fi_atomicmsg(us->ep, &msg, 0), -FI_EINVAL, "too many segments");
	msg.iov_count = 2;
	cr_expect_eq(fi_atomicmsg(us->ep, &msg, 0), -FI_EINVAL, "longer than the target");
	msg.iov_count = 1;
	msg.rma_iov_count = 0;
	cr_expect_eq(fi_atomicmsg(us->ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 5;
	cr_expect_eq(fi_atomicmsg(us->ep, &msg, 0), -FI_EINVAL);
	cr_expect_eq(fi_atomic(us->ep, buf, 0, NULL, us->peer, at(0), key, FI_UINT64, FI_SUM, NULL),
		     -FI_EINVAL);
	cr_expect_eq(fi_atomic(us->ep, buf, 1, NULL, 99, at(0), key, FI_UINT64, FI_SUM, NULL),
		     -FI_EINVAL);
	cr_expect_eq(
		fi_inject_atomic(us->ep, buf, inject + 1, us->peer, at(0), key, FI_UINT64, FI_SUM),
		-FI_EMSGSIZE);
	cr_expect_eq(fi_inject_atomic(us->ep, buf, inject, us->peer, at(0), key, FI_UINT64, FI_SUM),
		     0);
	settle();
	cr_expect_eq(us->completions, 0);
}

Test(atomic, nothing_before_enable)
{
	struct fid_ep *ep;
	uint64_t value = 0;
	size_t count;

	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &ep, NULL), 0);
	cr_expect_eq(fi_inject_atomic(ep, &value, 1, 0, 0, 0, FI_UINT64, FI_SUM), -FI_EOPBADSTATE);
	cr_expect_eq(fi_atomicvalid(ep, FI_UINT64, FI_SUM, &count), 0,
		     "no state is needed to say so");
	cr_expect_eq(fi_close(&ep->fid), 0);
}

/* Expects a refusal. The next atomic works: a refusal fails only its own operation. */
static void expect_refusal(int count, const char *reason)
{
	expect(count, FI_EACCES);
	cr_expect_not_null(strstr(us->reason, reason), "%s", us->reason);
}

Test(atomic, target_refuses_wrong_keys_ranges_and_access)
{
	uint64_t value = 1, result = 77, good = key;
	struct fid_mr *full = mr;

	key ^= 0x5a5a00;
	cr_assert_eq(add(0, &value, NULL), 0);
	expect_refusal(1, "no region");
	key = good;
	cr_assert_eq(add(WORDS, &value, NULL), 0);
	expect_refusal(2, "beyond");
	cr_assert_eq(fi_atomic(us->ep, &value, 1, NULL, us->peer, at(WORDS) - 7, key, FI_UINT64,
			       FI_SUM, NULL),
		     0);
	expect_refusal(3, "beyond");
	cr_assert_eq(fi_atomic(us->ep, &value, 1, NULL, us->peer, at(0) - 1, key, FI_UINT64, FI_SUM,
			       NULL), 0);
	expect_refusal(4, "beyond");
	cr_assert_eq(fi_atomic(us->ep, &value, 1, NULL, us->peer, UINT64_MAX - 3, key, FI_UINT64,
			       FI_SUM, NULL), 0);
	expect_refusal(5, "beyond");

	reg(FI_REMOTE_READ);
	cr_assert_eq(add(0, &value, NULL), 0);
	expect_refusal(6, "grant");
	cr_assert_eq(fetch(0, &value, &result, FI_ATOMIC_WRITE), 0);
	expect_refusal(7, "grant");
	cr_assert_eq(fetch(0, NULL, &result, FI_ATOMIC_READ), 0);
	expect(8, 0);
	cr_expect_eq(result, 0);
	cr_assert_eq(fi_close(&mr->fid), 0);

	reg(FI_REMOTE_WRITE);
	cr_assert_eq(fetch(0, NULL, &result, FI_ATOMIC_READ), 0);
	expect_refusal(9, "grant");
	cr_assert_eq(add(0, &value, NULL), 0);
	expect(10, 0);
	cr_assert_eq(fi_close(&mr->fid), 0);
	cr_assert_eq(add(0, &value, NULL), 0);
	expect_refusal(11, "no region");
	mr = full;
	for (size_t i = 0; i < WORDS; i++)
		cr_assert_eq(words[i], i == 0);
	cr_expect_eq(fi_cntr_readerr(us->cntr[CNTR_WRITE]), 7);
	cr_expect_eq(fi_cntr_readerr(us->cntr[CNTR_READ]), 2);
	expect_counts(1, 1);
}

/* One region of two segments, the later one first: words 8 to 15, then 0 to 2. */
static void reg_two(size_t last_len)
{
	struct iovec iov[2] = {{words + 8, 64}, {words, last_len}};

	cr_assert_eq(fi_close(&mr->fid), 0);
	cr_assert_eq(fi_mr_regv(fix.domain, iov, 2, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr,
				NULL), 0);
	key = fi_mr_key(mr);
}

Test(atomic, goes_on_in_the_next_segment)
{
	uint64_t values[4] = {1, 2, 3, 4}, results[4];

	reg_two(24);
	for (size_t i = 0; i < 16; i++)
		words[i] = 100 * i;
	cr_assert_eq(fi_fetch_atomic(us->ep, values, 4, NULL, results, NULL, us->peer, at(14), key,
				     FI_UINT64, FI_SUM, NULL), 0);
	expect(1, 0);
	cr_expect_eq(words[14], 1401);
	cr_expect_eq(words[15], 1502);
	cr_expect_eq(words[0], 3);
	cr_expect_eq(words[1], 104);
	cr_expect_eq(words[2], 200);
	cr_expect_eq(results[0], 1400);
	cr_expect_eq(results[1], 1500);
	cr_expect_eq(results[2], 0);
	cr_expect_eq(results[3], 100);
	cr_assert_eq(fi_fetch_atomic(us->ep, values, 4, NULL, results, NULL, us->peer, at(1), key,
				     FI_UINT64, FI_SUM, NULL), 0);
	expect_refusal(2, "beyond");
	cr_expect_eq(words[1], 104);
}

Test(atomic, elements_in_two_segments_are_refused)
{
	uint64_t values[2] = {1, 2};

	reg_two(24);
	cr_assert_eq(fi_atomic(us->ep, values, 2, NULL, us->peer, at(14) + 4, key, FI_UINT64,
			       FI_SUM, NULL), 0);
	expect(1, FI_EINVAL);
	for (size_t i = 0; i < WORDS; i++)
		cr_assert_eq(words[i], 0);
	cr_assert_eq(fi_atomic(us->ep, values, 3, NULL, us->peer, at(15) + 4, key, FI_UINT32,
			       FI_SUM, NULL), 0);
	expect(2, 0);
	cr_expect_eq(words[15], 1ull << 32);
	cr_expect_eq(words[0], 2ull << 32);
}

/* A request is executed on all of its segments or on none. */
Test(atomic, one_bad_segment_spoils_all)
{
	uint64_t values[2] = {1, 1};
	struct fi_ioc iov = {values, 2};
	struct fi_rma_ioc remote[2] = {{at(0), 1, key}, {at(WORDS), 1, key}};
	struct fi_msg_atomic msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = us->peer, .rma_iov = remote,
		.rma_iov_count = 2, .datatype = FI_UINT64, .op = FI_SUM,
	};

	cr_assert_eq(fi_atomicmsg(us->ep, &msg, FI_COMPLETION), 0);
	expect_refusal(1, "beyond");
	cr_expect_eq(words[0], 0);
}

static uint32_t requests_posted(void)
{
	struct verve_xport *xport = verve_engine_lock(verve_ep_from_fid(us->ep)->engine);
	uint32_t posted = xport->peers->link->produced;

	verve_engine_unlock(verve_ep_from_fid(us->ep)->engine);
	return posted;
}

Test(atomic, a_fenced_one_waits_for_those_before_it)
{
	uint64_t value = 1;
	struct fi_ioc iov = {&value, 1};
	struct fi_rma_ioc remote = {at(0), 1, key};
	struct fi_msg_atomic msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = us->peer, .rma_iov = &remote,
		.rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM,
	};
	uint32_t before;

	cr_assert_eq(add(0, &value, NULL), 0);
	expect(1, 0);
	before = requests_posted();
	cr_assert_eq(add(0, &value, NULL), 0);
	cr_assert_eq(fi_atomicmsg(us->ep, &msg, FI_FENCE), 0);
	cr_assert_eq(add(0, &value, NULL), 0);
	cr_expect_eq(requests_posted(), before + 1);
	expect(4, 0);
	cr_expect_eq(requests_posted(), before + 3);
	cr_expect_eq(words[0], 4);
}

Test(atomic, each_sees_what_was_before_it)
{
	static char big[sizeof(words)];
	uint64_t value = 3, two = 2, result[3] = {0};
	struct fi_ioc iov = {&value, 1}, resultv = {&result[0], 1};
	struct fi_rma_ioc remote = {at(WORDS - 1), 1, key};
	struct fi_msg_atomic msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = us->peer, .rma_iov = &remote,
		.rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_PROD,
	};

	memset(big, 0, sizeof(big));
	big[sizeof(big) - 8] = 7;
	cr_assert_eq(fi_write(us->ep, big, sizeof(big), NULL, us->peer, at(0), key, NULL), 0);
	cr_assert_eq(fi_fetch_atomicmsg(us->ep, &msg, &resultv, NULL, 1, FI_FENCE | FI_COMPLETION),
		     0);
	cr_assert_eq(fetch(WORDS - 1, &two, &result[1], FI_SUM), 0);
	cr_assert_eq(fetch(WORDS - 1, NULL, &result[2], FI_ATOMIC_READ), 0);
	expect(4, 0);
	cr_expect_eq(result[0], 7);
	cr_expect_eq(result[1], 21);
	cr_expect_eq(result[2], 23);
}

/* The longest requests and replies, many more than the queues have room for. */
Test(atomic, a_flood_loses_nothing)
{
	enum { OPS = 600, ELEMENTS = 100 };
	static uint64_t values[ELEMENTS], results[2 * OPS][ELEMENTS];

	for (int i = 0; i < ELEMENTS; i++)
		values[i] = 1;
	/* Both sides send at once, each to other words. */
	for (int i = 0; i < OPS; i++)
		for (int j = 0; j < 2; j++)
			while (fi_fetch_atomic(ends[j].ep, values, ELEMENTS, NULL,
					       results[2 * i + j], NULL, ends[j].peer,
					       at(j * ELEMENTS), key, FI_UINT64, FI_SUM,
					       NULL) == -FI_EAGAIN)
				run();
	expect(OPS, 0);
	while (them->completions < OPS)
		run();
	for (int i = 0; i < 2 * ELEMENTS; i++)
		cr_assert_eq(words[i], OPS);
	for (int i = 0; i < 2 * OPS; i++)
		for (int j = 0; j < ELEMENTS; j++)
			cr_assert_eq(results[i][j], (uint64_t)i / 2);
}

/* The peer ends while requests wait for its reply: they fail, and none is executed twice. */
Test(atomic, a_lost_reply_is_an_error_and_nothing_is_repeated)
{
	struct verve_xport *xport;
	uint64_t value = 1;

	cr_assert_eq(add(0, &value, NULL), 0);
	expect(1, 0);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(add(1, &value, NULL), 0);
	/*
	 * The target's device has the requests, but its application has not polled. It may execute
	 * them after the link broke; then no reply arrives.
	 */
	for (int i = 0; i < 20; i++)
		fake_net_advance(1000);
	xport = verve_engine_lock(verve_ep_from_fid(us->ep)->engine);
	verve_link_break(xport, xport->peers->link, FI_ENOTCONN, 0, "broken by the test");
	verve_engine_unlock(verve_ep_from_fid(us->ep)->engine);
	expect(11, FI_ENOTCONN);
	settle();
	cr_expect_eq(us->completions, 11);
	cr_expect_leq(words[1], 10);
	/* A new connection works. */
	cr_assert_eq(add(2, &value, NULL), 0);
	expect(12, 0);
	cr_expect_eq(words[2], 1);
	cr_expect_leq(words[1], 10);
}

/* Sends a packet that no honest initiator sends over our connection to the peer. */
static void post_raw(const void *packet, size_t len)
{
	struct verve_xport *xport = verve_engine_lock(verve_ep_from_fid(us->ep)->engine);
	struct verve_link *link = xport->peers->link;
	struct verve_outgoing out;

	cr_assert(verve_link_reserve(xport, link, len, &out));
	memcpy(out.data, packet, len);
	cr_assert_eq(verve_link_post_packet(xport, link, &out, len, false, NULL), 0);
	verve_engine_unlock(verve_ep_from_fid(us->ep)->engine);
}

static void post_packet(struct verve_wire_packet *packet, size_t operands)
{
	struct verve_xport *xport = verve_engine_lock(verve_ep_from_fid(us->ep)->engine);
	unsigned char buf[4096] = {1};
	size_t len;

	verve_link_address(xport->peers->link, packet);
	len = verve_wire_encode(packet, buf);
	verve_engine_unlock(verve_ep_from_fid(us->ep)->engine);
	post_raw(buf, len + operands);
}

/*
 * The target answers each bad request and changes no memory. The replies name an operation that
 * does not exist.
 */
Test(atomic, bad_requests_break_nothing)
{
	uint64_t value = 1;

	cr_assert_eq(add(0, &value, NULL), 0);
	expect(1, 0);
	for (unsigned op = 0; op < 256; op += op < 25 ? 1 : 50)
		for (unsigned type = 0; type < 256; type += type < 18 ? 1 : 60)
			for (unsigned count = 0; count <= 4; count += 2) {
				struct verve_wire_packet packet = {
					.type = VERVE_WIRE_ATOMIC,
					.flags = type % 2 ? VERVE_WIRE_FETCH : 0,
					.amo_op = op, .amo_type = type, .segment_count = count,
					.op_id = 0xdead,
				};

				for (unsigned i = 0; i < count; i++)
					packet.segment[i] = (struct verve_wire_segment){
						at(0), op % 3 ? UINT64_MAX - 7 : 64 * i,
						(uint32_t)key};
				post_packet(&packet, 7);
				settle();
			}
	for (size_t i = 0; i < WORDS; i++)
		cr_assert_eq(words[i], i == 0);
	cr_assert_eq(add(0, &value, NULL), 0);
	expect(2, 0);
	cr_expect_eq(words[0], 2);
}

/* Replies for which no operation waits, or an operation that is no atomic. */
Test(atomic, stray_replies_are_ignored)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_ATOMIC_REPLY};
	uint64_t value = 1;

	cr_assert_eq(add(0, &value, NULL), 0);
	expect(1, 0);
	for (uint32_t id = 0; id < 40; id++) {
		packet.op_id = id;
		packet.status = id % 9;
		post_packet(&packet, id % 3);
		settle();
	}
	cr_expect_eq(them->completions, 0);
	cr_assert_eq(add(0, &value, NULL), 0);
	expect(2, 0);
}

/* The initiator sends no more than VERVE_ATOMIC_UNANSWERED requests without a reply. */
Test(atomic, unanswered_ones_are_bounded)
{
	static uint64_t found[4 * VERVE_ATOMIC_UNANSWERED];
	enum { COUNT = sizeof(found) / sizeof(found[0]) };
	struct verve_xport *xport;
	const struct verve_op *op;
	uint64_t value = 1;
	int active = 0;

	cr_assert_eq(add(0, &value, NULL), 0);
	expect(1, 0);
	for (int i = 0; i < COUNT; i++)
		cr_assert_eq(fi_fetch_atomic(us->ep, &value, 1, NULL, &found[i], NULL, us->peer,
					     at(1), key, FI_UINT64, FI_SUM, NULL), 0);
	/* The target's application makes no call, so the target makes no progress. */
	for (int i = 0; i < 1000; i++) {
		progress(us);
		fake_net_advance(10000);
	}
	cr_expect_eq(us->completions, 1);
	xport = verve_engine_lock(verve_ep_from_fid(us->ep)->engine);
	TAILQ_FOREACH(op, &xport->peers->active, link)
		active++;
	cr_expect_leq(active, VERVE_ATOMIC_UNANSWERED, "%d are under way", active);
	cr_expect_gt(active, 50);
	verve_engine_unlock(verve_ep_from_fid(us->ep)->engine);
	expect(1 + COUNT, 0);
	for (uint64_t i = 0; i < COUNT; i++)
		cr_assert_eq(found[i], i);
}

/* The target keeps no more replies than an honest peer can await. */
Test(atomic, who_asks_for_too_many_is_cut_off)
{
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_ATOMIC, .flags = VERVE_WIRE_FETCH, .op_id = 1,
		.amo_op = VERVE_AMO_READ, .amo_type = VERVE_AMO_UINT64, .segment_count = 1,
	};
	struct verve_xport *xport;
	struct verve_link *link;
	uint64_t value = 1;

	packet.segment[0] = (struct verve_wire_segment){at(0), 8, key};
	cr_assert_eq(add(0, &value, NULL), 0);
	expect(1, 0);
	xport = verve_engine_lock(verve_ep_from_fid(them->ep)->engine);
	link = xport->peers->link;
	link->may_send = false; /* so no reply can leave */
	for (int i = 0; i < VERVE_ATOMIC_UNANSWERED; i++)
		verve_atomic_execute(xport, link, &packet);
	cr_expect_not(link->broken);
	verve_atomic_execute(xport, link, &packet);
	cr_expect(link->broken, "it may go on");
	verve_engine_unlock(verve_ep_from_fid(them->ep)->engine);
}

/*
 * The processor cannot reach device memory: writes by the device succeed, atomics by the processor
 * are refused.
 */
Test(atomic, device_memory_is_left_to_devices)
{
	static _Alignas(4096) uint64_t device_memory[512];
	struct {
		int fd;
		uint64_t offset;
		size_t len;
		void *base_addr;
	} dmabuf = {fake_net_dmabuf(device_memory, sizeof(device_memory)), 0, 64,
		    (void *)0x7000000};
	struct fi_mr_attr attr = {.mr_iov = (const void *)&dmabuf, .iov_count = 1,
				  .access = FI_REMOTE_READ | FI_REMOTE_WRITE};
	struct fid_mr *device_mr;
	uint64_t value = 9;

	cr_assert_eq(fi_mr_regattr(fix.domain, &attr, 1ull << 40 /* FI_MR_DMABUF */, &device_mr),
		     0);
	cr_assert_eq(fi_atomic(us->ep, &value, 1, NULL, us->peer, 0x7000008, fi_mr_key(device_mr),
			       FI_UINT64, FI_SUM, NULL), 0);
	expect_refusal(1, "does not grant");
	cr_assert_eq(fi_write(us->ep, &value, 8, NULL, us->peer, 0x7000008, fi_mr_key(device_mr),
			      NULL), 0);
	expect(2, 0);
	cr_expect_eq(device_memory[1], 9);
	cr_expect_eq(fi_close(&device_mr->fid), 0);
}
