/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics: fi_atomic(3) by request and reply. The initiator sends a request (ATOMIC) with the
 * operands, in order with its other operations to the same peer. The target executes each request
 * when it polls, and always sends a reply (ATOMIC_REPLY). The operation completes with the reply,
 * at every completion level. No request is executed twice: if the connection breaks before the
 * reply has arrived, the operation fails, and it is unknown whether the target has executed it.
 *
 * Operands and results travel as they lie in memory: both processors must represent numbers alike.
 * The engine's lock protects everything here.
 */
#ifndef VERVE_RMA_ATOMIC_H
#define VERVE_RMA_ATOMIC_H

#include "rma/amo.h"
#include "xport/op.h"
#include "xport/request.h"

struct verve_wire_packet;

/*
 * Most requests without a reply on a connection, in each direction. The limit bounds the replies
 * that a target keeps for a peer that reads none of them. If a peer sends more requests, the target
 * breaks the link.
 */
enum { VERVE_ATOMIC_UNANSWERED = 128 };

/*
 * The part of a request that only atomics have; the iov of struct verve_request has the operands.
 * Both lie on the caller's stack and are valid during the call only.
 */
struct verve_atomic_request {
	enum verve_amo_form form;
	enum verve_amo_op op; /* valid in that form, with that type */
	enum verve_amo_type type;
	const struct iovec *compare;
	size_t compare_count;
	const struct iovec *result;
	size_t result_count;
};

/* Most elements of size bytes that one request carries; eager_size in bytes. */
static inline size_t verve_atomic_count(enum verve_amo_form form, size_t size, size_t eager_size)
{
	return eager_size / (form == VERVE_AMO_COMPARE ? 2 * size : size);
}

/*
 * Accepts one atomic. Operands, compares, results (those that the operation has) and remote
 * segments have the same length in bytes, no more than verve_atomic_count elements. 0: the
 * operation will complete once; without VERVE_OP_NOTIFY, only an error makes a completion entry.
 * -FI_EAGAIN, -FI_EINVAL as verve_send.
 */
int verve_atomic(struct verve_xport *xport, const struct verve_request *request,
		 const struct verve_atomic_request *atomic);

/* ATOMIC has arrived. */
void verve_atomic_execute(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet);
/* ATOMIC_REPLY has arrived. */
void verve_atomic_finished(struct verve_xport *xport, struct verve_link *link,
			   struct verve_wire_packet *packet);

#endif
