/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Errands that register slabs (xport/errand.h): of sends, and steps of receive buffers. */
#include "xport/errand.h"

#include <criterion/criterion.h>

#include "../support/fake_memory.h"
#include "../support/fake_net.h"
#include "ends.h"
#include "xport/rx_buffers.h"

static void setup(void)
{
	ends_setup();
	fake_net_on_pause(progress, NULL);
	open_both();
	/* Connects, and fills the slabs. */
	recv_any(&b);
	cr_assert_eq(send_to(b_addr(), 5, 0), 0);
	run(100 * ms);
	expect_len(&a.tx_queue, 5);
	expect_len(&b.rx_queue, 5);
}

static void teardown(void)
{
	fake_net_on_mr(NULL, NULL);
	ends_teardown();
}

TestSuite(errand_slab, .init = setup, .fini = teardown);

static int slabs; /* registrations */

static void expect_both_free(void *arg, bool opens, const void *addr)
{
	(void)arg, (void)opens, (void)addr;
	cr_expect(end_is_free(&a) && end_is_free(&b));
	slabs++;
}

/* No call finds too few slabs: one before it has registered more. */
Test(errand_slab, slabs_are_registered_without_the_lock)
{
	enum { MESSAGES = 40 };

	for (int i = 0; i < MESSAGES; i++)
		recv_any(&b);
	fake_net_on_pause(NULL, NULL);
	fake_net_on_mr(expect_both_free, NULL);
	for (int i = 0; i < MESSAGES; i++)
		cr_assert_eq(send_to(b_addr(), 500, VERVE_OP_INJECT), 0, "message %d", i);
	cr_expect_gt(slabs, 0);
	fake_net_on_pause(progress, NULL);
	run(100 * ms);
	cr_expect_eq(AO_load(&a.tx_queue.count), MESSAGES);
	cr_expect_eq(AO_load(&b.rx_queue.count), MESSAGES);
}

Test(errand_slab, receive_buffers_are_registered_without_the_lock)
{
	struct verve_xport *xport = verve_engine_lock(b.engine);
	uint32_t before = xport->rx_count;

	fake_net_on_mr(expect_both_free, NULL);
	verve_rx_buffers_judge(xport, before);
	verve_rx_buffers_press(xport);
	cr_expect_eq(xport->rx_count, before);
	verve_engine_unlock(b.engine);
	cr_expect_eq(slabs, 1);
	cr_expect_eq(xport->rx_count, before + VERVE_RX_STEP);
	cr_expect_eq(fake_net_srq_count(xport->srq), before + VERVE_RX_STEP);
}

/* Then the next try is a later turn's, as if they had been registered in place. */
Test(errand_slab, slabs_that_cannot_be_registered)
{
	struct verve_xport *xport = verve_engine_lock(b.engine);
	uint32_t before = xport->rx_count;

	fake_net_memlock(0);
	verve_rx_buffers_judge(xport, before);
	verve_rx_buffers_press(xport);
	verve_engine_unlock(b.engine);
	cr_expect_eq(xport->rx_count, before);
	cr_expect(xport->rx_load.refused);
	cr_expect_not(xport->rx_slabs.growing);
	fake_net_memlock(UINT64_MAX);
}
