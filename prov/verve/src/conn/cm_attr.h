/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What an endpoint gives its connection manager, and what the manager counts. Data alone: this file
 * must not know the manager that keeps them.
 */
#ifndef VERVE_CONN_CM_ATTR_H
#define VERVE_CONN_CM_ATTR_H

#include <stdint.h>

#include "base/addr.h"
#include "base/mailbox.h"
#include "net/qp.h"

struct verve_auth_key;

struct verve_cm_attr {
	struct verve_net_device *dev;
	struct verve_net_qp_attr qp_attr; /* of every queue pair that the manager opens */
	struct verve_addr addr;		  /* to bind to; port 0: any */
	const struct verve_auth_key *key; /* that peers must have, too; copied; NULL: none */
	uint32_t window;	   /* to announce: eager messages a peer may have unconsumed here */
	uint32_t eager_size;	   /* to announce: bytes of payload that receive buffers take */
	uint32_t features;	   /* to announce: VERVE_HELLO_* */
	uint64_t connect_timeout;  /* nanoseconds from the first HELLO to FAILED, FI_ETIMEDOUT */
	uint32_t transport_timeout_ms; /* see verve_net_qp_connect */
	struct verve_mailbox *events;  /* where events go; outlives the manager */
	/* After events were put: wakes the reader. Must not block or re-enter. */
	void (*notify)(void *arg);
	/* After requests were put: makes the service thread call verve_cm_step. */
	void (*wake)(void *arg);
	void *arg; /* of notify and wake */
};

/* Counts since open, for statistics and tests. */
struct verve_cm_stats {
	uint64_t sent, received;     /* datagrams */
	uint64_t malformed, foreign; /* dropped: not ours to read; not for this incarnation */
	uint64_t unauthenticated;    /* dropped: not of our key */
	uint64_t challenged;	     /* peers asked to show first that they hear us */
	uint64_t retransmitted;
	uint64_t connected, failed;
};

#endif
