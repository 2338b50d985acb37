/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * On-demand paging: registered memory is not pinned, and the device asks the kernel for pages. If
 * the device can, one region covers all memory of the process, and local buffers need no
 * registration. FI_VERVE_ODP=on asks for it; the device must support it. One per registration
 * cache; constant while it is open.
 *
 * Source: ibv_query_device_ex(3), odp_caps; ibv_reg_mr(3), IBV_ACCESS_ON_DEMAND.
 */
#ifndef VERVE_MR_ODP_H
#define VERVE_MR_ODP_H

#include <stdbool.h>

struct verve_mr_region;
struct verve_net_device;

struct verve_mr_odp {
	bool on;      /* registrations are paged on demand */
	bool atomics; /* registrations with remote atomics are paged on demand, too */
	struct verve_mr_region *all; /* all memory, local access only; NULL: no such region */
};

/* Never fails: if the device cannot page on demand, memory is pinned, and the log says so. */
void verve_mr_odp_open(struct verve_mr_odp *odp, struct verve_net_device *dev);
/* Closes the region of all memory. */
void verve_mr_odp_close(struct verve_mr_odp *odp);
/* The access to register with (VERVE_NET_*): adds VERVE_NET_ON_DEMAND if the device supports it. */
unsigned verve_mr_odp_access(const struct verve_mr_odp *odp, unsigned access);

#endif
