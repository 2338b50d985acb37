/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared transmit context: checks its attributes, and has no other task. */
#include "api/stx.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "api/attr.h"
#include "api/domain.h"
#include "api/stubs.h"
#include "base/log.h"
#include "xport/request.h"

static int stx_close(struct fid *fid)
{
	struct verve_stx *stx = verve_stx_from_fid(fid);

	verve_domain_put(stx->domain);
	free(stx);
	return 0;
}

static int stx_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid;
	(void)flags;
	VERVE_WARN(EP_CTRL,
		   "objects of class %zu are bound to the endpoints, not to their shared transmit "
		   "context\n",
		   bfid->fclass);
	return -FI_EINVAL;
}

static struct fi_ops stx_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = stx_close,
	.bind = stx_bind,
	.control = verve_stub_control,
	.ops_open = verve_stub_ops_open,
	.tostr = verve_stub_tostr,
	.ops_set = verve_stub_ops_set,
};

static struct fi_ops_ep stx_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = verve_stub_ep_cancel,
	.getopt = verve_stub_ep_getopt,
	.setopt = verve_stub_ep_setopt,
	.tx_ctx = verve_stub_ep_tx_ctx,
	.rx_ctx = verve_stub_ep_rx_ctx,
	.rx_size_left = verve_stub_ep_rx_size_left,
	.tx_size_left = verve_stub_ep_tx_size_left,
};

/* All capabilities, except those of the receive side alone. */
static uint64_t capabilities(void)
{
	return VERVE_CAPS & ~VERVE_RX_CAPS;
}

static int stx_check(const struct fi_tx_attr *attr)
{
	size_t inject_size = verve_attr_inject_size();

	if (attr->caps & ~capabilities()) {
		VERVE_WARN(EP_CTRL, "a shared transmit context cannot have capabilities 0x%llx\n",
			   (unsigned long long)(attr->caps & ~capabilities()));
		return -FI_EINVAL;
	}
	if (attr->iov_limit > VERVE_IOV_LIMIT || attr->rma_iov_limit > VERVE_IOV_LIMIT ||
	    attr->size > VERVE_TX_SIZE_MAX || attr->inject_size > inject_size) {
		VERVE_WARN(EP_CTRL,
			   "a shared transmit context takes %d segments, %d operations and %zu "
			   "bytes to inject\n",
			   VERVE_IOV_LIMIT, VERVE_TX_SIZE_MAX, inject_size);
		return -FI_EINVAL;
	}
	return 0;
}

int verve_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **fid,
		   void *context)
{
	struct verve_stx *stx;
	int ret;

	ret = attr ? stx_check(attr) : 0;
	if (ret)
		return ret;
	stx = calloc(1, sizeof(*stx));
	if (!stx)
		return -FI_ENOMEM;
	stx->domain = verve_domain_from_fid(&domain->fid);
	stx->fid.fid.fclass = FI_CLASS_STX_CTX;
	stx->fid.fid.context = context;
	stx->fid.fid.ops = &stx_fid_ops;
	stx->fid.ops = &stx_ops;
	verve_domain_get(stx->domain);
	*fid = &stx->fid;
	return 0;
}
