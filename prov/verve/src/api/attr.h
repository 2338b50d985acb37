/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Attributes: what verve offers on every port: capabilities, sizes, order. To offer a new
 * capability, add its bit to VERVE_CAPS. All of it is constant once the configuration is loaded.
 * Any thread.
 */
#ifndef VERVE_API_ATTR_H
#define VERVE_API_ATTR_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"

enum {
	VERVE_PROV_VERSION = FI_VERSION(0, 2),
	VERVE_INJECT_SIZE = 4096, /* bytes; less if the eager size is smaller */
	VERVE_TX_SIZE_MAX = VERVE_CONFIG_TX_SIZE_MAX, /* operations */
	VERVE_RX_SIZE = 65536, /* receives that an fi_info reports; memory alone limits them */
	VERVE_RX_SIZE_MAX = 1 << 20, /* receives that an application may ask for */
};

/*
 * libfabric 2.x deprecates the names of these mr_modes, and using them breaks the build.
 * Applications still use the values.
 */
enum {
	VERVE_MR_BASIC = 1 << 0,    /* FI_MR_BASIC */
	VERVE_MR_SCALABLE = 1 << 1, /* FI_MR_SCALABLE */
};

/* The most bytes of one message or one RMA operation. */
static const size_t VERVE_MSG_SIZE_MAX = SIZE_MAX / 2;

/*
 * FI_TAGGED_DIRECTED_RECV of libfabric 2.0 and later. Before 2.0 the bit was no capability. It is
 * granted only if the application asks for it.
 */
static const uint64_t VERVE_TAGGED_DIRECTED_RECV = UINT64_C(1) << 45;

/*
 * Capabilities of the transmit side alone, of the receive side alone, and of the domain. All other
 * capabilities belong to both sides.
 */
static const uint64_t VERVE_TX_CAPS = FI_SEND | FI_READ | FI_WRITE | FI_FENCE;
static const uint64_t VERVE_RX_CAPS = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV |
				      FI_SOURCE | FI_DIRECTED_RECV | FI_RMA_EVENT;
static const uint64_t VERVE_DOMAIN_CAPS = FI_LOCAL_COMM | FI_REMOTE_COMM;
static const uint64_t VERVE_CAPS = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | VERVE_TX_CAPS |
				   VERVE_RX_CAPS | VERVE_DOMAIN_CAPS;

/* Operation flags that an application may make the default of an endpoint: fi_endpoint(3). */
static const uint64_t VERVE_TX_OP_FLAGS = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
					  FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
					  FI_MATCH_COMPLETE;
static const uint64_t VERVE_RX_OP_FLAGS = FI_COMPLETION | FI_MULTI_RECV | FI_TRANSMIT_COMPLETE;

/* Bytes that an application may inject: fi_endpoint(3), inject_size. */
static inline size_t verve_attr_inject_size(void)
{
	return verve_config.eager_size < VERVE_INJECT_SIZE ? verve_config.eager_size :
							     VERVE_INJECT_SIZE;
}

/*
 * True if format is FI_FORMAT_UNSPEC, FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6, or
 * FI_SOCKADDR_IP (libfabric 2.3 and later).
 */
bool verve_attr_is_ip_format(uint32_t format);

/* True if tclass is FI_TC_UNSPEC, a label such as FI_TC_LOW_LATENCY, or fi_tc_dscp_set(0 to 63). */
bool verve_attr_is_tclass(uint32_t tclass);

/*
 * The code point of a traffic class, as dscp of struct verve_net_qp_attr (net/qp.h) has it; 0: the
 * default. FI_TC_BEST_EFFORT is the default, too, as is what is no traffic class.
 */
uint16_t verve_attr_dscp(uint32_t tclass);

/*
 * Allocates an fi_info with everything that is the same on all ports. The caller adds what differs
 * from port to port, and frees it with fi_freeinfo. NULL: no memory.
 */
struct fi_info *verve_attr_alloc_info(void);

#endif
