/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_trywait: asks each object in its turn. */
#include "api/trywait.h"

#include <rdma/fi_errno.h>

#include "api/cntr.h"
#include "api/cq.h"
#include "api/eq.h"
#include "base/log.h"

static int object_trywait(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return verve_cq_trywait(verve_cq_from_fid(fid));
	case FI_CLASS_CNTR:
		return verve_cntr_trywait(verve_cntr_from_fid(fid));
	case FI_CLASS_EQ:
		return verve_eq_trywait((struct fid_eq *)fid);
	default:
		VERVE_WARN(CORE, "objects of class %zu have no wait descriptor\n", fid->fclass);
		return -FI_EINVAL;
	}
}

int verve_fabric_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	(void)fabric;
	for (int i = 0; i < count; i++) {
		int ret = object_trywait(fids[i]);

		if (ret)
			return ret;
	}
	return 0;
}
