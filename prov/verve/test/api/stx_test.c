/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared transmit context: which endpoints can be bound to one, what they do with it, and the order
 * of closing.
 */
#include "fixture.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <string.h>


enum { ENDPOINTS = 3 };

static struct fixture fix;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_stx *stx;

static void setup(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_CONTEXT};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	fixture_init(&fix, FI_VERSION(1, 17));
	fixture_open_domain(&fix);
	fix.info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	cr_assert_eq(fi_av_open(fix.domain, &av_attr, &av, NULL), 0);
	cr_assert_eq(fi_cq_open(fix.domain, &attr, &cq, NULL), 0);
	cr_assert_eq(fi_stx_context(fix.domain, fix.info->tx_attr, &stx, &fix), 0);
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&stx->fid), 0);
	cr_expect_eq(fi_close(&cq->fid), 0);
	cr_expect_eq(fi_close(&av->fid), 0);
	fixture_fini(&fix);
}

TestSuite(stx, .init = setup, .fini = teardown);

/* Opens an endpoint that is bound to all objects but a shared context. */
static struct fid_ep *open_ep(void)
{
	struct fid_ep *ep = NULL;

	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	return ep;
}

static fi_addr_t insert(struct fid_ep *ep)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);
	fi_addr_t addr = FI_ADDR_UNSPEC;

	cr_assert_eq(fi_getname(&ep->fid, &name, &len), 0);
	cr_assert_eq(fi_av_insert(av, &name, 1, &addr, 0, NULL), 1);
	return addr;
}

static void *await(void)
{
	struct fi_cq_entry entry = {0};

	for (int i = 0; i < 5000; i++) {
		ssize_t ret = fi_cq_read(cq, &entry, 1);

		if (ret == 1)
			return entry.op_context;
		cr_assert_eq(ret, -FI_EAGAIN, "%s", fi_strerror((int)-ret));
		fake_net_advance(20000);
	}
	cr_assert_fail("no completion");
	return NULL;
}

Test(stx, is_what_the_manual_says)
{
	cr_expect_eq(stx->fid.fclass, FI_CLASS_STX_CTX);
	cr_expect_eq(stx->fid.context, &fix);
	cr_expect_eq(fi_control(&stx->fid, FI_ENABLE, NULL), -FI_ENOSYS);
	cr_expect_eq(stx->fid.ops->bind(&stx->fid, &cq->fid, FI_TRANSMIT), -FI_EINVAL);
}

Test(stx, endpoints_that_share_one_send_in_their_own_name)
{
	struct fid_ep *ep[ENDPOINTS];
	fi_addr_t addr[ENDPOINTS];
	char to[ENDPOINTS];

	for (int i = 0; i < ENDPOINTS; i++) {
		ep[i] = open_ep();
		cr_assert_eq(fi_ep_bind(ep[i], &stx->fid, 0), 0);
		cr_assert_eq(fi_enable(ep[i]), 0);
		addr[i] = insert(ep[i]);
	}
	for (int i = 0; i < ENDPOINTS; i++) {
		struct fid_ep *next = ep[(i + 1) % ENDPOINTS];
		char text = (char)('a' + i), *buf = &to[i];
		void *first, *second;

		cr_assert_eq(fi_recv(next, buf, 1, NULL, FI_ADDR_UNSPEC, buf), 0);
		cr_assert_eq(fi_send(ep[i], &text, 1, NULL, addr[(i + 1) % ENDPOINTS], ep[i]), 0);
		first = await();
		second = await();
		cr_expect((first == ep[i] && second == buf) || (first == buf && second == ep[i]));
		cr_expect_eq(*buf, text);
	}
	for (int i = 0; i < ENDPOINTS; i++)
		cr_expect_eq(fi_close(&ep[i]->fid), 0);
}

Test(stx, an_endpoint_that_shares_one_needs_one)
{
	struct fid_ep *ep = open_ep();

	cr_expect_eq(fi_enable(ep), -FI_EINVAL);
	cr_expect_eq(fi_ep_bind(ep, &stx->fid, FI_TRANSMIT), -FI_EBADFLAGS);
	cr_expect_eq(fi_ep_bind(ep, &stx->fid, 0), 0);
	cr_expect_eq(fi_ep_bind(ep, &stx->fid, 0), -FI_EINVAL, "it has one");
	cr_expect_eq(fi_enable(ep), 0);
	cr_expect_eq(fi_close(&ep->fid), 0);
}

/*
 * Sandia OpenSHMEM binds a context to an endpoint that is enabled and was not opened to share one.
 */
Test(stx, may_be_bound_late)
{
	struct fid_ep *ep;

	fix.info->ep_attr->tx_ctx_cnt = 0;
	ep = open_ep();
	cr_assert_eq(fi_enable(ep), 0);
	cr_expect_eq(fi_ep_bind(ep, &stx->fid, FI_TRANSMIT), -FI_EBADFLAGS);
	cr_expect_eq(fi_ep_bind(ep, &stx->fid, 0), 0);
	cr_expect_eq(fi_ep_bind(ep, &stx->fid, 0), -FI_EINVAL, "it has one");
	cr_expect_eq(fi_close(&ep->fid), 0);
}

/* Sandia OpenSHMEM closes the context before the endpoints. */
Test(stx, may_be_closed_before_its_endpoints)
{
	struct fid_ep *ep[2] = {open_ep(), open_ep()};
	char text = 'a', to = 0;
	fi_addr_t addr;

	for (int i = 0; i < 2; i++)
		cr_assert_eq(fi_ep_bind(ep[i], &stx->fid, 0), 0);
	cr_assert_eq(fi_enable(ep[0]), 0);
	cr_expect_eq(fi_close(&stx->fid), 0);
	cr_assert_eq(fi_enable(ep[1]), 0, "it has been bound to one");
	addr = insert(ep[1]);
	insert(ep[0]);
	cr_assert_eq(fi_recv(ep[1], &to, 1, NULL, FI_ADDR_UNSPEC, &to), 0);
	cr_assert_eq(fi_send(ep[0], &text, 1, NULL, addr, &text), 0);
	await();
	await();
	cr_expect_eq(to, 'a');
	cr_assert_eq(fi_stx_context(fix.domain, fix.info->tx_attr, &stx, &fix), 0);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(fi_ep_bind(ep[i], &stx->fid, 0), -FI_EINVAL, "it had one");
		cr_expect_eq(fi_close(&ep[i]->fid), 0);
	}
}

Test(stx, of_another_domain_is_refused)
{
	struct fid_domain *other;
	struct fid_stx *theirs;
	struct fid_ep *ep = open_ep();

	cr_assert_eq(fi_domain(fix.fabric, fix.info, &other, NULL), 0);
	cr_assert_eq(fi_stx_context(other, NULL, &theirs, NULL), 0);
	cr_expect_eq(fi_ep_bind(ep, &theirs->fid, 0), -FI_EDOMAIN);
	cr_expect_eq(fi_close(&other->fid), -FI_EBUSY, "it has a shared context");
	cr_expect_eq(fi_close(&theirs->fid), 0);
	cr_expect_eq(fi_close(&other->fid), 0);
	cr_expect_eq(fi_close(&ep->fid), 0);
}

static void expect_refused(const struct fi_tx_attr *attr)
{
	struct fi_tx_attr copy = *attr;
	struct fid_stx *refused = NULL;

	cr_expect_eq(fi_stx_context(fix.domain, &copy, &refused, NULL), -FI_EINVAL);
	cr_expect_null(refused);
}

Test(stx, attributes_beyond_the_limits_are_refused)
{
	const struct fi_tx_attr *have = fix.info->tx_attr;

	expect_refused(&(struct fi_tx_attr){.caps = FI_RECV});
	expect_refused(&(struct fi_tx_attr){.iov_limit = have->iov_limit + 1});
	expect_refused(&(struct fi_tx_attr){.rma_iov_limit = have->rma_iov_limit + 1});
	expect_refused(&(struct fi_tx_attr){.inject_size = have->inject_size + 1});
	expect_refused(&(struct fi_tx_attr){.size = SIZE_MAX});
}
