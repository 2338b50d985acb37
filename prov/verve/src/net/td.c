/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Thread domain: opening one, with the protection domain of its queue pairs. */
#include "net/td.h"

#include <rdma/fi_errno.h>

#include "base/log.h"

void verve_td_open(struct verve_net_device *dev, struct verve_td *td)
{
	struct ibv_td_init_attr attr = {0};
	struct ibv_parent_domain_init_attr parent = {.pd = dev->pd};

	td->pd = dev->pd;
	errno = 0;
	td->td = parent.td = ibv_alloc_td(dev->ctx, &attr);
	if (!td->td) {
		if (errno != EOPNOTSUPP)
			VERVE_INFO(EP_CTRL, "%s: no thread domain: %s\n", dev->port.device,
				   fi_strerror(-verve_net_error(errno)));
		return;
	}
	errno = 0;
	td->pd = ibv_alloc_parent_domain(dev->ctx, &parent);
	if (td->pd)
		return;
	VERVE_INFO(EP_CTRL, "%s: no parent domain: %s\n", dev->port.device,
		   fi_strerror(-verve_net_error(errno)));
	ibv_dealloc_td(td->td);
	*td = (struct verve_td){.pd = dev->pd};
}

void verve_td_close(struct verve_td *td)
{
	int ret;

	if (!td->td)
		return;
	ret = ibv_dealloc_pd(td->pd);
	if (!ret)
		ret = ibv_dealloc_td(td->td);
	if (ret)
		VERVE_WARN(EP_CTRL, "%s: cannot free a thread domain: %s\n",
			   ibv_get_device_name(td->td->context->device), strerror(ret));
}
