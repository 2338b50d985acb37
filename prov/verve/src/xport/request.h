/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Request: the arguments of one call of the application. It becomes an operation, unless it can end
 * within the call.
 */
#ifndef VERVE_XPORT_REQUEST_H
#define VERVE_XPORT_REQUEST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "xport/packet.h"

enum { VERVE_IOV_LIMIT = 4 }; /* pieces of local memory of a request */

/* A request on the caller's stack; all memory that it names is the caller's. */
struct verve_request {
	const struct iovec *iov;
	void *const *desc; /* iov_count of struct verve_mr_region *; NULL each: not registered */
	size_t iov_count;  /* VERVE_IOV_LIMIT at most */
	uint64_t addr; /* fi_addr_t of the peer; UINT64_MAX on a receive: any */
	uint64_t tag;
	uint64_t ignore; /* a receive: bits of tag that need not match */
	uint64_t data;	 /* remote CQ data, with VERVE_OP_DATA */
	void *context;
	uint32_t flags; /* VERVE_OP_NOTIFY to VERVE_OP_FENCE, and VERVE_OP_MATCH */
	const struct verve_wire_segment *remote; /* RMA, atomics */
	size_t remote_count; /* VERVE_WIRE_SEGMENTS at most */
};

#endif
