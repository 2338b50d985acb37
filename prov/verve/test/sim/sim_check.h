/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared by the check of single completions (sim_check.c) and of a whole run (sim_end.c). */
#ifndef VERVE_TEST_SIM_CHECK_H
#define VERVE_TEST_SIM_CHECK_H

#include <stdbool.h>

struct sim;
struct sim_op;

/* Index of each counter in struct sim_node. */
enum {
	SIM_CNTR_SEND,
	SIM_CNTR_RECV,
	SIM_CNTR_READ,
	SIM_CNTR_WRITE,
	SIM_CNTR_REMOTE_WRITE,
	SIM_CNTR_REMOTE_READ,
};

/* For messages, by enum sim_kind. */
extern const char *const sim_kind_names[];

/* True if the options of the run let operations fail that are right. */
bool sim_has_failures(const struct sim *sim);
/* SIM_CNTR_*: the counter of the initiator that counts the operation. */
int sim_cntr_of(const struct sim_op *op);
/* The operation has failed at its initiator. Its message may arrive all the same. */
void sim_put_aside(struct sim_op *op);
/* The receive has ended; its buffer is the application's again. */
void sim_recv_over(struct sim_op *op);

#endif
