/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints that fail: each has one entry in its event queue, by fi_endpoint(3) and fi_eq(3). No
 * application polls here. engine/fail_test.c has what becomes of the operations.
 */
#include <poll.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <string.h>

#include "../support/oom.h"
#include "api/ep.h"
#include "engine/engine.h"
#include "fixture.h"
#include "net/cq.h"
#include "xport/xport.h"

static struct fixture fix;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_eq *eq, *domains_eq;
static int context;

static void setup(void)
{
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};

	fixture_init(&fix, FI_VERSION(1, 17));
	fixture_open_domain(&fix);
	cr_assert_eq(fi_av_open(fix.domain, &av_attr, &av, NULL), 0);
	cr_assert_eq(fi_cq_open(fix.domain, &cq_attr, &cq, NULL), 0);
	cr_assert_eq(fi_eq_open(fix.fabric, &eq_attr, &eq, NULL), 0);
	domains_eq = fixture_open_eq(&fix);
}

static void teardown(void)
{
	oom_stop();
	cr_expect_eq(fi_close(&av->fid), 0);
	cr_expect_eq(fi_close(&cq->fid), 0);
	cr_expect_eq(fi_close(&fix.domain->fid), 0);
	fix.domain = NULL;
	cr_expect_eq(fi_close(&eq->fid), 0);
	cr_expect_eq(fi_close(&domains_eq->fid), 0);
	fixture_fini(&fix);
}

TestSuite(ep_fail, .init = setup, .fini = teardown);

/* own: the event queue to bind; NULL: none. */
static struct fid_ep *open_ep(struct fid_eq *own)
{
	struct fid_ep *ep;

	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &ep, &context), 0);
	cr_assert_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	if (own)
		cr_assert_eq(fi_ep_bind(ep, &own->fid, 0), 0);
	return ep;
}

static struct fid_ep *open_enabled(struct fid_eq *own)
{
	struct fid_ep *ep = open_ep(own);

	cr_assert_eq(fi_enable(ep), 0);
	return ep;
}

static void close_ep(struct fid_ep *ep)
{
	cr_expect_eq(fi_close(&ep->fid), 0);
}

/* A queue of the endpoint's device fails. */
static void fail(struct fid_ep *ep)
{
	struct verve_engine *engine = verve_ep_from_fid(ep)->engine;
	const void *queue = verve_engine_lock(engine)->send_cq;

	verve_engine_unlock(engine);
	fake_net_fault(0, &(struct verve_net_fault){VERVE_NET_FAULT_CQ, queue, 0});
	fake_net_advance(10000000);
}

static void expect_failed(struct fid_eq *from, struct fid_ep *ep, int err)
{
	struct fi_eq_err_entry entry = {0};
	struct fi_eq_entry event;
	uint32_t type;

	cr_assert_eq(fi_eq_read(from, &type, &event, sizeof(event), 0), -FI_EAVAIL);
	cr_assert_eq(fi_eq_readerr(from, &entry, 0), sizeof(entry));
	cr_expect_eq(entry.fid, &ep->fid);
	cr_expect_eq(entry.context, &context);
	cr_expect_eq(entry.err, err);
	cr_expect_str_eq(fi_eq_strerror(from, entry.prov_errno, NULL, NULL, 0), fi_strerror(err));
}

static void expect_nothing(struct fid_eq *from)
{
	struct fi_eq_entry event;
	uint32_t type;

	cr_expect_eq(fi_eq_read(from, &type, &event, sizeof(event), 0), -FI_EAGAIN);
}

Test(ep_fail, has_one_entry_in_its_event_queue)
{
	struct fid_ep *ep = open_enabled(eq), *other = open_enabled(eq);
	struct pollfd pfd = {.events = POLLIN};
	struct fid *fid = &eq->fid;

	cr_assert_eq(fi_control(fid, FI_GETWAIT, &pfd.fd), 0);
	cr_assert_eq(fi_trywait(fix.fabric, &fid, 1), 0);
	cr_assert_eq(poll(&pfd, 1, 0), 0);
	fail(ep);
	cr_expect_eq(poll(&pfd, 1, 0), 1);
	expect_failed(eq, ep, FI_EIO);
	fail(ep);
	expect_nothing(eq);
	close_ep(ep);
	close_ep(other);
	expect_nothing(eq);
}

/* The application would look at an object that is not there any more. */
Test(ep_fail, unread_entry_goes_with_its_endpoint)
{
	struct fid_ep *ep = open_enabled(eq), *other = open_enabled(eq);

	fail(ep);
	fail(other);
	close_ep(ep);
	expect_failed(eq, other, FI_EIO);
	expect_nothing(eq);
	close_ep(other);
}

Test(ep_fail, of_a_removed_device_all_have_one)
{
	struct fid_ep *ep = open_enabled(NULL), *own, *late;

	/* An endpoint that is enabled before has no queue. */
	cr_assert_eq(fi_domain_bind(fix.domain, &domains_eq->fid, 0), 0);
	own = open_enabled(eq);
	late = open_enabled(NULL);
	fake_net_device_remove(0);
	fake_net_advance(10000000);
	expect_failed(eq, own, FI_ENODEV);
	expect_nothing(eq);
	expect_failed(domains_eq, late, FI_ENODEV);
	expect_nothing(domains_eq);
	close_ep(ep);
	close_ep(own);
	close_ep(late);
}

/* The entry has its memory since the endpoint was enabled. */
Test(ep_fail, entry_needs_no_memory)
{
	struct fid_ep *ep = open_ep(eq);

	oom_fail(0, false);
	cr_expect_eq(fi_enable(ep), -FI_ENOMEM);
	cr_expect_eq(oom_stop(), 1);
	cr_assert_eq(fi_enable(ep), 0);
	oom_fail(0, true);
	fail(ep);
	oom_stop();
	expect_failed(eq, ep, FI_EIO);
	close_ep(ep);
}

/* The queue may be closed as soon as its endpoints are, whatever they have told it. */
Test(ep_fail, unread_entry_ends_with_the_queue)
{
	struct fid_ep *ep = open_enabled(eq);

	fail(ep);
	cr_expect_eq(fi_close(&eq->fid), -FI_EBUSY);
	close_ep(ep);
}

static void remove_device(void *arg)
{
	(void)arg;
	fake_net_device_remove(0);
}

/* The application would not know what the entry is about. */
Test(ep_fail, while_it_closes_is_not_told)
{
	struct fid_ep *ep = open_enabled(eq);
	fi_addr_t nobody;
	struct sockaddr_in name = *(struct sockaddr_in *)fix.info->src_addr;

	name.sin_port = htons(9);
	cr_assert_eq(fi_av_insert(av, &name, 1, &nobody, 0, NULL), 1);
	cr_assert_eq(fi_send(ep, "x", 1, NULL, nobody, NULL), 0);
	fake_net_on_pause(remove_device, NULL);
	close_ep(ep);
	fake_net_on_pause(NULL, NULL);
	expect_nothing(eq);
}
