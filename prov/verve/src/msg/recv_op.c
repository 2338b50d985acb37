/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive operation: its beginning, its end, its completion. */
#include "msg/recv_op.h"

#include "comp/comp.h"
#include "xport/peer.h"
#include "xport/report.h"
#include "xport/start.h"
#include <rdma/fi_errno.h>

_Static_assert(offsetof(struct verve_recv_op, memory.region[1]) <= 4 * 64,
	       "a posted receive of one piece lies in four cache lines");

void verve_recv_finish(struct verve_xport *xport, struct verve_recv_op *recv, int error,
		       const char *reason)
{
	struct verve_op *op = &recv->op;
	bool answer = recv->fin.id && op->state != VERVE_OP_DOOMED;

	verve_op_dequeue(op);
	if (!error && recv->msg_len > op->len) {
		error = FI_ETRUNC;
		reason = "the message is longer than the receive buffer";
	}
	if (error)
		verve_op_report_error(xport, op, error, op->status, reason);
	else
		verve_op_report(xport, op);
	if (answer)
		verve_peer_queue_control(xport, op->peer, op);
	else
		verve_op_free(xport, op);
}

int verve_recv_name(struct verve_xport *xport, struct verve_recv_op *recv)
{
	struct verve_op *op = &recv->op;

	if (op->id)
		return 0;
	if (op->peer->named_receives >= VERVE_RECV_NAMED || verve_op_name(xport, op))
		return -FI_EAGAIN;
	op->peer->named_receives++;
	return 0;
}

void verve_recv_release(struct verve_xport *xport, struct verve_op *op)
{
	if (op->id)
		op->peer->named_receives--;
	verve_op_release_memory(xport, op);
}

enum verve_outcome verve_recv_answer(struct verve_xport *xport, struct verve_link *link,
				      struct verve_op *op)
{
	return verve_fin_send(xport, link, op, verve_recv_op_of(op)->fin);
}

void verve_recv_fail(struct verve_xport *xport, struct verve_op *op, const char *reason)
{
	struct verve_recv_op *recv = verve_recv_op_of(op);

	recv->fin.status = op->error;
	op->len = 0;
	verve_recv_finish(xport, recv, op->error, reason);
}

/*
 * Whether this completion gives a multi-receive buffer back to the application (FI_MULTI_RECV,
 * fi_msg(3)). The completion of the last message in the buffer does. So does the completion of the
 * buffer's own receive, which is cancelled while no message is being placed in it.
 */
static bool gives_buffer_back(struct verve_xport *xport, struct verve_recv_op *recv)
{
	struct verve_recv_op *parent = recv->parent;

	if (recv->op.flags & VERVE_OP_MULTI)
		return true;
	if (!parent || --parent->children || !parent->spent)
		return false;
	verve_op_free(xport, &parent->op);
	return true;
}

void verve_recv_describe(struct verve_xport *xport, struct verve_op *op, struct verve_comp *comp)
{
	struct verve_recv_op *recv = verve_recv_op_of(op);

	comp->tag = recv->tag;
	comp->data = recv->data;
	comp->src = recv->src;
	comp->buf = recv->memory.iov_count ? recv->memory.iov[0].iov_base : NULL;
	if (op->flags & VERVE_OP_DATA)
		comp->flags |= VERVE_COMP_REMOTE_CQ_DATA;
	if (gives_buffer_back(xport, recv))
		comp->flags |= VERVE_COMP_MULTI_RECV;
}

void verve_recv_blame(const struct verve_op *op, struct verve_comp_error *entry,
		      const char **reason)
{
	const struct verve_recv_op *recv = (const struct verve_recv_op *)op;

	entry->olen = recv->msg_len > op->len ? recv->msg_len - op->len : 0;
	/*
	 * FI_EACCES: the peer's device refused our read, because the peer's memory is no longer
	 * registered. Mostly the peer's process has ended. The application did nothing wrong.
	 */
	if (entry->err == FI_EACCES && op->status) {
		entry->err = FI_ENOTCONN;
		*reason = "the peer's device does not let the message be read any more";
	}
}
