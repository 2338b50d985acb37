/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions of the application: fi_mr(3). Any thread. */
#ifndef VERVE_API_MR_H
#define VERVE_API_MR_H

#include <rdma/fi_domain.h>

/*
 * The registration calls of struct fid_domain, for regions of 1 to VERVE_MR_SEGMENTS_MAX segments.
 * A region holds a reference of the domain until it is closed.
 *
 * Keys: with FI_MR_PROV_KEY, a region of one segment has its rkey as key (mr/keytab.h), and a
 * region of several segments has a key that peers ask for. Without FI_MR_PROV_KEY, the application
 * chooses the key. Addresses: with FI_MR_VIRT_ADDR, peers give virtual addresses, otherwise offsets
 * from the region's first byte. fi_mr_desc returns the struct verve_mr_region * of the first
 * segment.
 *
 * Access: the device grants to peers what access says, and no more. The device may always read the
 * memory for local operations, and through a memory window (mr/window.h) write it; access 0 grants
 * nothing else.
 *
 * -FI_EINVAL: access, offset or segments are invalid; -FI_EBADFLAGS; -FI_ENOSYS: the memory is not
 * host memory; -FI_EOPNOTSUPP: a dmabuf (FI_MR_DMABUF, fi_mr_regattr alone) with access for local
 * operations, or one that the device does not take, or memory that no device may use (net/mr.h);
 * -FI_ENOKEY: the key that the application chose is in use, and peers are to have access; or an
 * error of the registration (mr/region.h).
 */
extern struct fi_ops_mr verve_mr_ops;

/*
 * For fi_mr_map_raw of fi_mr(3): a raw key has 8 bytes, and maps to itself. -FI_EINVAL: another
 * size; -FI_EBADFLAGS.
 */
int verve_mr_map_raw(const struct fi_mr_map_raw *map);

#endif
