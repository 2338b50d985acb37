/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "msg/fin.h"

#include "xport/link.h"
#include "xport/op_pool.h"
#include "xport/post.h"
#include "xport/wire.h"

struct verve_fin_op {
	struct verve_op op;
	struct verve_fin fin;
};

enum verve_outcome verve_fin_send(struct verve_xport *xport, struct verve_link *link,
				   struct verve_op *op, struct verve_fin fin)
{
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_FIN,
		.op_id = fin.id,
		.status = fin.status,
	};
	enum verve_outcome outcome = verve_link_answer(xport, link, op, &packet);

	if (outcome == VERVE_DONE && link->unanswered_messages)
		link->unanswered_messages--;
	return outcome;
}

/* Sends the FIN of an operation that verve_fin_alloc made. */
static enum verve_outcome fin_answer(struct verve_xport *xport, struct verve_link *link,
				     struct verve_op *op)
{
	return verve_fin_send(xport, link, op, ((struct verve_fin_op *)op)->fin);
}

_Static_assert(sizeof(struct verve_fin_op) <= VERVE_OP_SIZE_MAX, "no pool has such objects");

static const struct verve_op_class fin_class = {
	.name = "FIN",
	.size = sizeof(struct verve_fin_op),
	.cleared = sizeof(struct verve_fin_op),
	.answer = fin_answer,
};

struct verve_op *verve_fin_alloc(struct verve_xport *xport, struct verve_peer *peer,
				 struct verve_fin fin)
{
	struct verve_op *op = verve_op_alloc(xport, &fin_class, VERVE_OP_REPORTED);

	if (!op)
		return NULL;
	op->peer = peer;
	((struct verve_fin_op *)op)->fin = fin;
	return op;
}
