/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queue of the device, and the channel that wakes a waiter.
 *
 * Source: ibv_create_cq(3), ibv_poll_cq(3), ibv_req_notify_cq(3), ibv_get_cq_event(3).
 * The engine's lock serializes all calls on one queue.
 */
#ifndef VERVE_NET_CQ_H
#define VERVE_NET_CQ_H

#include <stdint.h>

struct verve_net_device;
struct verve_net_cq;
struct verve_net_channel;

enum verve_net_opcode {
	VERVE_NET_WC_SEND, /* sends, writes, reads: whatever the send queue did */
	VERVE_NET_WC_RECV,
	VERVE_NET_WC_RECV_IMM, /* write with immediate: imm is valid */
};

/* status 0: success; otherwise the ibv_wc_status. Only wr_id, status, vendor_err and qp_num count then. */
struct verve_net_wc {
	uint64_t wr_id;
	uint32_t status;
	uint32_t vendor_err;
	uint32_t opcode;
	uint32_t byte_len;
	uint32_t imm; /* host byte order */
	uint32_t qp_num;
};

/* The statuses that the left side tells apart (InfiniBand spec. vol. 1, 11.6.2). */
enum {
	VERVE_NET_WC_OK = 0,
	VERVE_NET_WC_FLUSHED = 5,	/* IBV_WC_WR_FLUSH_ERR */
	VERVE_NET_WC_REMOTE_INVALID = 9, /* IBV_WC_REM_INV_REQ_ERR */
	VERVE_NET_WC_REMOTE_ACCESS = 10, /* IBV_WC_REM_ACCESS_ERR */
	VERVE_NET_WC_REMOTE_OPERATION = 11, /* IBV_WC_REM_OP_ERR */
	VERVE_NET_WC_RETRY_EXCEEDED = 12, /* IBV_WC_RETRY_EXC_ERR */
};

/* ibv_wc_status_str(3). */
const char *verve_net_wc_str(uint32_t status);
/* The libfabric error, positive, that an unsuccessful status means to an application. */
int verve_net_wc_errno(uint32_t status);

int verve_net_channel_open(struct verve_net_device *dev, struct verve_net_channel **channel);
void verve_net_channel_close(struct verve_net_channel *channel);
int verve_net_channel_fd(const struct verve_net_channel *channel);
/* Takes and acknowledges every event that waits in the channel; never blocks. */
void verve_net_channel_drain(struct verve_net_channel *channel);

/* depth in entries, at most limits.cqe. channel may be NULL: no waiting. */
int verve_net_cq_open(struct verve_net_device *dev, uint32_t depth, struct verve_net_channel *channel,
		      struct verve_net_cq **cq);
/* All queues that use it must be closed. */
void verve_net_cq_close(struct verve_net_cq *cq);

/* Up to max completions into wc; returns how many, or a negative error (the device is lost). */
int verve_net_cq_poll(struct verve_net_cq *cq, int max, struct verve_net_wc *wc);
/* Asks for one event at the next completion; poll once more afterwards, or lose a wake-up. */
int verve_net_cq_arm(struct verve_net_cq *cq);

#endif
