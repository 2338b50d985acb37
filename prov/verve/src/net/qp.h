/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reliable-connected queue pairs on a shared receive queue.
 *
 * Source: ibv_create_qp(3), ibv_modify_qp(3), ibv_post_send(3), ibv_post_srq_recv(3).
 * The engine's lock serializes posts. Opening and connecting may be done by the service thread,
 * before the engine is told of the queue pair.
 */
#ifndef VERVE_NET_QP_H
#define VERVE_NET_QP_H

#include <stddef.h>
#include <stdint.h>

#include "net/device.h"

struct verve_net_cq;
struct verve_net_srq;
struct verve_net_qp;

/* Same layout as struct ibv_sge; net asserts it. */
struct verve_net_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

enum verve_net_wr_op {
	VERVE_NET_SEND,
	VERVE_NET_WRITE,
	VERVE_NET_WRITE_IMM,
	VERVE_NET_READ,
	/* Of the 8 aligned bytes at remote_addr; what was there comes into the 8 bytes of sge. */
	VERVE_NET_FETCH_ADD,
	VERVE_NET_COMPARE_SWAP,
};

enum {
	VERVE_NET_SIGNALED = 1 << 0, /* a completion on success; failures always complete */
	VERVE_NET_INLINE = 1 << 1,   /* sge memory is copied before post returns; lkey is not looked at */
};

struct verve_net_wr {
	uint64_t wr_id;
	enum verve_net_wr_op op;
	uint32_t flags;
	uint32_t imm; /* host byte order */
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t compare_add; /* what must be there, or what is added */
	uint64_t swap;	      /* what comes in its place */
	const struct verve_net_sge *sge;
	uint32_t sge_count;
};

struct verve_net_qp_attr {
	struct verve_net_cq *send_cq;
	struct verve_net_cq *recv_cq;
	struct verve_net_srq *srq;
	uint32_t send_wr;     /* work requests outstanding */
	uint32_t send_sge;    /* segments a request */
	uint32_t inline_size; /* bytes wanted; lowered until the device agrees */
};

/* What the two sides of a connection must know of each other. */
struct verve_net_qp_addr {
	struct verve_net_gid gid;
	uint16_t lid; /* 0 on Ethernet */
	uint8_t mtu_log2; /* 8 (256 bytes) to 12 (4096) */
	uint8_t rd_atomic_target;
	uint32_t qp_num;
	uint32_t psn; /* 24 bits: the first this side sends */
};

/* Opens in state INIT, remote read, write and atomic allowed. psn: the first PSN this side will send. */
int verve_net_qp_open(struct verve_net_device *dev, const struct verve_net_qp_attr *attr, uint32_t psn,
		      struct verve_net_qp **qp);
void verve_net_qp_close(struct verve_net_qp *qp);

/* What to tell the peer. */
void verve_net_qp_addr(const struct verve_net_qp *qp, struct verve_net_qp_addr *addr);
uint32_t verve_net_qp_num(const struct verve_net_qp *qp);
/* How many queue pairs had been opened on its shared receive queue before it. */
uint32_t verve_net_qp_serial(const struct verve_net_qp *qp);
uint32_t verve_net_qp_inline_size(const struct verve_net_qp *qp); /* bytes granted */

/*
 * INIT to RTR to RTS towards remote. timeout_ms: how long the transport retries a silent peer
 * before VERVE_NET_WC_RETRY_EXCEEDED (local ACK timeout and 7 retries; soft-RoCE never gives up);
 * receiver-not-ready is retried for ever. Logs. -FI_EINVAL: remote makes no sense (bad GID, QP
 * number or PSN).
 */
int verve_net_qp_connect(struct verve_net_qp *qp, const struct verve_net_qp_addr *remote,
			 uint32_t timeout_ms);
/* Whether it is in the error state, as far as the device knows. A system call. */
bool verve_net_qp_has_failed(const struct verve_net_qp *qp);
/*
 * To the error state: everything outstanding completes as flushed. Logs. Negative: the device refuses, and may
 * be gone; whether anything completes any more is not known.
 */
int verve_net_qp_error(struct verve_net_qp *qp);

/*
 * Posts count requests with one doorbell, in order, all or none: the caller knows that the queue has
 * room. A negative error means that the queue pair is unusable, or in error: some devices take nothing then.
 */
int verve_net_qp_post(struct verve_net_qp *qp, const struct verve_net_wr *wr, uint32_t count);

int verve_net_srq_open(struct verve_net_device *dev, uint32_t depth, struct verve_net_srq **srq);
void verve_net_srq_close(struct verve_net_srq *srq);

/*
 * Queue pairs that have been opened on it, and closed, since it was opened; and those open of a smaller serial number.
 * Any thread: queue pairs come and go meanwhile.
 */
uint32_t verve_net_srq_opened(struct verve_net_srq *srq);
uint32_t verve_net_srq_closed(struct verve_net_srq *srq);
uint32_t verve_net_srq_older(struct verve_net_srq *srq, uint32_t serial);

/* One buffer each; wr_id comes back in the completion. */
struct verve_net_recv {
	uint64_t wr_id;
	struct verve_net_sge sge;
};
/*
 * Posts count buffers, in order. *posted: the queue has so many of them, from the first on; all, unless a negative
 * error says why it took no more.
 */
int verve_net_srq_post(struct verve_net_srq *srq, const struct verve_net_recv *recv, uint32_t count,
		       uint32_t *posted);

#endif
