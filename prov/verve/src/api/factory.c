/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Factory: the tables of functions of fabrics and domains. */
#include "api/factory.h"

#include "api/atomic.h"
#include "api/av.h"
#include "api/cntr.h"
#include "api/cq.h"
#include "api/domain.h"
#include "api/ep_open.h"
#include "api/eq.h"
#include "api/ext.h"
#include "api/fabric.h"
#include "api/mr.h"
#include "api/poll.h"
#include "api/srx.h"
#include "api/stubs.h"
#include "api/stx.h"
#include "api/trywait.h"

static int domain_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_MAP_RAW_MR:
		return verve_mr_map_raw(arg);
	case FI_UNMAP_KEY:
		return 0;
	default:
		return verve_stub_control(fid, command, arg);
	}
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = verve_domain_close,
	.bind = verve_domain_bind,
	.control = domain_control,
	.ops_open = verve_domain_ops_open,
	.tostr = verve_stub_tostr,
	.ops_set = verve_stub_ops_set,
};

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = verve_av_open,
	.cq_open = verve_cq_open,
	.endpoint = verve_ep_open,
	.scalable_ep = verve_stub_domain_scalable_ep,
	.cntr_open = verve_cntr_open,
	.poll_open = verve_poll_open,
	.stx_ctx = verve_stx_open,
	.srx_ctx = verve_srx_open,
	.query_atomic = verve_domain_query_atomic,
	.query_collective = verve_stub_domain_query_collective,
	.endpoint2 = verve_stub_domain_endpoint2,
};

static int open_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		       void *context)
{
	static const struct verve_domain_tables tables = {
		.fid = &domain_fid_ops,
		.domain = &domain_ops,
		.mr = &verve_mr_ops,
	};

	return verve_domain_open(fabric, info, &tables, domain, context);
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = open_domain,
	.passive_ep = verve_stub_fabric_passive_ep,
	.eq_open = verve_eq_open,
	.wait_open = verve_stub_fabric_wait_open,
	.trywait = verve_fabric_trywait,
	.domain2 = verve_stub_fabric_domain2,
};

int verve_factory_open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
			      void *context)
{
	return verve_fabric_open(attr, &fabric_ops, fabric, context);
}
