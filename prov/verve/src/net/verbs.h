/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verbs: the structs behind net's open objects, and the errors of verbs calls as libfabric's. For
 * the sources of net alone. Only this header, gid.h, port.h and fork.c include infiniband/verbs.h.
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

/* This end of a path: see verve_path_get. Without padding: compared as bytes. */
struct verve_path {
	struct verve_net_gid gid;
	uint16_t lid;  /* the LID of the port that packets come from and go to; 0 on Ethernet */
	uint16_t pkey; /* partition key; 0xffff on Ethernet */
	uint16_t pkey_index;
	uint8_t gid_index;
	uint8_t mtu_log2;
	bool grh; /* packets to this end need a global route header */
	uint8_t path_bits; /* by how much lid is more than the port's first LID */
};

/* An open device. Constant while it is open, except where a comment says otherwise. */
struct verve_net_device {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct verve_net_port port;
	struct verve_net_portaddr addr; /* the chosen one; port.addrs points here */
	struct verve_lock look_lock;	/* held by the worker that looks for the path anew */
	struct verve_lock path_lock;	/* guards path and away; taken last */
	struct verve_path path;		/* changes with the port: net/path.h */
	bool away;			/* the port does not have the address at present */
	volatile AO_t stale;		/* an event says that the port has changed */
	bool lost; /* the device is gone, and the log says so; service thread only */
	volatile AO_t had_qps;	  /* a queue pair was opened */
	volatile AO_t no_qp_warned;   /* second of the last warning of a failed open; 0: none */
	volatile AO_t connect_warned; /* second of the last warning of a failed connect; 0: none */
	volatile AO_t inline_max; /* bytes of inline data of a new queue pair, at most; changes */
	volatile AO_t inline_good; /* the most for which a queue pair was made so far */
};

struct verve_net_channel {
	struct ibv_comp_channel *channel;
};

struct verve_net_cq {
	struct ibv_cq *cq;
	bool lost; /* polling has failed, and the log says so */
	bool binds; /* of a binder of memory windows (net/mw.h), not of an endpoint */
};

/* A thread domain: net/td.h. */
struct verve_td {
	struct ibv_td *td; /* NULL: there is none */
	struct ibv_pd *pd; /* of its queue pairs */
};

/* A queue pair of a shared receive queue. */
struct verve_srq_user {
	LIST_ENTRY(verve_srq_user) link;
	uint32_t serial; /* verve_net_qp_serial */
};

struct verve_net_srq {
	struct ibv_srq *srq;
	struct verve_td td;	/* of its queue pairs */
	struct verve_lock lock; /* guards the fields below; taken last */
	LIST_HEAD(, verve_srq_user) users;
	uint32_t opened, closed; /* numbers of queue pairs; both wrap */
	bool binds;		 /* of a binder of memory windows, not of an endpoint */
};

/* Before the queue pair can receive: it takes no buffer without being counted. */
void verve_srq_join(struct verve_net_srq *srq, struct verve_srq_user *user);
/* After ibv_destroy_qp(3): the queue pair can take no buffer any more. */
void verve_srq_leave(struct verve_net_srq *srq, struct verve_srq_user *user);

struct verve_net_qp;

struct verve_net_bind;
/* What libibverbs is told of a bind. */
void verve_qp_bind_info(const struct verve_net_bind *bind, struct ibv_mw_bind_info *info);

/* For requests that net/qp.h does not know. */
struct ibv_qp *verve_qp_handle(const struct verve_net_qp *qp);

/*
 * The negative libfabric error for errno, or for the positive number that a verbs call returned.
 * Some drivers fail without a number: 0 becomes -FI_EIO. So errno is 0 before each verbs call that
 * returns a pointer: else it would be that of an earlier call.
 */
static inline int verve_net_error(int error)
{
	return error > 0 ? -error : -EIO;
}

/*
 * The end of the log's line about a queue or queue pair that could not be opened: what the user can
 * do, or nothing. mlx5, bnxt_re and others pin the memory of queues, which is the user's. EAGAIN is
 * the kernel's word for the limits of cgroups (Linux, kernel/cgroup/rdma.c: rdmacg_try_charge).
 */
static inline const char *verve_net_queue_remedy(int ret)
{
	switch (ret) {
	case -ENOMEM:
		return ": the driver may pin the queue's memory: raise the limit of locked memory "
		       "(ulimit -l, LimitMEMLOCK=)";
	case -EAGAIN:
		return ": the cgroup may allow no more objects of the device: raise its rdma.max";
	default:
		return "";
	}
}

#endif
