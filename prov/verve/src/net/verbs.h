/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verbs: what the files of net share about open objects, and verbs' errors as libfabric's.
 * The only header, with gid.h and port.h, that shows infiniband/verbs.h; for net's sources
 * alone.
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

/* Constant while open, except inline_max and lost. */
struct verve_net_device {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct verve_net_port port;
	struct verve_net_portaddr addr; /* the chosen one; port.addrs points here */
	uint16_t lid;
	uint8_t mtu_log2;
	bool lost; /* and that was logged; service thread */
	volatile AO_t inline_max; /* bytes: what no queue pair was refused yet */
};

struct verve_net_channel {
	struct ibv_comp_channel *channel;
};

struct verve_net_cq {
	struct ibv_cq *cq;
	bool lost; /* polling failed, and that was logged */
};

struct verve_net_srq {
	struct ibv_srq *srq;
	struct verve_lock lock; /* of what follows; taken last */
	LIST_HEAD(, verve_net_qp) users;
	uint32_t opened, closed; /* queue pairs, ever */
};

/* Negative libfabric error for errno, or for what a verbs call returned; 0 is no error's number. */
static inline int verve_net_error(int error)
{
	return error > 0 ? -error : -EIO;
}

#endif
