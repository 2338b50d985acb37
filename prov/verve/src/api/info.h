/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Info: fi_getinfo(3): what verve offers on each port, and which of it an application asked for.
 * Any thread; nothing is kept between calls.
 */
#ifndef VERVE_API_INFO_H
#define VERVE_API_INFO_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "net/device.h"

/* All names of fabrics begin with it. */
#define VERVE_FABRIC_PREFIX "verve-"

enum {
	VERVE_INJECT_SIZE = 4096, /* bytes; less if messages of that size are not eager */
	VERVE_TX_SIZE_MAX = 65536,
	VERVE_RX_SIZE = 65536, /* receives are limited by memory alone */
	VERVE_RX_SIZE_MAX = 1 << 20,
	VERVE_FABRIC_NAME_MAX = 32,
};

/* Bytes of one message or one RMA operation. */
static const size_t VERVE_MSG_SIZE_MAX = SIZE_MAX / 2;

/* FI_TAGGED_DIRECTED_RECV of libfabric 2.0 and later; before, the bit was no capability. Only for who asks. */
static const uint64_t VERVE_TAGGED_DIRECTED_RECV = UINT64_C(1) << 45;

/* What there is in each direction alone, and where messages go; the rest is both directions'. */
static const uint64_t VERVE_TX_CAPS = FI_SEND | FI_READ | FI_WRITE | FI_FENCE;
static const uint64_t VERVE_RX_CAPS = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV |
				      FI_SOURCE | FI_DIRECTED_RECV | FI_RMA_EVENT;
static const uint64_t VERVE_DOMAIN_CAPS = FI_LOCAL_COMM | FI_REMOTE_COMM;
static const uint64_t VERVE_CAPS = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | VERVE_TX_CAPS |
				   VERVE_RX_CAPS | VERVE_DOMAIN_CAPS;

/* What an endpoint may do by default, fi_endpoint(3). */
static const uint64_t VERVE_TX_OP_FLAGS = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
					  FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
					  FI_MATCH_COMPLETE;
static const uint64_t VERVE_RX_OP_FLAGS = FI_COMPLETION | FI_MULTI_RECV | FI_TRANSMIT_COMPLETE;

/* struct fi_provider's getinfo. -FI_ENODATA: nothing that was asked for, and the log says why. */
int verve_info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info);

/* The same for the given ports. */
int verve_info_choose(const struct verve_net_port *ports, size_t count, uint32_t version,
		      const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info);

static inline size_t verve_info_inject_size(void)
{
	return verve_config.eager_size < VERVE_INJECT_SIZE ? verve_config.eager_size :
							     VERVE_INJECT_SIZE;
}

/* FI_FORMAT_UNSPEC, or one of FI_SOCKADDR... that is an IP address; FI_SOCKADDR_IP of 2.3, too. */
bool verve_info_is_ip_format(uint32_t format);

/*
 * Domains are named after their device, "mlx5_0", with the number of any port but the first behind
 * it, "mlx5_0:2". Both texts have room for VERVE_NET_NAME_MAX bytes. -FI_EINVAL: not such a name.
 */
void verve_info_format_domain(const struct verve_net_port *port, char *name);
int verve_info_parse_domain(const char *name, char *device, uint8_t *port_num);

#endif
