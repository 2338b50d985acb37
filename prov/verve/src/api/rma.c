/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Remote memory access: fi_rma(3), from each call's arguments to a request. */
#include "api/rma.h"

#include <rdma/fi_errno.h>

#include "api/ep.h"
#include "api/request.h"
#include "xport/iov.h"

static const uint64_t write_flags = FI_REMOTE_CQ_DATA | FI_COMPLETION | FI_MORE | FI_INJECT |
	FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_FENCE;
static const uint64_t read_flags = FI_COMPLETION | FI_MORE | FI_DELIVERY_COMPLETE |
	FI_TRANSMIT_COMPLETE | FI_INJECT_COMPLETE | FI_FENCE;

/* For the calls with one remote segment, which is as long as the local segments together. */
static inline __attribute__((always_inline)) ssize_t
rma(struct fid_ep *fid, enum verve_rma_kind kind, struct verve_request *request, uint64_t addr,
    uint64_t key)
{
	struct verve_wire_segment remote = {
		.addr = addr,
		.len = verve_iov_len(request->iov, request->iov_count),
		.key = key,
	};

	request->remote = &remote;
	request->remote_count = 1;
	return verve_request_rma(verve_ep_from_fid(fid), kind, request);
}

static ssize_t rma_msg(struct fid_ep *fid, enum verve_rma_kind kind, const struct fi_msg_rma *msg,
		       uint64_t flags)
{
	struct verve_ep *ep = verve_ep_from_fid(fid);
	struct verve_wire_segment remote[VERVE_WIRE_SEGMENTS];
	struct verve_request request = {
		.iov = msg->msg_iov,
		.desc = msg->desc,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.data = msg->data,
		.context = msg->context,
		.flags = verve_ep_tx_flags(ep, flags),
		.remote = remote,
		.remote_count = msg->rma_iov_count,
	};
	size_t len = 0;

	if (flags & ~(kind == VERVE_RMA_WRITE ? write_flags : read_flags))
		return -FI_EBADFLAGS;
	if (msg->rma_iov_count < 1 || msg->rma_iov_count > VERVE_WIRE_SEGMENTS ||
	    msg->iov_count > VERVE_IOV_LIMIT)
		return -FI_EINVAL;
	for (size_t i = 0; i < msg->rma_iov_count; i++) {
		remote[i] = (struct verve_wire_segment) {
			msg->rma_iov[i].addr, msg->rma_iov[i].len, msg->rma_iov[i].key};
		len += msg->rma_iov[i].len;
	}
	if (len != verve_iov_len(msg->msg_iov, msg->iov_count))
		return -FI_EINVAL;
	return verve_request_rma(ep, kind, &request);
}

static ssize_t readv_(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
{
	struct verve_request request = {
		.iov = iov, .desc = desc, .iov_count = count, .addr = src_addr, .context = context,
		.flags = verve_ep_from_fid(fid)->tx_flags & ~VERVE_OP_INJECT,
	};

	return rma(fid, VERVE_RMA_READ, &request, addr, key);
}

static ssize_t read_(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src_addr,
		     uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = {buf, len};

	return readv_(fid, &iov, &desc, 1, src_addr, addr, key, context);
}

static ssize_t readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_msg(fid, VERVE_RMA_READ, msg, flags);
}

static ssize_t writev_(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		       fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	struct verve_request request = {
		.iov = iov, .desc = desc, .iov_count = count, .addr = dest_addr, .context = context,
		.flags = verve_ep_from_fid(fid)->tx_flags,
	};

	return rma(fid, VERVE_RMA_WRITE, &request, addr, key);
}

static ssize_t write_(struct fid_ep *fid, const void *buf, size_t len, void *desc,
		      fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = {(void *)buf, len};

	return writev_(fid, &iov, &desc, 1, dest_addr, addr, key, context);
}

static ssize_t writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_msg(fid, VERVE_RMA_WRITE, msg, flags);
}

static ssize_t inject_write(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest_addr,
			    uint64_t addr, uint64_t key)
{
	struct iovec iov = {(void *)buf, len};
	struct verve_request request = {
		.iov = &iov, .iov_count = 1, .addr = dest_addr, .flags = VERVE_OP_INJECT,
	};

	return rma(fid, VERVE_RMA_WRITE, &request, addr, key);
}

static ssize_t writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			 fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = {(void *)buf, len};
	struct verve_request request = {
		.iov = &iov, .desc = &desc, .iov_count = 1, .addr = dest_addr, .data = data,
		.context = context, .flags = verve_ep_from_fid(fid)->tx_flags | VERVE_OP_DATA,
	};

	return rma(fid, VERVE_RMA_WRITE, &request, addr, key);
}

static ssize_t inject_writedata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
				fi_addr_t dest_addr, uint64_t addr, uint64_t key)
{
	struct iovec iov = {(void *)buf, len};
	struct verve_request request = {
		.iov = &iov, .iov_count = 1, .addr = dest_addr, .data = data,
		.flags = VERVE_OP_INJECT | VERVE_OP_DATA,
	};

	return rma(fid, VERVE_RMA_WRITE, &request, addr, key);
}

struct fi_ops_rma verve_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = read_,
	.readv = readv_,
	.readmsg = readmsg,
	.write = write_,
	.writev = writev_,
	.writemsg = writemsg,
	.inject = inject_write,
	.writedata = writedata,
	.injectdata = inject_writedata,
};
