/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verbs: the structs behind net's open objects, and the errors of verbs calls as libfabric's. For
 * the sources of net alone: only this header, gid.h and port.h include infiniband/verbs.h.
 */
#ifndef VERVE_NET_VERBS_H
#define VERVE_NET_VERBS_H

#include <atomic_ops.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "net/port_info.h"

/* An open device. Constant while it is open, except inline_max and lost. */
struct verve_net_device {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct verve_net_port port;
	struct verve_net_portaddr addr; /* the chosen one; port.addrs points here */
	uint16_t lid;
	uint8_t mtu_log2;
	bool lost; /* the device is gone, and the log says so; service thread only */
	volatile AO_t inline_max; /* bytes: no queue pair is opened with more inline data */
};

struct verve_net_channel {
	struct ibv_comp_channel *channel;
};

struct verve_net_cq {
	struct ibv_cq *cq;
	bool lost; /* polling has failed, and the log says so */
};

struct verve_net_srq {
	struct ibv_srq *srq;
	struct verve_lock lock; /* guards the fields below; taken last */
	LIST_HEAD(, verve_net_qp) users;
	uint32_t opened, closed; /* numbers of queue pairs; both wrap */
};

/*
 * The negative libfabric error for errno, or for the positive number that a verbs call returned.
 * Some drivers fail without a number: 0 becomes -FI_EIO.
 */
static inline int verve_net_error(int error)
{
	return error > 0 ? -error : -EIO;
}

#endif
