/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/op.h"

#include <stdio.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/atomic.h"
#include "common/check.h"
#include "common/pattern.h"

void op_recv(struct node *node, struct op *op, size_t len, bool tagged)
{
	op->done = false;
	op->xfer = (struct xfer){ .op = XFER_RECV, .tagged = tagged, .buf = pattern_alloc(len),
				  .len = len, .addr = FI_ADDR_UNSPEC, .context = op };
	REQUIRE_RET(xfer_post(node, &op->xfer), 0);
}

void op_send(struct node *node, struct op *op, size_t len, bool tagged, fi_addr_t to)
{
	op->done = false;
	op->xfer = (struct xfer){ .op = XFER_SENDMSG, .tagged = tagged, .len = len, .addr = to,
				  .buf = pattern_alloc(len), .context = op,
				  .flags = FI_DELIVERY_COMPLETE | FI_COMPLETION };
	pattern_fill(op->xfer.buf, len, len);
	REQUIRE_RET(xfer_post(node, &op->xfer), 0);
}

void op_write(struct node *node, struct op *op, const struct region *from, uint64_t key,
	      uint64_t offset)
{
	struct rma write = { .op = RMA_WRITE,
			     .buf = from->buf,
			     .len = from->len,
			     .desc = from->desc,
			     .addr = node->peer,
			     .remote_addr = offset,
			     .key = key,
			     .context = op };

	op->done = false;
	REQUIRE_RET(rma_post(node, &write), 0);
}

void op_add(struct node *node, struct op *op, uint64_t key)
{
	static const uint64_t one = 1;
	struct atomic add = { .call = ATOMIC_FETCH, .datatype = FI_UINT64, .op = FI_SUM, .count = 1,
			      .buf = &one, .result = &op->before, .addr = node->peer, .key = key,
			      .context = op };

	op->done = false;
	REQUIRE_RET(atomic_post(node, &add), 0);
}

void op_free(struct op *op)
{
	pattern_free(op->xfer.buf);
	op->xfer.buf = NULL;
}

void op_take(struct node *node)
{
	struct comp comp;
	struct op *op;

	comp_wait(node, node->txcq, &comp);
	op = comp.context;
	REQUIRE(op != NULL);
	CHECK(!op->done);
	op->done = true;
	op->err = comp.err;
	if (!comp.err)
		return;
	CHECK(*comp.reason != '\0' || comp.err == FI_ECANCELED);
	if (node->env->opts.verify)
		printf("%s, prov_errno %d: %s\n", fi_strerror(comp.err), comp.prov_errno,
		       comp.reason);
}

void op_await(struct node *node, const struct op *op)
{
	while (!op->done)
		op_take(node);
}

void op_finish(struct node *node, struct op *op)
{
	op_await(node, op);
	REQUIRE_RET(op->err, 0);
	pattern_check(op->xfer.buf, op->xfer.len, op->xfer.len);
	op_free(op);
}

void op_hello(struct node *node)
{
	struct op in = { 0 }, out = { 0 };

	op_recv(node, &in, 100, true);
	op_send(node, &out, 100, true, node->peer);
	op_finish(node, &in);
	op_finish(node, &out);
	node_sync(node);
}

void op_talk(struct node *from, struct node *to, fi_addr_t addr, size_t len)
{
	struct op in = { 0 }, out = { 0 };

	op_recv(to, &in, len, true);
	op_send(from, &out, len, true, addr);
	op_finish(to, &in);
	op_finish(from, &out);
}

bool op_is_departure(int err)
{
	return err == FI_EHOSTUNREACH || err == FI_ECONNREFUSED || err == FI_ENOTCONN ||
	       err == FI_ETIMEDOUT;
}
