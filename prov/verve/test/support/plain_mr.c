/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of a device that regions need beside registering and deregistering, for programs that
 * bring those two themselves.
 */
#include <stdlib.h>

#include "net/device.h"
#include "net/mr.h"
#include "net/mw.h"

const struct verve_net_port *verve_net_device_port(const struct verve_net_device *dev)
{
	static const struct verve_net_port port = {.device = "plain"};

	(void)dev;
	return &port;
}

int verve_net_mr_reg_iova(struct verve_net_device *dev, void *addr, size_t len, uint64_t iova,
			  unsigned access, struct verve_net_mr *mr)
{
	(void)iova;
	return verve_net_mr_reg(dev, addr, len, access, mr);
}

int verve_net_mr_reg_dmabuf(struct verve_net_device *dev, int fd, uint64_t offset, size_t len,
			    uint64_t iova, unsigned access, struct verve_net_mr *mr)
{
	(void)dev;
	(void)fd;
	(void)offset;
	(void)len;
	(void)iova;
	(void)access;
	(void)mr;
	abort(); /* nobody has one */
}

/* The device has no windows (limits.mw): nobody calls these. */

int verve_net_binder_open(struct verve_net_device *dev, uint64_t patience, bool reads,
			  struct verve_net_binder **binder)
{
	(void)dev;
	(void)reads;
	(void)patience;
	(void)binder;
	abort();
}

void verve_net_binder_close(struct verve_net_binder *binder)
{
	(void)binder;
	abort();
}

int verve_net_binder_read(struct verve_net_binder *binder, void *to, uint32_t lkey,
			  const void *from, uint32_t rkey, uint32_t len)
{
	(void)binder;
	(void)to;
	(void)lkey;
	(void)from;
	(void)rkey;
	(void)len;
	abort();
}

int verve_net_mw_alloc(struct verve_net_device *dev, bool for_peer, struct verve_net_mw *mw)
{
	(void)dev;
	(void)for_peer;
	(void)mw;
	abort();
}

uint32_t verve_net_mw_next_key(const struct verve_net_mw *mw)
{
	(void)mw;
	abort();
}

void verve_net_mw_posted(struct verve_net_mw *mw)
{
	(void)mw;
	abort();
}

int verve_net_mw_free(struct verve_net_mw *mw)
{
	(void)mw;
	abort();
}

int verve_net_mw_bind(struct verve_net_binder *binder, struct verve_net_mw *mw,
		      const struct verve_net_mr *mr, void *addr, size_t len, unsigned access)
{
	(void)binder;
	(void)mw;
	(void)mr;
	(void)addr;
	(void)len;
	(void)access;
	abort();
}

int verve_net_mw_unbind(struct verve_net_binder *binder, struct verve_net_mw *mw,
			const struct verve_net_mr *mr, void *addr)
{
	(void)binder;
	(void)mw;
	(void)mr;
	(void)addr;
	abort();
}
