/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queue of the device, and the channel that wakes a waiter.
 *
 * Source: ibv_create_cq(3), ibv_poll_cq(3), ibv_req_notify_cq(3), ibv_get_cq_event(3).
 * The engine's lock serializes all calls on one queue, and on its channel.
 */
#ifndef VERVE_NET_CQ_H
#define VERVE_NET_CQ_H

#include <stdbool.h>
#include <stdint.h>

struct verve_net_device;
struct verve_net_cq;
struct verve_net_channel;

/* Numerically ibv_wc_opcode. Smaller ones than RECV are of a send queue: SEND and others. */
enum verve_net_opcode {
	VERVE_NET_WC_SEND = 0,
	VERVE_NET_WC_RECV = 128,
	VERVE_NET_WC_RECV_IMM = 129, /* write with immediate: imm is valid */
};

/*
 * One completion. With a status other than VERVE_NET_WC_OK only wr_id, status, vendor_err and
 * qp_num are valid (ibv_poll_cq(3)). Same layout as struct ibv_wc; cq.c asserts it.
 */
struct verve_net_wc {
	uint64_t wr_id;	     /* of the work request or the receive buffer */
	uint32_t status;     /* an ibv_wc_status; 0: success */
	uint32_t opcode;     /* enum verve_net_opcode, or another ibv_wc_opcode */
	uint32_t vendor_err; /* the device's own error code */
	uint32_t byte_len;   /* bytes received; receives only */
	uint32_t imm;	     /* of the request; VERVE_NET_WC_RECV_IMM only */
	uint32_t qp_num;     /* of the local queue pair */
	uint32_t unused[4];
};

/* The statuses that the upper layers handle by name (InfiniBand spec. vol. 1, 11.6.2). */
enum {
	VERVE_NET_WC_OK = 0,
	VERVE_NET_WC_LOCAL_LENGTH = 1,	/* IBV_WC_LOC_LEN_ERR */
	VERVE_NET_WC_LOCAL_OPERATION = 2, /* IBV_WC_LOC_QP_OP_ERR */
	VERVE_NET_WC_LOCAL_PROTECTION = 4, /* IBV_WC_LOC_PROT_ERR */
	VERVE_NET_WC_FLUSHED = 5,	/* IBV_WC_WR_FLUSH_ERR */
	VERVE_NET_WC_BIND = 6,		/* IBV_WC_MW_BIND_ERR */
	VERVE_NET_WC_REMOTE_INVALID = 9, /* IBV_WC_REM_INV_REQ_ERR */
	VERVE_NET_WC_REMOTE_ACCESS = 10, /* IBV_WC_REM_ACCESS_ERR */
	VERVE_NET_WC_REMOTE_OPERATION = 11, /* IBV_WC_REM_OP_ERR */
	VERVE_NET_WC_RETRY_EXCEEDED = 12, /* IBV_WC_RETRY_EXC_ERR */
};

/* True if the device refuses a request for what the request says, before any peer sees it. */
static inline bool verve_net_wc_is_local(uint32_t status)
{
	return status == VERVE_NET_WC_LOCAL_LENGTH || status == VERVE_NET_WC_LOCAL_OPERATION ||
	       status == VERVE_NET_WC_LOCAL_PROTECTION || status == VERVE_NET_WC_BIND;
}

/* A text for the log, constant: ibv_wc_status_str(3), with a hint where one helps. */
const char *verve_net_wc_str(uint32_t status);
/* The libfabric error (positive) that the application gets for a status; 0 for success. */
int verve_net_wc_errno(uint32_t status);

/* A channel whose descriptor never blocks. Logs. -FI_ENOMEM, or the error of libibverbs. */
int verve_net_channel_open(struct verve_net_device *dev, struct verve_net_channel **channel);
/* Every queue of the channel must be closed. */
void verve_net_channel_close(struct verve_net_channel *channel);
/* Polls readable while an event of an armed queue waits. The channel owns the descriptor. */
int verve_net_channel_fd(const struct verve_net_channel *channel);
/* Takes and acknowledges every event that waits in the channel; never blocks. */
void verve_net_channel_drain(struct verve_net_channel *channel);

/*
 * The completion vector for the queues of the next endpoint. The numbers follow each other, so that
 * interrupts spread over the processors. The first number is the processor on which the calling
 * thread runs, because the processes of a host run on different ones. A child after fork(2) begins
 * anew. Any thread.
 */
uint32_t verve_net_vector_next(void);

/*
 * depth: entries, at most limits.cqe. channel: NULL if nobody will wait for the queue. vector: the
 * completion vector whose interrupt tells of the queue's events; any number: its remainder by the
 * number of vectors that the device has counts. Logs. -FI_ENOMEM, or the error of libibverbs.
 */
int verve_net_cq_open(struct verve_net_device *dev, uint32_t depth,
		      struct verve_net_channel *channel, uint32_t vector,
		      struct verve_net_cq **cq);
/* Every queue pair that uses the completion queue must be closed. */
void verve_net_cq_close(struct verve_net_cq *cq);

/*
 * Writes at most max completions into wc, and returns their number. -FI_EIO: the queue cannot be
 * polled, because the device is lost; logged once.
 */
int verve_net_cq_poll(struct verve_net_cq *cq, int max, struct verve_net_wc *wc);
/*
 * Asks for one event at the next completion. The caller must poll once more after arming:
 * completions that came before make no event. 0, or the negative error of libibverbs.
 */
int verve_net_cq_arm(struct verve_net_cq *cq);

#endif
