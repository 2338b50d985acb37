/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by the sources of random traffic: sim_traffic.c starts messages, sim_receive.c receives,
 * sim_rma.c writes, reads and atomics.
 */
#ifndef VERVE_TEST_SIM_TRAFFIC_H
#define VERVE_TEST_SIM_TRAFFIC_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sim_op.h"

struct sim;

/* The forms of a call: fi_send and fi_write have all six, fi_read the first three. */
enum sim_call {
	SIM_CALL_SEND,
	SIM_CALL_SENDV,
	SIM_CALL_SENDMSG,
	SIM_CALL_INJECT,
	SIM_CALL_SENDDATA,
	SIM_CALL_INJECTDATA,
	SIM_CALLS,
};

/* An operation with the next id, which is used up only when sim_op_admit() takes the operation. */
struct sim_op *sim_op_new(struct sim_node *node, enum sim_kind kind);
/*
 * ret: the result of the provider's call. True: the provider took op, and the run keeps op. False
 * (-FI_EAGAIN): op is freed. Any other error fails the run.
 */
bool sim_op_admit(struct sim_op *op, ssize_t ret, const char *call);
/*
 * Counts a send, write, read or atomic that was admitted. injected: the provider has copied the
 * buffer, which is freed.
 */
void sim_op_started(struct sim_op *op, bool injected);
/* The target's address, as the initiator knows it. */
fi_addr_t sim_op_target(const struct sim_op *op);

/* A node that has not retired; NULL: none was found. */
struct sim_node *sim_choose_peer(struct sim_node *node);
uint32_t sim_choose_member(const struct sim_node *node);
/* Chooses the initiator's endpoint and the peer's. peer may be NULL. */
void sim_choose_way(struct sim_op *op, struct sim_node *peer);
/* From 0 to max bytes; short lengths are more likely. */
size_t sim_choose_len(struct sim *sim, size_t max);
/* A completion level, and other flags that a call with flags may have. Sets op->entry. */
uint64_t sim_choose_flags(struct sim_op *op, size_t inject_size);
/* True if an operation between the two may fail because one of them starts late, closes or dies. */
bool sim_may_fail(const struct sim_node *node, const struct sim_node *peer);

#endif
