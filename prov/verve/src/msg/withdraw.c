/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "msg/withdraw.h"

#include "xport/op.h"
#include "xport/op_pool.h"
#include "xport/post.h"
#include "xport/start.h"
#include "xport/wire.h"
#include <rdma/fi_errno.h>

struct verve_withdraw_op {
	struct verve_op op;
	uint32_t message; /* id of the send operation whose message is asked back */
};

/* Sends the WITHDRAW packet. */
static enum verve_outcome withdraw_answer(struct verve_xport *xport, struct verve_link *link,
					  struct verve_op *op)
{
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_WITHDRAW,
		.op_id = ((struct verve_withdraw_op *)op)->message,
	};

	return verve_link_answer(xport, link, op, &packet);
}

_Static_assert(sizeof(struct verve_withdraw_op) <= VERVE_OP_SIZE_MAX, "no pool has such objects");

static const struct verve_op_class withdraw_class = {
	.name = "withdrawal",
	.size = sizeof(struct verve_withdraw_op),
	.cleared = sizeof(struct verve_withdraw_op),
	.answer = withdraw_answer,
};

int verve_withdraw(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_op *withdraw;

	if (op->flags & VERVE_OP_CANCELLED)
		return 0;
	withdraw = verve_op_alloc(xport, &withdraw_class, VERVE_OP_REPORTED);
	if (!withdraw)
		return -FI_EAGAIN;
	op->flags |= VERVE_OP_CANCELLED;
	withdraw->peer = op->peer;
	((struct verve_withdraw_op *)withdraw)->message = op->id;
	verve_peer_queue_control(xport, op->peer, withdraw);
	return 0;
}
