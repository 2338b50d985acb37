/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics: fi_atomic(3) by request and reply. The initiator sends the operands in order with
 * everything else to that peer; the target executes them when it polls and answers always, so that
 * each operation completes when it was executed (every completion level), or refused. Nothing is
 * executed twice: a request whose reply was lost with its connection is an error, and nobody knows
 * whether it was executed.
 *
 * Operands and results travel as they lie in memory; both processors must agree on that.
 * The engine's lock protects everything here.
 */
#ifndef VERVE_RMA_ATOMIC_H
#define VERVE_RMA_ATOMIC_H

#include "rma/amo.h"
#include "xport/op.h"
#include "xport/request.h"

struct verve_wire_packet;

/*
 * Atomics of a connection that are not answered yet: at most so many in either direction. It bounds
 * the replies that a target keeps for a peer that takes none. The link of a peer that asks more is
 * broken.
 */
enum { VERVE_ATOMIC_UNANSWERED = 128 };

/* What an atomic adds to a request, whose iov has the operands. On the stack, as that. */
struct verve_atomic_request {
	enum verve_amo_form form;
	enum verve_amo_op op; /* valid in that form, with that type */
	enum verve_amo_type type;
	const struct iovec *compare;
	size_t compare_count;
	const struct iovec *result;
	size_t result_count;
};

/* Elements of size bytes that one request takes; eager_size as verve_xport_eager_size says. */
static inline size_t verve_atomic_count(enum verve_amo_form form, size_t size, size_t eager_size)
{
	return eager_size / (form == VERVE_AMO_COMPARE ? 2 * size : size);
}

/*
 * Accepts one atomic: operands, compares and results (each as far as the operation has them) and
 * remote segments are of one length, which verve_atomic_count allows. 0: it completes once (or,
 * INJECT without NOTIFY, only if it fails). -FI_EAGAIN, -FI_EINVAL as verve_send.
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
