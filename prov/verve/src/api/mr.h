/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions of the application: fi_mr(3). Any thread. */
#ifndef VERVE_API_MR_H
#define VERVE_API_MR_H

#include <rdma/fi_domain.h>

/*
 * fid_domain's registration calls. One segment a region; the key is the rkey and addresses are
 * virtual (FI_MR_PROV_KEY, FI_MR_VIRT_ADDR); fi_mr_desc is a struct verve_mr_region *. The device
 * grants what access says and no more. Reading it locally is always granted; access 0 grants
 * nothing else. -FI_EINVAL: access, offset, segments or key; -FI_EBADFLAGS; -FI_ENOSYS: not host
 * memory; -FI_EKEYREJECTED: remote access where the application would choose the key; or why the
 * registration failed (mr/region.h).
 */
extern struct fi_ops_mr verve_mr_ops;

#endif
