/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many atomics by the processor at once: their order and fences, floods, the bound on atomics that
 * wait for a reply, and their end when the link breaks.
 */
#include <rdma/fi_rma.h>
#include <string.h>

#include "api/ep.h"
#include "atomic_fixture.h"
#include "engine/engine.h"
#include "rma/atomic.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/xport.h"

Test(atomic, injected_ones_are_silent_and_done_before_close)
{
	uint64_t value = 1;

	for (int i = 0; i < 100; i++) {
		while (fi_inject_atomic(us->ep, &value, 1, us->peer, at(0), key, FI_UINT64, FI_SUM))
			atomic_run();
	}
	value = 1000;
	atomic_end_close(us);
	cr_expect_eq(words[0], 100);
	cr_expect_eq(us->completions, 0);
	/* The target counts the atomics; an endpoint that closes reports no more completions. */
	cr_expect_eq(fi_cntr_read(them->cntr[CNTR_REMOTE_WRITE]), 100);
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

	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	atomic_expect(1, 0);
	before = requests_posted();
	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	cr_assert_eq(fi_atomicmsg(us->ep, &msg, FI_FENCE), 0);
	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	cr_expect_eq(requests_posted(), before + 1);
	atomic_expect(4, 0);
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
	cr_assert_eq(atomic_fetch(WORDS - 1, &two, &result[1], FI_SUM), 0);
	cr_assert_eq(atomic_fetch(WORDS - 1, NULL, &result[2], FI_ATOMIC_READ), 0);
	atomic_expect(4, 0);
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
				atomic_run();
	atomic_expect(OPS, 0);
	while (them->completions < OPS)
		atomic_run();
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

	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	atomic_expect(1, 0);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(atomic_add(1, &value, NULL), 0);
	/*
	 * The target's device has the requests, but its application has not polled. It may execute
	 * them after the link broke; then no reply arrives.
	 */
	for (int i = 0; i < 20; i++)
		fake_net_advance(1000);
	xport = verve_engine_lock(verve_ep_from_fid(us->ep)->engine);
	verve_link_break(xport, xport->peers->link, FI_ENOTCONN, 0, "broken by the test");
	verve_engine_unlock(verve_ep_from_fid(us->ep)->engine);
	atomic_expect(11, FI_ENOTCONN);
	atomic_settle();
	cr_expect_eq(us->completions, 11);
	cr_expect_leq(words[1], 10);
	/* A new connection works. */
	cr_assert_eq(atomic_add(2, &value, NULL), 0);
	atomic_expect(12, 0);
	cr_expect_eq(words[2], 1);
	cr_expect_leq(words[1], 10);
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

	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	atomic_expect(1, 0);
	for (int i = 0; i < COUNT; i++)
		cr_assert_eq(fi_fetch_atomic(us->ep, &value, 1, NULL, &found[i], NULL, us->peer,
					     at(1), key, FI_UINT64, FI_SUM, NULL), 0);
	/* The target's application makes no call, so the target makes no progress. */
	for (int i = 0; i < 1000; i++) {
		atomic_progress(us);
		fake_net_advance(10000);
	}
	cr_expect_eq(us->completions, 1);
	xport = verve_engine_lock(verve_ep_from_fid(us->ep)->engine);
	TAILQ_FOREACH(op, &xport->peers->active, link)
		active++;
	cr_expect_leq(active, VERVE_ATOMIC_UNANSWERED, "%d are under way", active);
	cr_expect_gt(active, 50);
	verve_engine_unlock(verve_ep_from_fid(us->ep)->engine);
	atomic_expect(1 + COUNT, 0);
	for (uint64_t i = 0; i < COUNT; i++)
		cr_assert_eq(found[i], i);
}

/* The target keeps no more replies than an honest peer can await. */
Test(atomic, peer_that_asks_for_too_many_is_cut_off)
{
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_ATOMIC, .flags = VERVE_WIRE_FETCH, .op_id = 1,
		.amo_op = VERVE_AMO_READ, .amo_type = VERVE_AMO_UINT64, .segment_count = 1,
	};
	struct verve_xport *xport;
	struct verve_link *link;
	uint64_t value = 1;

	packet.segment[0] = (struct verve_wire_segment){at(0), 8, key};
	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	atomic_expect(1, 0);
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
