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

/*
 * getinfo of struct fi_provider. The caller frees *info with fi_freeinfo. -FI_ENODATA: verve has
 * nothing that fits, and the log says why; -FI_EINVAL: node, service and flags contradict each
 * other; -FI_ENOMEM; or an error of listing the ports.
 */
int verve_info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info);

/* As verve_info_get, but for count given ports, which stay the caller's. */
int verve_info_choose(const struct verve_net_port *ports, size_t count, uint32_t version,
		      const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info);

#endif
