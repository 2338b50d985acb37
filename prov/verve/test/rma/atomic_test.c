/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics by the processor as their initiator sees them: the values that come back, the counters,
 * how long they may be, and the arguments that are refused. atomic_target_test.c has the target,
 * atomic_flow_test.c many atomics at once.
 */
#include <string.h>

#include "api/domain.h"
#include "api/ep.h"
#include "atomic_fixture.h"
#include "base/config.h"
#include "rma/amo.h"

Test(atomic, updates_before_the_connection_is_up)
{
	uint64_t value = 5;

	cr_assert_eq(atomic_add(3, &value, &value), 0);
	cr_assert_eq(atomic_add(3, &value, &words), 0);
	atomic_expect(2, 0);
	cr_expect_eq(us->last.op_context, &words);
	cr_expect_eq(us->last.flags, FI_ATOMIC | FI_WRITE);
	cr_expect_eq(words[3], 10);
	atomic_expect_counts(2, 0);
}

Test(atomic, fetches_what_was_there)
{
	uint64_t value = 5, result = 0;

	words[2] = 37;
	cr_assert_eq(atomic_fetch(2, &value, &result, FI_SUM), 0);
	atomic_expect(1, 0);
	cr_expect_eq(us->last.flags, FI_ATOMIC | FI_READ);
	cr_expect_eq(us->last.op_context, &result);
	cr_expect_eq(result, 37);
	cr_expect_eq(words[2], 42);
	cr_assert_eq(atomic_fetch(2, NULL, &result, FI_ATOMIC_READ), 0);
	atomic_expect(2, 0);
	cr_expect_eq(result, 42);
	atomic_expect_counts(0, 2);
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
		atomic_expect(i + 1, 0);
		cr_expect_eq(result, 37);
		cr_expect_eq(words[2], i ? 5 : 37);
	}
	atomic_expect_counts(0, 2);
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
	atomic_expect(1, 0);
	for (uint32_t i = 0; i < 6; i++) {
		cr_expect_eq(result[i], 10 * (i + 1));
		cr_expect_eq(*places[i], compare[i] ? i + 1 : 10 * (i + 1));
	}
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
	atomic_expect(1, 0);
	cr_assert_arr_eq(words, operand, count * 8);
	cr_expect_eq(words[count], 0);
	cr_expect_eq(fi_compare_atomic(us->ep, operand, count + 1, NULL, compare, NULL, result,
				       NULL, us->peer, at(0), key, FI_UINT64, FI_CSWAP, NULL),
		     -FI_EMSGSIZE);

	cr_assert_eq(fi_fetch_atomicvalid(us->ep, FI_UINT64, FI_ATOMIC_READ, &count), 0);
	cr_assert_eq(count, verve_config.eager_size / 8);
	cr_assert_eq(fi_fetch_atomic(us->ep, NULL, count, NULL, result, NULL, us->peer, at(0), key,
				     FI_UINT64, FI_ATOMIC_READ, NULL), 0);
	atomic_expect(2, 0);
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

	cr_expect_eq(atomic_fetch(0, &value, &result, (enum fi_op)VERVE_AMO_DIFF), -FI_EOPNOTSUPP);
	verve_domain_from_fid(&fix.domain->fid)->api_version = FI_VERSION(2, 0);
	cr_expect_eq(fi_atomicvalid(us->ep, FI_UINT64, (enum fi_op)VERVE_AMO_DIFF, &count), 0);
	words[0] = 3;
	cr_assert_eq(atomic_fetch(0, &value, &result, (enum fi_op)VERVE_AMO_DIFF), 0);
	atomic_expect(1, 0);
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
	atomic_settle();
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
