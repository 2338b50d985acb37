/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoint: a name that it was given before it is enabled, one that is another endpoint's, and one
 * that peers will not believe.
 */
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <string.h>

#include "../support/log_lines.h"
#include "fixture.h"

static struct fixture fix;
static struct fid_ep *ep;
static struct fid_av *av;
static struct fid_cq *cq;

static void setup(void)
{
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG};

	log_start("warn", "verve");
	fixture_init(&fix, FI_VERSION(1, 17));
	fixture_open_domain(&fix);
	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &ep, NULL), 0);
	cr_assert_eq(fi_av_open(fix.domain, &av_attr, &av, NULL), 0);
	cr_assert_eq(fi_cq_open(fix.domain, &cq_attr, &cq, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&ep->fid), 0);
	cr_expect_eq(fi_close(&av->fid), 0);
	cr_expect_eq(fi_close(&cq->fid), 0);
	fixture_fini(&fix);
}

TestSuite(ep_name, .init = setup, .fini = teardown);

/* As of an info that is another domain's. Only the peers' logs would tell why none connects. */
Test(ep_name, address_of_another_port_is_warned_about)
{
	struct sockaddr_in name = *(struct sockaddr_in *)fix.info->src_addr;

	name.sin_port = 0;
	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_expect_eq(fi_setname(&ep->fid, &name, sizeof(name)), 0);
	cr_expect_neq(fi_enable(ep), 0, "the fake host does not have it either");
	cr_expect_not_null(strstr(log_take(), "127.0.0.1:0 is not the address of "));
}

/* Most devices keep datagrams to UDP port 4791 for RoCE: peers would wait in vain. */
Test(ep_name, port_of_roce_is_warned_about)
{
	struct sockaddr_in name = *(struct sockaddr_in *)fix.info->src_addr;

	name.sin_port = htons(4791);
	cr_expect_eq(fi_setname(&ep->fid, &name, sizeof(name)), 0);
	cr_expect_eq(fi_enable(ep), 0);
	cr_expect_not_null(strstr(log_take(), ":4791 has the UDP port of RoCE v2"));
}

static void expect_name(const struct sockaddr_in *wanted)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	cr_expect_eq(fi_getname(&ep->fid, &name, &len), 0);
	cr_expect_eq(len, sizeof(name));
	cr_expect_eq(memcmp(&name, wanted, sizeof(name)), 0);
}

/* Programs tell their peers the name before they enable the endpoint. */
Test(ep_name, given_with_a_port_is_known_before_enabling)
{
	struct sockaddr_in name = *(struct sockaddr_in *)fix.info->src_addr;
	size_t len = sizeof(name);

	cr_expect_eq(fi_getname(&ep->fid, &name, &len), -FI_EOPBADSTATE, "it has no port yet");
	name.sin_port = htons(7777);
	cr_assert_eq(fi_setname(&ep->fid, &name, sizeof(name)), 0);
	expect_name(&name);
	cr_assert_eq(fi_enable(ep), 0);
	expect_name(&name);
}

Test(ep_name, that_is_taken_is_refused)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);
	struct fid_ep *other;

	cr_assert_eq(fi_enable(ep), 0);
	cr_assert_eq(fi_getname(&ep->fid, &name, &len), 0);
	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &other, NULL), 0);
	cr_assert_eq(fi_ep_bind(other, &av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(other, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_setname(&other->fid, &name, len), 0);
	cr_expect_eq(fi_enable(other), -FI_EADDRINUSE);
	cr_expect_eq(fi_close(&other->fid), 0);
}
