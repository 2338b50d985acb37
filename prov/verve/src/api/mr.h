/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions of the application: fi_mr(3). Any thread. */
#ifndef VERVE_API_MR_H
#define VERVE_API_MR_H

#include <rdma/fi_domain.h>

/*
 * fid_domain's registration calls: regions of up to VERVE_MR_SEGMENTS_MAX segments. With
 * FI_MR_PROV_KEY, the key of one segment is its rkey (mr/keytab.h), that of several one that peers
 * ask for; without, the application chooses. Peers say virtual addresses with FI_MR_VIRT_ADDR, else
 * offsets from the first byte. fi_mr_desc is a struct verve_mr_region * of the first segment. The
 * device grants what access says and no more. Reading it locally is always granted; access 0 grants
 * nothing else. -FI_EINVAL: access, offset or segments; -FI_EBADFLAGS; -FI_ENOSYS: not host memory;
 * -FI_EOPNOTSUPP: a dmabuf (FI_MR_DMABUF, fi_mr_regattr alone) that is not for peers only, or that the
 * device does not take; -FI_ENOKEY: the application chose a key twice; or why the registration failed (mr/region.h).
 */
extern struct fi_ops_mr verve_mr_ops;

/* fi_mr_map_raw(3): a raw key is 8 bytes, and maps to itself. -FI_EINVAL: another size; -FI_EBADFLAGS. */
int verve_mr_map_raw(const struct fi_mr_map_raw *map);

#endif
