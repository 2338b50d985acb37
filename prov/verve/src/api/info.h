/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Info: fi_getinfo(3): what verve offers on each port, and which of it an application asked for.
 * Any thread; nothing is kept between calls.
 */
#ifndef VERVE_API_INFO_H
#define VERVE_API_INFO_H

#include <rdma/fabric.h>
#include <stddef.h>
#include <stdint.h>

#include "net/device.h"

/* struct fi_provider's getinfo. -FI_ENODATA: nothing that was asked for, and the log says why. */
int verve_info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info);

/* The same for the given ports. */
int verve_info_choose(const struct verve_net_port *ports, size_t count, uint32_t version,
		      const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info);

#endif
