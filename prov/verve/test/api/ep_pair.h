/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two endpoints of one domain that have each other's address, with a queue each, for tests of data
 * transfer calls. Time is simulated.
 */
#ifndef VERVE_TEST_API_EP_PAIR_H
#define VERVE_TEST_API_EP_PAIR_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <string.h>

#include "fixture.h"
#include "net/sys.h"

struct ep_side {
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t peer;
};

struct ep_pair {
	struct fixture fix;
	struct ep_side a, b;
};

static inline void ep_side_open(struct ep_pair *pair, struct ep_side *side)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	cr_assert_eq(fi_cq_open(pair->fix.domain, &cq_attr, &side->cq, NULL), 0);
	cr_assert_eq(fi_av_open(pair->fix.domain, &av_attr, &side->av, NULL), 0);
	cr_assert_eq(fi_endpoint(pair->fix.domain, pair->fix.info, &side->ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(side->ep, &side->av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_enable(side->ep), 0);
}

static inline void ep_side_insert(struct ep_side *side, struct ep_side *peer)
{
	struct sockaddr_in6 name;
	size_t len = sizeof(name);

	cr_assert_eq(fi_getname(&peer->ep->fid, &name, &len), 0);
	cr_assert_eq(fi_av_insert(side->av, &name, 1, &side->peer, 0, NULL), 1);
}

/*
 * Opens the domain and both endpoints. pair->fix is initialized, and its info is as the test wants
 * it.
 */
static inline void ep_pair_open(struct ep_pair *pair)
{
	fixture_open_domain(&pair->fix);
	ep_side_open(pair, &pair->a);
	ep_side_open(pair, &pair->b);
	ep_side_insert(&pair->a, &pair->b);
	ep_side_insert(&pair->b, &pair->a);
}

static inline void ep_side_close(struct ep_side *side)
{
	cr_expect_eq(fi_close(&side->ep->fid), 0);
	cr_expect_eq(fi_close(&side->av->fid), 0);
	cr_expect_eq(fi_close(&side->cq->fid), 0);
}

static inline void ep_pair_close(struct ep_pair *pair)
{
	ep_side_close(&pair->a);
	ep_side_close(&pair->b);
	fixture_fini(&pair->fix);
}

/* Polls both sides for ms simulated milliseconds. */
static inline void ep_pair_run(struct ep_pair *pair, unsigned ms)
{
	uint64_t end = fake_net_time() + ms * 1000000ull;

	while (fake_net_time() < end) {
		fi_cq_read(pair->a.cq, NULL, 0);
		fi_cq_read(pair->b.cq, NULL, 0);
		verve_net_pause();
	}
}

/* Takes the next completion of a side. It must come within a simulated second. */
static inline struct fi_cq_tagged_entry ep_pair_comp(struct ep_pair *pair, struct ep_side *side)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	for (int i = 0; (ret = fi_cq_read(side->cq, &entry, 1)) == -FI_EAGAIN && i < 1000; i++)
		ep_pair_run(pair, 1);
	cr_assert_eq(ret, 1, "%s", fi_strerror((int)-ret));
	return entry;
}

static inline struct fi_cq_err_entry ep_pair_error(struct ep_pair *pair, struct ep_side *side,
	int err)
{
	struct fi_cq_err_entry entry = {0};
	struct fi_cq_tagged_entry comp;
	ssize_t ret;

	for (int i = 0; (ret = fi_cq_read(side->cq, &comp, 1)) == -FI_EAGAIN && i < 1000; i++)
		ep_pair_run(pair, 1);
	cr_assert_eq(ret, -FI_EAVAIL);
	cr_assert_eq(fi_cq_readerr(side->cq, &entry, 0), 1);
	cr_assert_eq(entry.err, err, "%s", fi_strerror(entry.err));
	return entry;
}

static inline void ep_pair_nothing(struct ep_pair *pair, struct ep_side *side)
{
	struct fi_cq_tagged_entry entry;

	ep_pair_run(pair, 50);
	cr_assert_eq(fi_cq_read(side->cq, &entry, 1), -FI_EAGAIN);
}

#endif
