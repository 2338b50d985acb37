/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints whose device, or a queue of it, fails: every operation ends with an error that says so,
 * later ones are refused, the peer hears of it, and other endpoints live on.
 */
#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>

#include "../support/fake_net.h"
#include "ends.h"
#include "net/cq.h"
#include "net/qp.h"
#include "net/sys.h"
#include "xport/link.h"
#include "xport/peer.h"

static const char of_queue[] = "a queue of this endpoint's device has failed";
static const char of_peer[] = "the peer's device, or a queue of its endpoint, has failed";

/* Another endpoint, on the host of a. */
static struct end c;

static void setup(void)
{
	ends_setup();
	end_prepare(&c, 0);
}

static void teardown(void)
{
	end_release(&c);
	ends_teardown();
}

TestSuite(fail, .init = setup, .fini = teardown);

static struct verve_xport *xport_of(const struct end *end)
{
	struct verve_xport *xport = verve_engine_lock(end->engine);

	verve_engine_unlock(end->engine);
	return xport;
}

static void fault(enum verve_net_fault_kind kind, const void *queue, uint32_t qp_num)
{
	fake_net_fault(0, &(struct verve_net_fault){kind, queue, qp_num});
}

/*
 * a and b are connected. A message of a waits for a receive of b, a message of b for one of a's;
 * a receive of a waits for a message of another tag.
 */
static void connect_busy(void)
{
	open_both();
	recv_any(&b);
	cr_assert_eq(send_to(b_addr(), 5, 0), 0);
	run(100 * ms);
	expect_len(&a.tx_queue, 5);
	expect_len(&b.rx_queue, 5);
	cr_assert_eq(send_from(&b, addr_of(&b, &a), ROOM, 0), 0);
	cr_assert_eq(send_to(b_addr(), ROOM, 0), 0);
	run(10 * ms);
	cr_assert(verve_comp_queue_is_empty(&a.tx_queue));
}

static void expect_empty(struct end *end)
{
	cr_expect(verve_comp_queue_is_empty(&end->tx_queue));
	cr_expect(verve_comp_queue_is_empty(&end->rx_queue));
}

/* a has failed with err, which b hears. */
static void expect_failed(int err, const char *text)
{
	uint64_t addr = addr_of(&b, &a), start;

	run(10 * ms);
	expect_failure(&a.tx_queue, err, text);
	cr_expect_eq(send_to(b_addr(), 5, 0), -err);
	cr_expect_eq(try_recv(&a), -err);
	expect_failure(&b.tx_queue, FI_EREMOTEIO, of_peer);
	cr_expect_eq(send_from(&b, addr, 5, 0), 0);
	run(100 * ms);
	expect_failure(&b.tx_queue, FI_EREMOTEIO, of_peer);
	expect_empty(&a);
	expect_empty(&b);
	start = fake_net_time();
	close_end(&a);
	cr_expect_lt(fake_net_time() - start, ms);
	expect_empty(&a);
}

Test(fail, send_queue_that_cannot_be_polled_ends_the_endpoint)
{
	connect_busy();
	fake_net_cq_break(xport_of(&a)->send_cq);
	expect_failed(FI_EIO, of_queue);
}

Test(fail, receive_queue_that_cannot_be_polled_ends_the_endpoint)
{
	connect_busy();
	fake_net_cq_break(xport_of(&a)->recv_cq);
	expect_failed(FI_EIO, of_queue);
}

Test(fail, event_about_the_send_queue_ends_the_endpoint)
{
	connect_busy();
	fault(VERVE_NET_FAULT_CQ, xport_of(&a)->send_cq, 0);
	expect_failed(FI_EIO, of_queue);
}

Test(fail, event_about_the_receive_queue_ends_the_endpoint)
{
	connect_busy();
	fault(VERVE_NET_FAULT_CQ, xport_of(&a)->recv_cq, 0);
	expect_failed(FI_EIO, of_queue);
}

Test(fail, event_about_the_shared_receive_queue_ends_the_endpoint)
{
	connect_busy();
	fault(VERVE_NET_FAULT_SRQ, xport_of(&a)->srq, 0);
	expect_failed(FI_EIO, of_queue);
}

Test(fail, two_failures_are_as_one)
{
	connect_busy();
	fake_net_cq_break(xport_of(&a)->send_cq);
	fault(VERVE_NET_FAULT_SRQ, xport_of(&a)->srq, 0);
	run(10 * ms);
	fault(VERVE_NET_FAULT_CQ, xport_of(&a)->recv_cq, 0);
	expect_failed(FI_EIO, of_queue);
}

/* Nothing completes at this send queue any more: only closing queue pairs ends their requests. */
Test(fail, requests_that_never_complete_end)
{
	connect_busy();
	cr_assert_eq(send_to(b_addr(), EAGER, VERVE_OP_ACK), 0);
	fake_net_cq_break(xport_of(&a)->send_cq);
	run(10 * ms);
	expect_failure(&a.tx_queue, FI_EIO, of_queue);
	expect_failure(&a.tx_queue, FI_EIO, of_queue);
	expect_empty(&a);
}

Test(fail, operations_that_wait_for_a_connection_end)
{
	open_both();
	fake_net_link(1, false);
	cr_assert_eq(send_to(b_addr(), 5, 0), 0);
	run(10 * ms);
	fault(VERVE_NET_FAULT_SRQ, xport_of(&a)->srq, 0);
	run(10 * ms);
	expect_failure(&a.tx_queue, FI_EIO, of_queue);
	expect_empty(&a);
}

Test(fail, receives_end_and_a_sleeper_wakes)
{
	struct pollfd fd = {.events = POLLIN};

	open_both();
	recv_any(&a);
	recv_any(&a);
	run(10 * ms);
	fake_net_on_pause(NULL, NULL);
	fd.fd = verve_engine_fd(a.engine);
	cr_assert_eq(verve_engine_arm(a.engine), 0);
	cr_assert_eq(poll(&fd, 1, 0), 0);
	fault(VERVE_NET_FAULT_CQ, xport_of(&a)->recv_cq, 0);
	run(10 * ms);
	cr_expect_eq(poll(&fd, 1, 0), 1);
	while (verve_engine_progress(a.engine))
		;
	expect_failure(&a.rx_queue, FI_EIO, of_queue);
	expect_failure(&a.rx_queue, FI_EIO, of_queue);
	expect_empty(&a);
	cr_expect_eq(verve_engine_arm(a.engine), 0);
	fake_net_on_pause(progress, NULL);
}

Test(fail, removed_device_ends_receives_too)
{
	open_both();
	recv_any(&a);
	run(10 * ms);
	fake_net_device_remove(0);
	run(10 * ms);
	expect_failure(&a.rx_queue, FI_ENODEV, "the device of this endpoint was removed");
	cr_expect_eq(try_recv(&a), -FI_ENODEV);
}

struct told {
	int count, error;
};

static void tell(void *arg, int error)
{
	struct told *told = arg;

	told->count++;
	told->error = error;
}

/* Nobody polls a: its application may wait for nothing but this. */
Test(fail, is_told_at_once_and_once)
{
	struct told told[3] = {0};

	a.attr.arg = &told[0];
	b.attr.arg = &told[1];
	c.attr.arg = &told[2];
	a.attr.failed = b.attr.failed = c.attr.failed = tell;
	open_both();
	open_end(&c);
	fake_net_on_pause(NULL, NULL);
	fault(VERVE_NET_FAULT_SRQ, xport_of(&a)->srq, 0);
	run(10 * ms);
	cr_expect_eq(told[0].count, 1);
	cr_expect_eq(told[0].error, FI_EIO);
	fault(VERVE_NET_FAULT_CQ, xport_of(&a)->send_cq, 0);
	run(10 * ms);
	cr_expect_eq(told[2].count, 0);
	fake_net_device_remove(0);
	run(10 * ms);
	cr_expect_eq(told[2].count, 1);
	cr_expect_eq(told[2].error, FI_ENODEV);
	close_end(&a);
	close_end(&c);
	cr_expect_eq(told[0].count, 1);
	cr_expect_eq(told[1].count, 0);
}

/* Events are taken once for each device, whichever of its endpoints they are about. */
Test(fail, other_endpoints_live_on)
{
	connect_busy();
	open_end(&c);
	fault(VERVE_NET_FAULT_CQ, xport_of(&a)->send_cq, 0);
	run(10 * ms);
	expect_failure(&a.tx_queue, FI_EIO, of_queue);
	expect_failure(&b.tx_queue, FI_EREMOTEIO, of_peer);
	recv_any(&b); /* takes what a has sent, and loses it */
	recv_any(&b);
	recv_any(&c);
	cr_assert_eq(send_from(&c, addr_of(&c, &b), 6, 0), 0);
	cr_assert_eq(send_from(&b, addr_of(&b, &c), 7, 0), 0);
	for (int i = 0; i < 100; i++) {
		verve_engine_progress(c.engine);
		run(ms);
	}
	expect_len(&c.tx_queue, 6);
	expect_len(&c.rx_queue, 7);
	fault(VERVE_NET_FAULT_CQ, xport_of(&c)->send_cq, 0);
	run(10 * ms);
	cr_expect(verve_engine_progress(c.engine));
	cr_expect_eq(send_from(&c, addr_of(&c, &b), 6, 0), -FI_EIO);
}

/* Takes two completions, in any order: a read may end before or after a short message. */
static void expect_both(struct verve_comp_queue *queue, size_t len, size_t other)
{
	struct verve_comp comp[2];

	cr_assert_eq(verve_comp_queue_read(queue, comp, 2), 2);
	cr_expect_eq(comp[0].len + comp[1].len, len + other);
}

/* Both sides go on over another one: no message is lost, and no operation fails. */
Test(fail, queue_pair_that_fails_is_replaced)
{
	uint32_t qp_num;

	connect_busy();
	qp_num = TAILQ_FIRST(&xport_of(&a)->links)->qp_num;
	fault(VERVE_NET_FAULT_QP, NULL, qp_num);
	run(100 * ms);
	cr_expect_neq(TAILQ_FIRST(&xport_of(&a)->links)->qp_num, qp_num);
	recv_any(&a);
	recv_any(&b);
	recv_any(&b);
	cr_assert_eq(send_to(b_addr(), 6, 0), 0);
	run(100 * ms);
	expect_both(&a.tx_queue, 6, ROOM);
	expect_both(&b.rx_queue, 6, ROOM);
	expect_len(&b.tx_queue, ROOM);
	expect_len(&a.rx_queue, ROOM);
}

/* The receives of a shared context end with the last of its endpoints. */
Test(fail, shared_receives_live_as_long_as_one_endpoint)
{
	struct verve_xport_attr xport = {.mr_cache = &a.mr_cache, .min_multi_recv = 64};
	struct verve_engine_attr attr = {.xport = &xport};
	struct verve_engine *shared;
	struct end context;

	cr_assert_eq(verve_engine_open_shared(&attr, &shared), 0);
	context.engine = shared;
	a.attr.shared = c.attr.shared = shared;
	c.xport.addrvec = a.xport.addrvec;
	open_both();
	open_end(&c);
	recv_any(&context);
	fault(VERVE_NET_FAULT_CQ, xport_of(&a)->send_cq, 0);
	run(10 * ms);
	expect_empty(&a);
	expect_empty(&c);
	recv_any(&context);
	fault(VERVE_NET_FAULT_CQ, xport_of(&c)->send_cq, 0);
	run(10 * ms);
	while (verve_engine_progress(shared))
		;
	/* The context reports to the endpoint that was bound last. */
	expect_failure(&c.rx_queue, FI_EIO, of_queue);
	expect_failure(&c.rx_queue, FI_EIO, of_queue);
	cr_expect_eq(try_recv(&context), -FI_EIO);
	close_end(&a);
	close_end(&c);
	verve_engine_close_shared(shared);
}
