/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Request: what the application asks for in one call, before there is an operation, if there will be one. */
#ifndef VERVE_XPORT_REQUEST_H
#define VERVE_XPORT_REQUEST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "xport/wire.h"

enum { VERVE_IOV_LIMIT = 4 }; /* pieces of local memory of a request */

/* A request as the API layer hands it over, on the stack; memory is the caller's. */
struct verve_request {
	const struct iovec *iov;
	void *const *desc; /* struct verve_mr_region * each; NULL, or NULL entries: not registered */
	size_t iov_count;
	uint64_t addr; /* fi_addr_t of the peer; UINT64_MAX on a receive: any */
	uint64_t tag;
	uint64_t ignore;
	uint64_t data;
	void *context;
	uint32_t flags; /* VERVE_OP_* that a caller may set: NOTIFY TAGGED DATA ACK TRANSMIT INJECT MULTI FENCE MATCH */
	const struct verve_wire_segment *remote; /* RMA, atomics */
	size_t remote_count; /* VERVE_WIRE_SEGMENTS at most */
};

#endif
