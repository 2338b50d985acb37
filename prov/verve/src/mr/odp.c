/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* On-demand paging: compares the user's wish with the device's abilities. */
#include "mr/odp.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "mr/region.h"
#include "net/device.h"

void verve_mr_odp_open(struct verve_mr_odp *odp, struct verve_net_device *dev)
{
	const struct verve_net_port *port = verve_net_device_port(dev);

	*odp = (struct verve_mr_odp){0};
	if (strcmp(verve_config.odp, "on"))
		return;
	if (!port->limits.odp_rc) {
		VERVE_WARN(MR,
			   "%s: FI_VERVE_ODP=on, but the device does not page on demand for sends, "
			   "receives, writes and reads of RC, or not rightly: memory is pinned\n",
			   port->device);
		return;
	}
	odp->on = true;
	odp->atomics = port->limits.odp_atomic;
	/* If this fails, verve_mr_region_open logs why, and each buffer is registered by itself. */
	if (port->limits.odp_implicit &&
	    verve_mr_region_open(dev, NULL, SIZE_MAX, VERVE_NET_LOCAL_WRITE | VERVE_NET_ON_DEMAND,
				 &odp->all))
		odp->all = NULL;
	VERVE_INFO(MR, "%s: memory is paged on demand: no registration pins or is kept, %s\n",
		   port->device,
		   odp->all ? "local buffers need none" : "each buffer has its own");
}

void verve_mr_odp_close(struct verve_mr_odp *odp)
{
	if (odp->all)
		verve_mr_region_close(odp->all);
}

unsigned verve_mr_odp_access(const struct verve_mr_odp *odp, unsigned access)
{
	bool pinned = access & VERVE_NET_REMOTE_ATOMIC && !odp->atomics;

	return odp->on && !pinned ? access | VERVE_NET_ON_DEMAND : access;
}
