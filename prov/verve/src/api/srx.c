/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive context: an endpoint that only receives, over a shared engine. */
#include "api/srx.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "api/attr.h"
#include "api/domain.h"
#include "api/msg.h"
#include "api/stubs.h"
#include "api/tagged.h"
#include "base/log.h"
#include "engine/engine.h"
#include "xport/request.h"
#include "xport/xport.h"

void verve_srx_get(struct verve_srx *srx)
{
	AO_fetch_and_add1(&srx->references);
}

void verve_srx_put(struct verve_srx *srx)
{
	AO_fetch_and_sub1_release(&srx->references);
}

static int srx_close(struct fid *fid)
{
	struct verve_srx *srx = verve_srx_from_fid(fid);
	AO_t references = AO_load_acquire(&srx->references);

	if (references) {
		VERVE_WARN(EP_CTRL,
			   "cannot close shared receive context %p: %zu endpoints use it\n",
			   (void *)srx, (size_t)references);
		return -FI_EBUSY;
	}
	verve_engine_close_shared(srx->ep.engine);
	verve_domain_put(srx->ep.domain);
	free(srx);
	return 0;
}

static int srx_control(struct fid *fid, int command, void *arg)
{
	struct verve_ep *ep = &verve_srx_from_fid(fid)->ep;

	switch (command) {
	case FI_ENABLE:
		return 0; /* it is enabled already */
	case FI_GETOPSFLAG:
		return verve_ep_get_op_flags(ep, arg);
	case FI_SETOPSFLAG:
		return verve_ep_set_op_flags(ep, *(uint64_t *)arg);
	default:
		return -FI_ENOSYS;
	}
}

static int srx_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid;
	(void)flags;
	VERVE_WARN(EP_CTRL,
		   "objects of class %zu are bound to the endpoints, not to their shared receive "
		   "context\n",
		   bfid->fclass);
	return -FI_EINVAL;
}

static struct fi_ops srx_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = srx_close,
	.bind = srx_bind,
	.control = srx_control,
	.ops_open = verve_stub_ops_open,
	.tostr = verve_stub_tostr,
	.ops_set = verve_stub_ops_set,
};

/* Sets the receiving calls. All other calls return -FI_ENOSYS. */
static void set_ops(struct verve_srx *srx)
{
	struct fid_ep *fid = &srx->ep.fid;

	srx->msg = verve_stub_msg;
	srx->msg.recv = verve_msg_ops.recv;
	srx->msg.recvv = verve_msg_ops.recvv;
	srx->msg.recvmsg = verve_msg_ops.recvmsg;
	srx->tagged = verve_stub_tagged;
	srx->tagged.recv = verve_tagged_ops.recv;
	srx->tagged.recvv = verve_tagged_ops.recvv;
	srx->tagged.recvmsg = verve_tagged_ops.recvmsg;
	fid->fid.ops = &srx_fid_ops;
	fid->ops = &verve_ep_ops;
	fid->cm = &verve_stub_cm;
	fid->msg = &srx->msg;
	fid->tagged = &srx->tagged;
	fid->rma = &verve_stub_rma;
	fid->atomic = &verve_stub_atomic;
	fid->collective = &verve_stub_collective;
}

/* All capabilities, except those of the transmit side alone. */
static uint64_t capabilities(void)
{
	return VERVE_CAPS & ~VERVE_TX_CAPS;
}

static int srx_check(const struct verve_domain *domain, const struct fi_rx_attr *attr)
{
	uint64_t newer = FI_VERSION_GE(domain->api_version, FI_VERSION(2, 0)) ?
				 VERVE_TAGGED_DIRECTED_RECV :
				 0;

	if (attr->caps & ~(capabilities() | newer)) {
		VERVE_WARN(EP_CTRL, "a shared receive context cannot have capabilities 0x%llx\n",
			   (unsigned long long)(attr->caps & ~(capabilities() | newer)));
		return -FI_EINVAL;
	}
	if (attr->op_flags & ~VERVE_RX_OP_FLAGS) {
		VERVE_WARN(EP_CTRL, "flags 0x%llx cannot be the default of receives\n",
			   (unsigned long long)(attr->op_flags & ~VERVE_RX_OP_FLAGS));
		return -FI_EINVAL;
	}
	if (attr->iov_limit > VERVE_IOV_LIMIT || attr->size > VERVE_RX_SIZE_MAX) {
		VERVE_WARN(EP_CTRL, "a shared receive context takes %d segments and %d receives\n",
			   VERVE_IOV_LIMIT, VERVE_RX_SIZE_MAX);
		return -FI_EINVAL;
	}
	return 0;
}

static int open_engine(struct verve_srx *srx)
{
	struct verve_domain *domain = srx->ep.domain;
	struct verve_xport_attr xport = {
		.mr_cache = &domain->mr_cache,
		.min_multi_recv = srx->ep.min_multi_recv,
	};
	struct verve_engine_attr attr = {
		.elide_lock = verve_domain_elides_locks(domain),
		.xport = &xport,
	};

	return verve_engine_open_shared(&attr, &srx->ep.engine);
}

int verve_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **fid,
		   void *context)
{
	struct verve_srx *srx;
	int ret;

	ret = attr ? srx_check(verve_domain_from_fid(&domain->fid), attr) : 0;
	if (ret)
		return ret;
	srx = calloc(1, sizeof(*srx));
	if (!srx)
		return -FI_ENOMEM;
	srx->ep.domain = verve_domain_from_fid(&domain->fid);
	srx->ep.owner = &srx->ep;
	LIST_INIT(&srx->ep.aliases);
	srx->ep.caps = attr && attr->caps ? attr->caps : capabilities() & ~FI_DIRECTED_RECV;
	verve_ep_set_directed(&srx->ep, srx->ep.caps);
	srx->ep.rx_op_flags = attr ? attr->op_flags : 0;
	srx->ep.min_multi_recv = VERVE_EP_MIN_MULTI_RECV;
	verve_ep_update_flags(&srx->ep);
	set_ops(srx);
	ret = open_engine(srx);
	if (ret) {
		free(srx);
		return ret;
	}
	srx->ep.fid.fid.fclass = FI_CLASS_SRX_CTX;
	srx->ep.fid.fid.context = context;
	verve_domain_get(srx->ep.domain);
	*fid = &srx->ep.fid;
	return 0;
}
