/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * On-demand paging: whether registrations of a device leave memory where the kernel likes it, and
 * the region of all memory that spares local buffers theirs. FI_VERVE_ODP asks for it, the device must
 * have it. One per registration cache; constant while it is open.
 *
 * Source: ibv_query_device_ex(3), odp_caps; ibv_reg_mr(3), IBV_ACCESS_ON_DEMAND.
 */
#ifndef VERVE_MR_ODP_H
#define VERVE_MR_ODP_H

#include <stdbool.h>

struct verve_mr_region;
struct verve_net_device;

struct verve_mr_odp {
	bool on;
	bool atomics; /* of peers, too */
	struct verve_mr_region *all; /* of this process alone: no peer reaches it; NULL: none */
};

/* Never fails: what the device cannot do is done without, and a line of the log says which. */
void verve_mr_odp_open(struct verve_mr_odp *odp, struct verve_net_device *dev);
void verve_mr_odp_close(struct verve_mr_odp *odp);
/* What to register with that is to grant access (VERVE_NET_*): paged on demand if it may be. */
unsigned verve_mr_odp_access(const struct verve_mr_odp *odp, unsigned access);

#endif
