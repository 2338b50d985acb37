/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rma: registration of test regions and the nine RMA calls. */
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/xfer.h"

void region_open(struct node *node, struct region *region, size_t len, uint64_t access)
{
	*region = (struct region){ .buf = pattern_alloc(len), .len = len };
	REQUIRE_RET(fi_mr_reg(node->domain, region->buf, len, access, 0, ++node->next_key, 0,
			      &region->mr, region), 0);
	region->desc = fi_mr_desc(region->mr);
}

void region_close(struct region *region)
{
	CHECK_RET(fi_close(&region->mr->fid), 0);
	pattern_free(region->buf);
}

struct remote region_remote(const struct node *node, const struct region *region)
{
	bool virt = node->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;

	return (struct remote){
		.addr = virt ? (uintptr_t)region->buf : 0,
		.key = fi_mr_key(region->mr),
		.len = region->len,
	};
}

struct remote region_exchange(struct node *node, const struct region *region)
{
	struct remote mine = region_remote(node, region), theirs;

	if (oob_exchange(&node->env->oob, &mine, sizeof(mine), &theirs, sizeof(theirs)) !=
	    sizeof(theirs))
		check_fatal("out of step with the other side (keys)");
	return theirs;
}

void rma_ends_open(struct rma_ends *ends, struct env *env, const struct node_attr *attr, size_t len,
		   uint64_t access)
{
	node_start(&ends->node, env, attr);
	region_open(&ends->node, &ends->target, len, access);
	ends->remote = region_exchange(&ends->node, &ends->target);
}

void rma_ends_close(struct rma_ends *ends)
{
	node_sync(&ends->node);
	region_close(&ends->target);
	node_close(&ends->node);
}

const char *rma_name(enum rma_op op)
{
	static const char *const names[] = {
		[RMA_WRITE] = "write", [RMA_WRITEV] = "writev", [RMA_WRITEMSG] = "writemsg",
		[RMA_INJECT_WRITE] = "inject_write", [RMA_WRITEDATA] = "writedata",
		[RMA_INJECT_WRITEDATA] = "inject_writedata", [RMA_READ] = "read",
		[RMA_READV] = "readv", [RMA_READMSG] = "readmsg",
	};

	return names[op];
}

bool rma_is_read(enum rma_op op)
{
	return op >= RMA_READ;
}

bool rma_is_inject(enum rma_op op)
{
	return op == RMA_INJECT_WRITE || op == RMA_INJECT_WRITEDATA;
}

bool rma_has_data(const struct rma *rma)
{
	if (rma->op == RMA_WRITEMSG)
		return rma->flags & FI_REMOTE_CQ_DATA;
	return rma->op == RMA_WRITEDATA || rma->op == RMA_INJECT_WRITEDATA;
}

ssize_t rma_try(struct node *node, const struct rma *r)
{
	size_t limit = node->info->tx_attr->iov_limit;
	size_t count = limit < XFER_IOV ? limit : XFER_IOV;
	void *descs[XFER_IOV] = { r->desc, r->desc, r->desc, r->desc };
	struct iovec iov[XFER_IOV];
	struct fi_rma_iov target = { .addr = r->remote_addr, .len = r->len, .key = r->key };
	struct fi_msg_rma msg = {
		.msg_iov = iov, .desc = r->desc ? descs : NULL, .iov_count = count,
		.addr = r->addr, .rma_iov = &target, .rma_iov_count = 1,
		.context = r->context, .data = r->data,
	};

	xfer_split(iov, count, r->buf, r->len);
	switch (r->op) {
	case RMA_WRITE:
		return fi_write(node->ep, r->buf, r->len, r->desc, r->addr, r->remote_addr,
				r->key, r->context);
	case RMA_WRITEV:
		return fi_writev(node->ep, iov, msg.desc, count, r->addr, r->remote_addr, r->key,
				 r->context);
	case RMA_WRITEMSG:
		return fi_writemsg(node->ep, &msg, r->flags);
	case RMA_INJECT_WRITE:
		return fi_inject_write(node->ep, r->buf, r->len, r->addr, r->remote_addr, r->key);
	case RMA_WRITEDATA:
		return fi_writedata(node->ep, r->buf, r->len, r->desc, r->data, r->addr,
				    r->remote_addr, r->key, r->context);
	case RMA_INJECT_WRITEDATA:
		return fi_inject_writedata(node->ep, r->buf, r->len, r->data, r->addr,
					   r->remote_addr, r->key);
	case RMA_READ:
		return fi_read(node->ep, r->buf, r->len, r->desc, r->addr, r->remote_addr, r->key,
			       r->context);
	case RMA_READV:
		return fi_readv(node->ep, iov, msg.desc, count, r->addr, r->remote_addr, r->key,
				r->context);
	case RMA_READMSG:
		return fi_readmsg(node->ep, &msg, r->flags);
	case RMA_OPS:
		break;
	}
	return -FI_EINVAL;
}

ssize_t rma_post(struct node *node, const struct rma *rma)
{
	uint64_t end = env_deadline(node->env);
	unsigned turns = 0;
	ssize_t ret;

	while ((ret = rma_try(node, rma)) == -FI_EAGAIN) {
		env_progress(node->env, turns++);
		if (clock_now() > end)
			check_fatal("%s says -FI_EAGAIN for %u s", rma_name(rma->op),
				    node->env->opts.timeout);
	}
	return ret;
}

void rma_run(struct node *node, const struct rma *rma)
{
	struct comp comp;

	REQUIRE_RET(rma_post(node, rma), 0);
	if (rma_is_inject(rma->op)) {
		memset(rma->buf, PATTERN_EMPTY, rma->len);
		return;
	}
	comp_expect(node, node->txcq, rma->context, &comp);
	if (node->cq_format >= FI_CQ_FORMAT_MSG)
		CHECK_EQ(comp.flags & (FI_RMA | FI_READ | FI_WRITE | FI_SEND | FI_RECV),
			 FI_RMA | (rma_is_read(rma->op) ? FI_READ : FI_WRITE));
}
