/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Path: the device's own end of all its paths, and how it changes while the device is open. For the
 * sources of net alone. Any thread.
 */
#ifndef VERVE_NET_PATH_H
#define VERVE_NET_PATH_H

#include "net/port.h"
#include "net/verbs.h"

/*
 * Fills *path from what verve_port_look found out: the GID of addr, the port's LID and MTU, and the
 * partition key. The key is FI_VERVE_PKEY's, where that is set; otherwise that of the IPoIB
 * interface, 0xffff, or the first with full membership. -FI_ENODEV: the port has no such key, or no
 * LID for FI_VERVE_LID_PATH_BITS. Logs.
 */
int verve_path_fill(const struct verve_net_device *dev, const struct verve_port_attr *attr,
		    const struct verve_net_portaddr *addr, struct verve_path *path);

/*
 * Copies the device's end of its paths to *path. Looks at the port anew if the port has changed:
 * after verve_path_expire, or if GID, MTU, LID or partition are not as before. While the port is
 * down, or the device's IP address is not on it, or the look fails, *path is as it was before.
 * Costs two or three system calls. May log.
 */
void verve_path_get(struct verve_net_device *dev, struct verve_path *path);

/* An event says that the port has changed: the next verve_path_get looks at it. */
void verve_path_expire(struct verve_net_device *dev);

/*
 * NULL: packets can travel between the two ends. Else the reason why they cannot, written to buf of
 * VERVE_NET_REASON_MAX bytes: other subnets or partitions.
 */
const char *verve_path_refuse(const struct verve_net_device *dev, const struct verve_path *path,
			      const struct verve_net_gid *gid, uint16_t pkey, char *buf);

#endif
