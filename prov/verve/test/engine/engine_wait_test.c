/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Engine: a thread that sleeps on the wait descriptor wakes for work that another sleeper has
 * found, and by its timer.
 */
#include "engine/engine.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include "../api/fixture.h"
#include "api/ep.h"
#include "base/config.h"

enum { LONG = 50000 };

static struct fixture fix;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *a, *b;
static fi_addr_t addr_b;

static struct fid_ep *open_ep(void)
{
	struct fid_ep *ep;

	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_enable(ep), 0);
	return ep;
}

static void setup(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct sockaddr_in name;
	size_t len = sizeof(name);

	fixture_init(&fix, FI_VERSION(1, 17));
	verve_config.transport_timeout = 2; /* ms; the timer expires after half of it */
	fixture_open_domain(&fix);
	cr_assert_eq(fi_av_open(fix.domain, &av_attr, &av, NULL), 0);
	cr_assert_eq(fi_cq_open(fix.domain, &attr, &cq, NULL), 0);
	a = open_ep();
	b = open_ep();
	cr_assert_eq(fi_getname(&b->fid, &name, &len), 0);
	cr_assert_eq(fi_av_insert(av, &name, 1, &addr_b, 0, NULL), 1);
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&a->fid), 0);
	cr_expect_eq(fi_close(&b->fid), 0);
	cr_expect_eq(fi_close(&cq->fid), 0);
	cr_expect_eq(fi_close(&av->fid), 0);
	fixture_fini(&fix);
}

TestSuite(engine_wait, .init = setup, .fini = teardown, .timeout = 60);

static struct verve_engine *engine_of(struct fid_ep *ep)
{
	return verve_ep_from_fid(ep)->engine;
}

/* timeout: milliseconds; -1: for ever. */
static bool is_readable(struct verve_engine *engine, int timeout)
{
	struct pollfd fd = {.fd = verve_engine_fd(engine), .events = POLLIN};

	return poll(&fd, 1, timeout) == 1;
}

static void fall_asleep(struct verve_engine *engine)
{
	while (verve_engine_arm(engine))
		;
}

Test(engine_wait, arming_that_finds_work_wakes_the_other_sleeper)
{
	static char to;

	cr_assert_eq(fi_recv(b, &to, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	cr_assert_eq(fi_send(a, "x", 1, NULL, addr_b, NULL), 0);
	/* One thread arms and sleeps. Then a message comes. */
	fall_asleep(engine_of(b));
	for (int i = 0; i < 1000; i++) {
		verve_engine_progress(engine_of(a));
		fake_net_advance(10000);
	}
	cr_assert(is_readable(engine_of(b), 0));
	/* Another thread arms, which clears the descriptor that the first thread sleeps on. */
	cr_assert_eq(verve_engine_arm(engine_of(b)), -FI_EAGAIN);
	cr_expect(is_readable(engine_of(b), 0));
	fall_asleep(engine_of(b));
	cr_expect_eq(to, 'x');
}

/* No event comes: only the timer can make the descriptor readable. */
Test(engine_wait, work_that_starts_while_one_sleeps_sets_the_timer)
{
	struct verve_engine *engine = engine_of(a);

	fall_asleep(engine);
	cr_assert_not(is_readable(engine, 0));
	verve_engine_lock(engine);
	verve_engine_unlock(engine);
	cr_expect(is_readable(engine, -1));
	fall_asleep(engine);
	cr_expect_not(is_readable(engine, 0));
}

static void deliver(void)
{
	static char to;

	to = 0;
	cr_assert_eq(fi_recv(b, &to, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	cr_assert_eq(fi_send(a, "x", 1, NULL, addr_b, NULL), 0);
	for (int i = 0; i < 1000 && !to; i++) {
		verve_engine_progress(engine_of(a));
		verve_engine_progress(engine_of(b));
		fake_net_advance(10000);
	}
	cr_assert_eq(to, 'x');
}

/* Posting receive buffers fails while the engine is armed, when the timer was not needed yet. */
Test(engine_wait, failure_of_an_arming_sets_the_timer)
{
	deliver();
	fall_asleep(engine_of(b));
	/* So soon that the turns until the next sleep look after nothing that can wait. */
	deliver();
	fake_net_fail(FAKE_NET_SRQ_POST, 1, -FI_ENOMEM);
	fall_asleep(engine_of(b));
	cr_assert(fake_net_has_failed());
	cr_expect(is_readable(engine_of(b), -1));
	fall_asleep(engine_of(b));
	cr_expect_not(is_readable(engine_of(b), 0));
}

static fi_addr_t insert(struct fid_ep *ep)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);
	fi_addr_t addr;

	cr_assert_eq(fi_getname(&ep->fid, &name, &len), 0);
	cr_assert_eq(fi_av_insert(av, &name, 1, &addr, 0, NULL), 1);
	return addr;
}

static struct fid_ep *open_member(struct fid_ep *srx)
{
	struct fid_ep *ep;

	fix.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_ep_bind(ep, &srx->fid, 0), 0);
	cr_assert_eq(fi_enable(ep), 0);
	return ep;
}

/*
 * Sends a message from a to each member; no member has a receive. Then all members sleep without a
 * timer.
 */
static void send_and_fall_asleep(struct fid_ep *members[2])
{
	static const char from[LONG];

	for (int i = 0; i < 2; i++)
		cr_assert_eq(fi_send(a, from, LONG, NULL, insert(members[i]), NULL), 0);
	for (int i = 0; i < 1000; i++) {
		verve_engine_progress(engine_of(a));
		for (int j = 0; j < 2; j++)
			verve_engine_progress(engine_of(members[j]));
		fake_net_advance(10000);
	}
	for (int i = 0; i < 2; i++) {
		fall_asleep(engine_of(members[i]));
		cr_assert_not(is_readable(engine_of(members[i]), 0));
	}
}

/*
 * to_context: the receives are posted to the context; else to one of its endpoints. In both cases,
 * the message of a receive may wait at another endpoint.
 */
static void expect_timer_of_reads(bool to_context)
{
	static char to[2][LONG];
	struct fid_ep *srx, *members[2];

	cr_assert_eq(fi_srx_context(fix.domain, NULL, &srx, NULL), 0);
	for (int i = 0; i < 2; i++)
		members[i] = open_member(srx);
	send_and_fall_asleep(members);
	/*
	 * The receives read the messages, and get no answer. So only the timer can make a
	 * descriptor readable.
	 */
	fake_net_link(0, false);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(fi_recv(to_context ? srx : members[1], to[i], LONG, NULL,
				     FI_ADDR_UNSPEC, NULL),
			     0);
	for (int i = 0; i < 2; i++)
		cr_expect(is_readable(engine_of(members[i]), -1));
	fake_net_link(0, true);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(fi_close(&members[i]->fid), 0);
	cr_expect_eq(fi_close(&srx->fid), 0);
}

Test(engine_wait, receive_of_a_shared_context_sets_the_timers_of_its_endpoints)
{
	expect_timer_of_reads(true);
}

Test(engine_wait, receive_of_an_endpoint_sets_the_timers_of_its_sharers)
{
	expect_timer_of_reads(false);
}
