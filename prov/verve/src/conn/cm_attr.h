/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Attributes: an endpoint's settings for its connection manager, and the manager's counts. Data
 * alone: this file must not know the manager.
 */
#ifndef VERVE_CONN_CM_ATTR_H
#define VERVE_CONN_CM_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/mailbox.h"
#include "net/qp.h"

struct verve_auth_key;

struct verve_cm_attr {
	struct verve_net_device *dev; /* outlives the manager */
	struct verve_net_qp_attr qp_attr; /* of every queue pair that the manager opens */
	struct verve_addr addr;		  /* to bind to; port 0: the kernel chooses */
	const struct verve_auth_key *key; /* peers need the same key; copied; NULL: no key */
	bool roce; /* a GID is an IP address: without a key, a HELLO's must be its sender's */
	uint32_t window;	   /* announced: credits that a peer has here at first */
	uint32_t eager_size;	   /* announced: bytes of payload that our receive buffers take */
	uint32_t features;	   /* announced: VERVE_HELLO_* */
	uint64_t connect_timeout;  /* nanoseconds from the first HELLO to FAILED, FI_ETIMEDOUT */
	uint32_t transport_timeout_ms; /* see verve_net_qp_connect */
	struct verve_mailbox *events;  /* the manager puts its events there; outlives the manager */
	/* Called after events were put: wakes their reader. Must not block or call the manager. */
	void (*notify)(void *arg);
	/*
	 * Called after a request was put, and by a worker after a job: makes the service thread
	 * call verve_cm_step. Must not block.
	 */
	void (*wake)(void *arg);
	/*
	 * Called once, after FATAL was put, with its error. Must not block or call the manager.
	 * NULL: nobody wants to know before FATAL is taken.
	 */
	void (*fatal)(void *arg, int error);
	void *arg; /* of notify, wake and fatal */
};

/* Counts since open, for statistics and tests. */
struct verve_cm_stats {
	uint64_t sent, received;     /* datagrams */
	uint64_t malformed;	     /* dropped: not a datagram of this protocol or version */
	uint64_t foreign;	     /* dropped or denied: about no connection of this endpoint */
	uint64_t unauthenticated;    /* dropped: not signed with our key */
	uint64_t challenged;	     /* requests answered with a cookie, which the peer must echo */
	uint64_t retransmitted;	     /* HELLO and READY that a timer sent again */
	uint64_t connected, failed;  /* UP events; FAILED events */
};

#endif
