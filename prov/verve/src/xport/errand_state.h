/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The errands of the engines that have one lock (xport/errand.h). That lock protects them. */
#ifndef VERVE_XPORT_ERRAND_STATE_H
#define VERVE_XPORT_ERRAND_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct verve_errand;

STAILQ_HEAD(verve_errand_queue, verve_errand);

/* In the home of a transport. Zeros, but for the queues, which verve_errands_init sets up. */
struct verve_errands {
	struct verve_errand *by_op;	   /* uthash: of operations with VERVE_OP_ASKED */
	struct verve_errand_queue wanted;  /* to register memory */
	struct verve_errand_queue parting; /* to give regions back, in order */
	struct verve_errand *parting_out;  /* a thread gives its regions back; or NULL */
	uint32_t waiting;		   /* errands in both queues */
};

static inline void verve_errands_init(struct verve_errands *errands)
{
	STAILQ_INIT(&errands->wanted);
	STAILQ_INIT(&errands->parting);
}

#endif
