/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reliable-connected queue pairs on a shared receive queue (net/srq.h).
 *
 * Source: ibv_create_qp(3), ibv_modify_qp(3), ibv_post_send(3).
 * Opening, connecting, stopping and closing take no lock: workers do them, one at a time for each
 * queue pair. The engine's lock serializes posts to all queue pairs of one shared receive queue:
 * the device's library takes no locks for these where it can do without (net/td.h). Each call that
 * fails logs one line, unless a comment says otherwise.
 */
#ifndef VERVE_NET_QP_H
#define VERVE_NET_QP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/device.h"
#include "net/sge.h"
#include <rdma/fi_errno.h>

struct verve_net_bind;
struct verve_net_cq;
struct verve_net_srq;
struct verve_net_qp;

/* Numerically ibv_wr_opcode; qp.c asserts it. */
enum verve_net_wr_op {
	VERVE_NET_WRITE = 0,
	VERVE_NET_WRITE_IMM = 1,
	VERVE_NET_SEND = 2,
	VERVE_NET_READ = 4,
	/* On 8 aligned bytes at remote_addr; their old value is written to the 8 bytes of sge. */
	VERVE_NET_COMPARE_SWAP = 5,
	VERVE_NET_FETCH_ADD = 6,
	VERVE_NET_INVALIDATE = 7, /* ends the window for a peer that has the key rkey (net/mw.h) */
	VERVE_NET_BIND = 8,	  /* opens one, with the key rkey, before later requests */
};

static inline bool verve_net_wr_is_atomic(enum verve_net_wr_op op)
{
	return op == VERVE_NET_COMPARE_SWAP || op == VERVE_NET_FETCH_ADD;
}

/* Numerically ibv_send_flags; qp.c asserts it. */
enum {
	VERVE_NET_SIGNALED = 1 << 1, /* success makes a completion; a failure always makes one */
	/* the post copies the payload, and ignores lkey; one segment: irdma takes no more */
	VERVE_NET_INLINE = 1 << 3,
};

struct verve_net_wr {
	uint64_t wr_id; /* comes back in the completion */
	enum verve_net_wr_op op;
	uint32_t flags; /* VERVE_NET_SIGNALED, VERVE_NET_INLINE */
	uint32_t imm;	/* goes as it is; VERVE_NET_WRITE_IMM only */
	uint32_t rkey;	/* with remote_addr, but INVALIDATE, BIND: the window's; not of SEND */
	uint64_t remote_addr;
	uint64_t compare_add; /* COMPARE_SWAP: the expected old value; FETCH_ADD: the addend */
	uint64_t swap;	      /* COMPARE_SWAP: the new value */
	union {
		const struct verve_net_sge *sge; /* the caller's; read before the post returns */
		const struct verve_net_bind *bind; /* VERVE_NET_BIND: likewise */
	};
	uint32_t sge_count; /* 0 to limits.sge; 0: BIND, INVALIDATE */
};

/*
 * True if this error of verve_net_qp_open (positive FI errno) says that memory or queue pairs are
 * short, so that another try may succeed once others are closed. Other errors stay.
 */
static inline bool verve_net_qp_is_short(int error)
{
	return error == FI_ENOMEM || error == FI_ENOSPC || error == FI_EAGAIN;
}

struct verve_net_qp_attr {
	struct verve_net_cq *send_cq;
	struct verve_net_cq *recv_cq;
	struct verve_net_srq *srq;
	uint32_t send_wr;     /* work requests outstanding at most; up to limits.qp_wr */
	uint32_t send_sge;    /* segments per request; up to limits.sge */
	uint32_t inline_size; /* bytes wanted; lowered until the device agrees */
	/*
	 * Differentiated services code point of the packets, 0 to 63, or'ed with VERVE_NET_DSCP;
	 * 0: FI_VERVE_TRAFFIC_CLASS, or the default, decides.
	 */
	uint16_t dscp;
};

enum { VERVE_NET_DSCP = 1 << 8 };

/* A queue pair's address: one side of a connection sends it to the other in the handshake. */
struct verve_net_qp_addr {
	struct verve_net_gid gid;
	uint16_t lid; /* the port's, FI_VERVE_LID_PATH_BITS included; 0 on Ethernet */
	uint8_t mtu_log2; /* active path MTU: 8 (256 bytes) to 12 (4096) */
	uint8_t rd_atomic_target; /* reads and atomics in flight that this side accepts */
	uint32_t qp_num; /* 24 bits, from 2 on */
	uint32_t psn; /* 24 bits: of the first packet that this side sends */
	uint16_t pkey; /* the partition key that this side has; 0xffff on Ethernet */
	bool grh; /* packets to this side need a global route header, also inside a subnet */
};

/*
 * Opens a queue pair in state INIT; remote reads, writes and, if limits.atomics, atomics are
 * allowed. psn: of the first packet that it will send; the lower 24 bits count. -FI_ENOMEM, or the
 * error of libibverbs. Of a device's failures of a minute one logs.
 */
int verve_net_qp_open(struct verve_net_device *dev, const struct verve_net_qp_attr *attr,
		      uint32_t psn, struct verve_net_qp **qp);
/* Closes the queue pair in any state. Completions that were not polled yet may be lost. */
void verve_net_qp_close(struct verve_net_qp *qp);

/* The address that the peer needs for verve_net_qp_connect. */
void verve_net_qp_addr(const struct verve_net_qp *qp, struct verve_net_qp_addr *addr);
uint32_t verve_net_qp_num(const struct verve_net_qp *qp);
/* Number of queue pairs that were opened earlier on the same shared receive queue; wraps. */
uint32_t verve_net_qp_serial(const struct verve_net_qp *qp);
/* Bytes of inline data that the device granted; may be more or less than was wanted. */
uint32_t verve_net_qp_inline_size(const struct verve_net_qp *qp);
/*
 * Reads and atomics of this side that the device has under way at once: at least 1. Of a queue pair
 * that is connected.
 */
uint32_t verve_net_qp_reads(const struct verve_net_qp *qp);

/*
 * Takes the queue pair from INIT through RTR to RTS, connected to remote. timeout_ms: how long the
 * device retries a silent peer before VERVE_NET_WC_RETRY_EXCEEDED (local ACK timeout and
 * FI_VERVE_RETRY_COUNT; soft-RoCE never gives up). A receiver that is not ready is retried
 * FI_VERVE_RNR_RETRY_COUNT times, by default for ever. The GID index is the one that the local
 * address has now. -FI_EINVAL: remote makes no sense (bad GID, QP number or PSN). -FI_EHOSTUNREACH:
 * remote is in another InfiniBand subnet or partition. -FI_EOPNOTSUPP: remote serves no reads
 * (rd_atomic_target 0). Or the error of libibverbs. A failure logs at level warn, but at level info
 * if the last warning of the same device is less than a minute old.
 */
int verve_net_qp_connect(struct verve_net_qp *qp, const struct verve_net_qp_addr *remote,
			 uint32_t timeout_ms);
/*
 * True once verve_net_qp_connect, even one that failed, took the queue pair to RTR: packets of the
 * peer may have used receive buffers. Not while verve_net_qp_connect runs.
 */
bool verve_net_qp_may_receive(const struct verve_net_qp *qp);
/*
 * True if the queue pair is in the error state, or cannot be queried. Costs a system call. Does not
 * log.
 */
bool verve_net_qp_has_failed(const struct verve_net_qp *qp);
/*
 * Moves the queue pair to the error state: all outstanding requests complete as flushed. A negative
 * error: the device refuses and may be gone; outstanding requests may never complete.
 */
int verve_net_qp_error(struct verve_net_qp *qp);

/*
 * Posts a request. The caller makes sure that the send queue has room. After a negative error the
 * queue pair is unusable, or it is in the error state, in which some devices refuse every request.
 */
int verve_net_qp_post(struct verve_net_qp *qp, const struct verve_net_wr *wr);

#endif
