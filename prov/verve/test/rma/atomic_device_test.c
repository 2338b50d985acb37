/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics that the target's device executes, between two endpoints on the fake net, through
 * libfabric's calls: which exist and which are refused, the values that they return, the events and
 * counters at the target, and the end of atomics whose connection breaks.
 */
#include <rdma/fi_atomic.h>
#include <string.h>

#include "api/domain.h"
#include "api/ep.h"
#include "api/ep_pair.h"
#include "base/config.h"
#include "engine/engine.h"
#include "rma/amo.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/xport.h"

enum { WORDS = 64 };

static struct ep_pair pair;
static uint64_t words[WORDS] __attribute__((aligned(64)));
static struct fid_mr *mr;
static uint64_t key;

static void reg(uint64_t access)
{
	cr_assert_eq(fi_mr_reg(pair.fix.domain, words, sizeof(words), access, 0, 0, 0, &mr, NULL),
		     0);
	key = fi_mr_key(mr);
}

static void open_pair(uint64_t events)
{
	verve_config.atomics = "device";
	fixture_init(&pair.fix, FI_VERSION(1, 17));
	pair.fix.info->caps |= events;
	ep_pair_open(&pair);
	reg(FI_REMOTE_READ | FI_REMOTE_WRITE);
}

static void setup(void)
{
	open_pair(0);
}

static void teardown(void)
{
	if (mr)
		cr_expect_eq(fi_close(&mr->fid), 0);
	ep_pair_close(&pair);
}

TestSuite(atomic_device, .init = setup, .fini = teardown);

static uint64_t at(size_t word)
{
	return (uintptr_t)&words[word];
}

static ssize_t add(size_t word, uint64_t value)
{
	return fi_atomic(pair.a.ep, &value, 1, NULL, pair.a.peer, at(word), key, FI_UINT64, FI_SUM,
			 &words[word]);
}

static ssize_t fetch_add(size_t word, uint64_t value, uint64_t *result)
{
	return fi_fetch_atomic(pair.a.ep, &value, 1, NULL, result, NULL, pair.a.peer, at(word), key,
			       FI_UINT64, FI_SUM, result);
}

static struct fi_cq_tagged_entry complete(void)
{
	return ep_pair_comp(&pair, &pair.a);
}

/* Expects the next completion to be this error; returns the reason that it gives. */
static const char *fail(int err)
{
	struct fi_cq_err_entry entry = ep_pair_error(&pair, &pair.a, err);

	return entry.err_data ? entry.err_data : "";
}

static struct verve_xport *lock(struct ep_side *side)
{
	return verve_engine_lock(verve_ep_from_fid(side->ep)->engine);
}

static void unlock(struct ep_side *side)
{
	verve_engine_unlock(verve_ep_from_fid(side->ep)->engine);
}

static bool device_can(int form, int datatype, int op)
{
	if (datatype != FI_INT64 && datatype != FI_UINT64)
		return false;
	return (form < 2 && op == FI_SUM) || (form == 1 && op == FI_ATOMIC_READ) ||
	       (form == 2 && op == FI_CSWAP);
}

Test(atomic_device, valid_and_query_are_exact)
{
	for (int datatype = -1; datatype < FI_UINT128 + 5; datatype++)
		for (int op = -1; op < 25; op++) {
			static const uint64_t flags[3] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};
			size_t count[3] = {0};
			int ret[3] = {
				fi_atomicvalid(pair.a.ep, datatype, op, &count[0]),
				fi_fetch_atomicvalid(pair.a.ep, datatype, op, &count[1]),
				fi_compare_atomicvalid(pair.a.ep, datatype, op, &count[2]),
			};

			for (int i = 0; i < 3; i++) {
				bool can = device_can(i, datatype, op);
				struct fi_atomic_attr attr;

				cr_assert_eq(ret[i], can ? 0 : -FI_EOPNOTSUPP);
				cr_assert_eq(count[i], can ? 1 : 0);
				cr_assert_eq(fi_query_atomic(pair.fix.domain, datatype, op, &attr,
							     flags[i]), ret[i]);
				cr_assert(!can || (attr.count == 1 && attr.size == 8));
			}
		}
}

Test(atomic_device, updates_before_the_connection_is_up)
{
	struct fi_cq_tagged_entry entry;

	cr_assert_eq(add(3, 5), 0);
	cr_assert_eq(add(3, (uint64_t)-1), 0);
	entry = complete();
	cr_expect_eq(entry.op_context, &words[3]);
	cr_expect_eq(entry.flags, FI_ATOMIC | FI_WRITE);
	complete();
	cr_expect_eq(words[3], 4);
	ep_pair_nothing(&pair, &pair.b);
}

Test(atomic_device, brings_back_what_was_there)
{
	uint64_t value = 5, compare = 41, result[4] = {0};

	words[2] = 37;
	cr_assert_eq(fetch_add(2, 5, &result[0]), 0);
	cr_assert_eq(fi_fetch_atomic(pair.a.ep, NULL, 1, NULL, &result[1], NULL, pair.a.peer, at(2),
				     key, FI_INT64, FI_ATOMIC_READ, NULL), 0);
	for (int i = 0; i < 2; i++, compare++) {
		cr_assert_eq(fi_compare_atomic(pair.a.ep, &value, 1, NULL, &compare, NULL,
					       &result[2 + i], NULL, pair.a.peer, at(2), key,
					       FI_UINT64, FI_CSWAP, NULL), 0);
		cr_expect_eq(complete().flags, FI_ATOMIC | FI_READ);
	}
	complete();
	cr_expect_eq(complete().flags, FI_ATOMIC | FI_READ);
	cr_expect_eq(result[0], 37);
	for (int i = 1; i < 4; i++)
		cr_expect_eq(result[i], 42);
	cr_expect_eq(words[2], 5, "41 was not there, 42 was");
}

Test(atomic_device, every_completion_level_and_form)
{
	uint64_t value = 1, result = 0;
	struct fi_ioc iov[2] = {{NULL, 0}, {&value, 1}}, resultv[2] = {{&result, 1}, {NULL, 0}};
	struct fi_rma_ioc remote[2] = {{at(9), 0, key}, {at(1), 1, key}};
	struct fi_msg_atomic msg = {
		.msg_iov = iov, .iov_count = 2, .addr = pair.a.peer, .rma_iov = remote,
		.rma_iov_count = 2, .datatype = FI_UINT64, .op = FI_SUM, .context = &msg,
	};
	static const uint64_t flags[] = {FI_INJECT, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
					 FI_DELIVERY_COMPLETE, FI_FENCE, FI_MORE};

	for (uint64_t i = 0; i < 6; i++) {
		value = 1;
		cr_assert_eq(fi_fetch_atomicmsg(pair.a.ep, &msg, resultv, NULL, 2,
						flags[i] | FI_COMPLETION), 0);
		if (flags[i] == FI_INJECT)
			value = 1000;
		complete();
		cr_expect_eq(result, i);
		cr_expect_eq(words[1], i + 1, "executed when it is complete");
	}
	cr_expect_eq(words[9], 0);
	value = 100;
	cr_assert_eq(fi_inject_atomic(pair.a.ep, &value, 1, pair.a.peer, at(1), key, FI_UINT64,
				      FI_SUM), 0);
	ep_pair_nothing(&pair, &pair.a);
	cr_expect_eq(words[1], 106);
}

Test(atomic_device, what_the_device_cannot_is_refused_at_once)
{
	uint64_t value[2] = {1, 1};
	uint32_t half = 1;

	cr_expect_eq(fi_atomic(pair.a.ep, value, 1, NULL, pair.a.peer, at(0), key, FI_UINT64,
			       FI_BOR, NULL), -FI_EOPNOTSUPP);
	cr_expect_eq(fi_atomic(pair.a.ep, &half, 1, NULL, pair.a.peer, at(0), key, FI_UINT32,
			       FI_SUM, NULL), -FI_EOPNOTSUPP);
	cr_expect_eq(fi_atomic(pair.a.ep, value, 1, NULL, pair.a.peer, at(0), key, FI_UINT64,
			       FI_ATOMIC_WRITE, NULL), -FI_EOPNOTSUPP);
	cr_expect_eq(fi_atomic(pair.a.ep, value, 1, NULL, pair.a.peer, at(0) + 4, key, FI_UINT64,
			       FI_SUM, NULL), -FI_EOPNOTSUPP, "not aligned");
	cr_expect_eq(fi_atomic(pair.a.ep, value, 2, NULL, pair.a.peer, at(0), key, FI_UINT64,
			       FI_SUM, NULL), -FI_EMSGSIZE);
	ep_pair_nothing(&pair, &pair.a);
	cr_expect_eq(words[0], 0);
}

Test(atomic_device, a_region_that_does_not_grant_it_hurts_only_that_one)
{
	uint64_t result;

	cr_assert_eq(fi_close(&mr->fid), 0);
	reg(FI_REMOTE_READ);
	cr_assert_eq(fetch_add(0, 1, &result), 0);
	fail(FI_EACCES);
	cr_assert_eq(fi_close(&mr->fid), 0);
	cr_assert_eq(fetch_add(0, 1, &result), 0);
	fail(FI_EACCES);
	reg(FI_REMOTE_WRITE);
	cr_assert_eq(add(0, 1), 0);
	complete();
	cr_expect_eq(words[0], 1);
}

/* More atomics than queues, slabs and device take at once, from both sides to the same words. */
static void flood(void)
{
	enum { OPS = 1500 };
	static uint64_t result[2][OPS];
	static bool seen[2 * OPS];
	struct ep_side *side[2] = {&pair.a, &pair.b};
	uint64_t one = 1;

	for (int i = 0; i < OPS; i++)
		for (int j = 0; j < 2; j++)
			while (fi_fetch_atomic(side[j]->ep, &one, 1, NULL, &result[j][i], NULL,
					       side[j]->peer, at(0), key, FI_UINT64, FI_SUM,
					       NULL) == -FI_EAGAIN)
				ep_pair_run(&pair, 1);
	for (int i = 0; i < OPS; i++)
		for (int j = 0; j < 2; j++)
			ep_pair_comp(&pair, side[j]);
	cr_expect_eq(words[0], 2 * OPS);
	for (int j = 0; j < 2; j++)
		for (int i = 0; i < OPS; i++) {
			cr_assert_lt(result[j][i], 2 * OPS);
			cr_assert_not(seen[result[j][i]]);
			cr_assert(!i || result[j][i] > result[j][i - 1], "in order");
			seen[result[j][i]] = true;
		}
}

Test(atomic_device, a_flood_loses_nothing)
{
	flood();
}

Test(atomic_device, a_fenced_one_waits_for_those_before_it)
{
	uint64_t value = 1;
	struct fi_ioc iov = {&value, 1};
	struct fi_rma_ioc remote = {at(0), 1, key};
	struct fi_msg_atomic msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = pair.a.peer, .rma_iov = &remote,
		.rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM,
	};
	uint32_t before;

	cr_assert_eq(add(0, 1), 0);
	complete();
	before = lock(&pair.a)->peers->link->produced;
	unlock(&pair.a);
	cr_assert_eq(add(0, 1), 0);
	cr_assert_eq(fi_atomicmsg(pair.a.ep, &msg, FI_FENCE | FI_COMPLETION), 0);
	cr_assert_eq(add(0, 1), 0);
	cr_expect_eq(lock(&pair.a)->peers->link->produced, before + 1);
	unlock(&pair.a);
	for (int i = 0; i < 3; i++)
		complete();
	cr_expect_eq(words[0], 4);
}

/*
 * The peer's device would execute the atomic at once, but the peer's processor has not looked at
 * the message before it.
 */
Test(atomic_device, a_delivery_complete_fence_waits_for_messages_that_were_copied)
{
	uint64_t value = 1, end;
	struct fi_ioc iov = {&value, 1};
	struct fi_rma_ioc remote = {at(0), 1, key};
	struct fi_msg_atomic msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = pair.a.peer, .rma_iov = &remote,
		.rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM,
	};
	char in = 0;

	cr_assert_eq(add(0, 1), 0);
	complete();
	cr_assert_eq(fi_recv(pair.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	cr_assert_eq(fi_send(pair.a.ep, "m", 1, NULL, pair.a.peer, NULL), 0);
	complete();
	cr_assert_eq(fi_atomicmsg(pair.a.ep, &msg,
				  FI_FENCE | FI_DELIVERY_COMPLETE | FI_COMPLETION), 0);
	for (end = fake_net_time() + 50000000; fake_net_time() < end;) {
		cr_assert_eq(fi_cq_read(pair.a.cq, NULL, 0), -FI_EAGAIN);
		verve_net_pause();
	}
	cr_expect_eq(words[0], 1);
	complete();
	cr_expect_eq(in, 'm');
	cr_expect_eq(words[0], 2);
}

/* It is unknown whether the device executed the atomic: so it fails, and is never repeated. */
Test(atomic_device, a_lost_answer_is_an_error_and_nothing_is_repeated)
{
	struct verve_xport *xport;
	uint64_t result[10];

	cr_assert_eq(add(0, 1), 0);
	complete();
	for (int i = 0; i < 10; i++)
		cr_assert_eq(fetch_add(1, 1, &result[i]), 0);
	fake_net_advance(2000);
	xport = lock(&pair.a);
	verve_link_break(xport, xport->peers->link, FI_ENOTCONN, 0, "broken by the test");
	unlock(&pair.a);
	for (int i = 0; i < 10; i++)
		fail(FI_ENOTCONN);
	cr_expect_leq(words[1], 10);
	cr_assert_eq(add(2, 1), 0);
	complete();
	cr_expect_eq(words[2], 1);
	cr_expect_leq(words[1], 10);
}

/*
 * The application chose the keys. The target answers the query for one key with its segment, for
 * the other with none: only the atomic with the other key fails.
 */
Test(atomic_device, a_key_that_nobody_has_hurts_only_that_one)
{
	uint64_t chosen = 77, result = 0;

	cr_assert_eq(fi_close(&mr->fid), 0);
	ep_pair_close(&pair);
	verve_config.atomics = "device";
	fixture_init(&pair.fix, FI_VERSION(1, 17));
	pair.fix.info->domain_attr->mr_mode &= ~FI_MR_PROV_KEY;
	ep_pair_open(&pair);
	cr_assert_eq(fi_mr_reg(pair.fix.domain, words, sizeof(words),
			       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, chosen, 0, &mr, NULL), 0);
	for (key = chosen + 1; key > chosen - 1; key--) {
		cr_assert_eq(add(0, 1), 0);
		cr_assert_eq(fetch_add(0, 1, &result), 0);
		for (int i = 0; i < 2; i++)
			if (key == chosen)
				complete();
			else
				cr_expect_not_null(strstr(fail(FI_EACCES),
							  "no region with the key"));
	}
	cr_expect_eq(words[0], 2);
	cr_expect_eq(result, 1);

	/* The region closes: the target revokes the key, and the initiator forgets the answer. */
	key = chosen;
	cr_assert_eq(fi_close(&mr->fid), 0);
	mr = NULL;
	cr_assert_eq(fetch_add(0, 1, &result), 0);
	fail(FI_EACCES);
	cr_expect_eq(words[0], 2);
}

/* The peer's handshake said another FI_VERVE_ATOMICS. The test changes the link to that. */
Test(atomic_device, is_never_mixed_with_the_other_way)
{
	struct verve_xport *xport;
	uint64_t result;

	cr_assert_eq(add(0, 1), 0);
	complete();
	lock(&pair.a)->peers->link->device_atomics = false;
	unlock(&pair.a);
	cr_assert_eq(fetch_add(0, 1, &result), 0);
	cr_expect_not_null(strstr(fail(FI_EOPNOTSUPP), "FI_VERVE_ATOMICS=device here, not there"));

	xport = lock(&pair.a);
	xport->peers->link->device_atomics = true;
	xport->attr.device_atomics = false;
	unlock(&pair.a);
	cr_assert_eq(add(0, 1), 0);
	cr_expect_not_null(strstr(fail(FI_EOPNOTSUPP), "FI_VERVE_ATOMICS=device there, not here"));

	/* An initiator that ignores the peer's handshake: the target refuses. */
	lock(&pair.a)->peers->link->device_atomics = false;
	unlock(&pair.a);
	cr_assert_eq(add(0, 1), 0);
	cr_expect_not_null(strstr(fail(FI_EOPNOTSUPP), "the target has FI_VERVE_ATOMICS=device"));
	cr_expect_eq(words[0], 1);
}

/* Without FI_ATOMIC a domain opens on any device; with FI_ATOMIC the device must have atomics. */
Test(atomic_device_domain, needs_a_device_that_can)
{
	struct fake_net_config config;
	struct fixture fix;

	fake_net_config_default(&config);
	config.limits.atomics = false;
	fake_net_start(&config);
	verve_config.atomics = "device";
	fixture_init(&fix, FI_VERSION(1, 17));
	cr_expect_eq(fi_domain(fix.fabric, fix.info, &fix.domain, NULL), -FI_EOPNOTSUPP);
	fix.domain = NULL;
	fix.info->caps &= ~FI_ATOMIC;
	fixture_open_domain(&fix);
	cr_expect_not(verve_domain_from_fid(&fix.domain->fid)->device_atomics);
	fixture_fini(&fix);
}

static void open_with_events(void)
{
	cr_assert_eq(fi_close(&mr->fid), 0);
	mr = NULL;
	ep_pair_close(&pair);
	open_pair(FI_RMA_EVENT);
}

/* With FI_RMA_EVENT the target counts the atomics that its device executed. */
Test(atomic_device, is_an_rma_event)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
	struct fid_cntr *cntr;
	uint64_t result;

	open_with_events();
	cr_assert_eq(fi_cntr_open(pair.fix.domain, &attr, &cntr, NULL), 0);
	cr_assert_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	cr_assert_eq(add(0, 1), 0);
	cr_assert_eq(add(0, 1), 0);
	cr_assert_eq(fetch_add(0, 1, &result), 0);
	for (int i = 0; i < 3; i++)
		complete();
	ep_pair_run(&pair, 10);
	cr_expect_eq(result, 2);
	cr_expect_eq(fi_cntr_read(cntr), 2);
	cr_assert_eq(fi_close(&mr->fid), 0);
	mr = NULL;
	cr_expect_eq(fi_close(&cntr->fid), 0);
}

/* Each atomic needs two work requests. Where only one has room, the atomic is executed once. */
Test(atomic_device, a_flood_of_events_loses_nothing)
{
	struct fi_cq_tagged_entry entry;

	open_with_events();
	cr_assert_eq(fi_inject(pair.a.ep, words, 8, pair.a.peer), 0);
	flood();
	cr_expect_eq(fi_cq_read(pair.a.cq, &entry, 1), -FI_EAGAIN);
}
