/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xfer: the eighteen data calls of message and tagged endpoints behind one description. */
#include <sched.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/pattern.h"
#include "common/xfer.h"

const char *xfer_name(enum xfer_op op)
{
	static const char *const names[] = {
		[XFER_SEND] = "send", [XFER_SENDV] = "sendv", [XFER_SENDMSG] = "sendmsg",
		[XFER_INJECT] = "inject", [XFER_SENDDATA] = "senddata",
		[XFER_INJECTDATA] = "injectdata", [XFER_RECV] = "recv", [XFER_RECVV] = "recvv",
		[XFER_RECVMSG] = "recvmsg",
	};

	return names[op];
}

bool xfer_is_inject(enum xfer_op op)
{
	return op == XFER_INJECT || op == XFER_INJECTDATA;
}

bool xfer_has_data(const struct xfer *xfer)
{
	if (xfer->op == XFER_SENDMSG)
		return xfer->flags & FI_REMOTE_CQ_DATA;
	return xfer->op == XFER_SENDDATA || xfer->op == XFER_INJECTDATA;
}

void xfer_split(struct iovec *iov, size_t count, void *buf, size_t len)
{
	char *at = buf;

	for (size_t i = 0; i < count; i++) {
		size_t part = i + 1 < count ? len / 3 : len;

		iov[i] = (struct iovec){ .iov_base = at, .iov_len = part };
		at += part;
		len -= part;
	}
}

/* A multi-receive buffer is a single one: fi_msg(3). */
static size_t segments(const struct node *node, const struct xfer *x)
{
	size_t limit = x->op < XFER_SEND_OPS ? node->info->tx_attr->iov_limit
					     : node->info->rx_attr->iov_limit;

	if (x->flags & FI_MULTI_RECV)
		return 1;
	return limit < XFER_IOV ? limit : XFER_IOV;
}

static ssize_t try_msg(struct node *node, const struct xfer *x)
{
	struct iovec iov[XFER_IOV];
	void *desc[XFER_IOV] = { x->desc, x->desc, x->desc, x->desc };
	size_t count = segments(node, x);
	struct fi_msg msg = {
		.msg_iov = iov, .desc = x->desc ? desc : NULL, .iov_count = count,
		.addr = x->addr, .context = x->context, .data = x->data,
	};

	xfer_split(iov, count, x->buf, x->len);
	switch (x->op) {
	case XFER_SEND:
		return fi_send(node->ep, x->buf, x->len, x->desc, x->addr, x->context);
	case XFER_SENDV:
		return fi_sendv(node->ep, iov, msg.desc, count, x->addr, x->context);
	case XFER_SENDMSG:
		return fi_sendmsg(node->ep, &msg, x->flags);
	case XFER_INJECT:
		return fi_inject(node->ep, x->buf, x->len, x->addr);
	case XFER_SENDDATA:
		return fi_senddata(node->ep, x->buf, x->len, x->desc, x->data, x->addr,
				   x->context);
	case XFER_INJECTDATA:
		return fi_injectdata(node->ep, x->buf, x->len, x->data, x->addr);
	case XFER_RECV:
		return fi_recv(node->ep, x->buf, x->len, x->desc, x->addr, x->context);
	case XFER_RECVV:
		return fi_recvv(node->ep, iov, msg.desc, count, x->addr, x->context);
	case XFER_RECVMSG:
		return fi_recvmsg(node->ep, &msg, x->flags);
	case XFER_OPS:
		break;
	}
	return -FI_EINVAL;
}

static ssize_t try_tagged(struct node *node, const struct xfer *x)
{
	struct iovec iov[XFER_IOV];
	void *desc[XFER_IOV] = { x->desc, x->desc, x->desc, x->desc };
	size_t count = segments(node, x);
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .desc = x->desc ? desc : NULL, .iov_count = count,
		.addr = x->addr, .tag = x->tag, .ignore = x->ignore, .context = x->context,
		.data = x->data,
	};

	xfer_split(iov, count, x->buf, x->len);
	switch (x->op) {
	case XFER_SEND:
		return fi_tsend(node->ep, x->buf, x->len, x->desc, x->addr, x->tag, x->context);
	case XFER_SENDV:
		return fi_tsendv(node->ep, iov, msg.desc, count, x->addr, x->tag, x->context);
	case XFER_SENDMSG:
		return fi_tsendmsg(node->ep, &msg, x->flags);
	case XFER_INJECT:
		return fi_tinject(node->ep, x->buf, x->len, x->addr, x->tag);
	case XFER_SENDDATA:
		return fi_tsenddata(node->ep, x->buf, x->len, x->desc, x->data, x->addr, x->tag,
				    x->context);
	case XFER_INJECTDATA:
		return fi_tinjectdata(node->ep, x->buf, x->len, x->data, x->addr, x->tag);
	case XFER_RECV:
		return fi_trecv(node->ep, x->buf, x->len, x->desc, x->addr, x->tag, x->ignore,
				x->context);
	case XFER_RECVV:
		return fi_trecvv(node->ep, iov, msg.desc, count, x->addr, x->tag, x->ignore,
				 x->context);
	case XFER_RECVMSG:
		return fi_trecvmsg(node->ep, &msg, x->flags);
	case XFER_OPS:
		break;
	}
	return -FI_EINVAL;
}

ssize_t xfer_try(struct node *node, const struct xfer *xfer)
{
	return xfer->tagged ? try_tagged(node, xfer) : try_msg(node, xfer);
}

ssize_t xfer_post(struct node *node, const struct xfer *xfer)
{
	uint64_t end = env_deadline(node->env);
	unsigned turns = 0;
	ssize_t ret;

	while ((ret = xfer_try(node, xfer)) == -FI_EAGAIN) {
		env_progress(node->env, turns++);
		if (clock_now() > end)
			check_fatal("%s says -FI_EAGAIN for %u s", xfer_name(xfer->op),
				    node->env->opts.timeout);
	}
	return ret;
}

void xfer_send(struct node *node, const struct xfer *xfer)
{
	struct comp comp;

	REQUIRE_RET(xfer_post(node, xfer), 0);
	if (xfer_is_inject(xfer->op)) {
		/* An injected buffer is the caller's again at once. */
		memset(xfer->buf, PATTERN_EMPTY, xfer->len);
		comp_expect_none(node, node->txcq);
		return;
	}
	comp_expect(node, node->txcq, xfer->context, &comp);
	if (node->cq_format >= FI_CQ_FORMAT_MSG)
		CHECK_EQ(comp.flags & (FI_SEND | FI_RECV | FI_MSG | FI_TAGGED),
			 FI_SEND | (xfer->tagged ? FI_TAGGED : FI_MSG));
}

static void check_recv(const struct node *node, const struct comp *comp, const struct xfer *recv,
		       const struct xfer *sent, size_t len)
{
	uint64_t kind = FI_RECV | (recv->tagged ? FI_TAGGED : FI_MSG);

	if (node->cq_format >= FI_CQ_FORMAT_MSG) {
		CHECK_EQ(comp->flags & (FI_SEND | FI_RECV | FI_MSG | FI_TAGGED), kind);
		CHECK_EQ(comp->len, len);
	}
	if (node->cq_format >= FI_CQ_FORMAT_DATA) {
		CHECK_EQ(comp->flags & FI_REMOTE_CQ_DATA,
			 xfer_has_data(sent) ? FI_REMOTE_CQ_DATA : 0);
		if (xfer_has_data(sent))
			CHECK_EQ(comp->data, sent->data);
	}
	if (node->cq_format >= FI_CQ_FORMAT_TAGGED && recv->tagged)
		CHECK_EQ(comp->tag, sent->tag);
}

void xfer_finish_recv(struct node *node, const struct xfer *recv, const struct xfer *sent,
		      size_t len)
{
	struct comp comp;

	comp_expect(node, node->rxcq, recv->context, &comp);
	check_recv(node, &comp, recv, sent, len);
}

size_t xfer_finish_any(struct node *node, const struct xfer *recvs, size_t count,
		       const struct xfer *sent, size_t len)
{
	struct comp comp;
	size_t i;

	comp_wait(node, node->rxcq, &comp);
	REQUIRE_RET(comp.err, 0);
	i = (size_t)((const struct xfer *)comp.context - recvs);
	REQUIRE(i < count);
	check_recv(node, &comp, &recvs[i], sent, len);
	return i;
}
