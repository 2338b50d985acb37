/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tagged messages: fi_tagged(3), from each call's arguments to a request. */
#include "api/tagged.h"

#include <rdma/fi_errno.h>

#include "api/ep.h"
#include "api/request.h"

/* Flags of fi_tsendmsg and fi_trecvmsg that have a meaning here, or that may safely be ignored. */
static const uint64_t send_flags = FI_REMOTE_CQ_DATA | FI_COMPLETION | FI_MORE | FI_INJECT |
				   FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
				   FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_FENCE;
static const uint64_t recv_flags = FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM |
	FI_DISCARD;

static ssize_t recv_one(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			uint64_t tag, uint64_t ignore, void *context)
{
	struct verve_ep *ep = verve_ep_from_fid(fid);
	struct iovec iov = {buf, len};
	struct verve_request request = {
		.iov = &iov, .desc = &desc, .iov_count = 1, .addr = src_addr, .context = context,
		.flags = ep->rx_flags | VERVE_OP_TAGGED, .tag = tag, .ignore = ignore,
	};

	return verve_request_recv(ep, &request);
}

static ssize_t recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		     fi_addr_t src_addr, uint64_t tag,
		     uint64_t ignore, void *context)
{
	struct verve_ep *ep = verve_ep_from_fid(fid);
	struct verve_request request = {
		.iov = iov, .desc = desc, .iov_count = count, .addr = src_addr, .context = context,
		.flags = ep->rx_flags | VERVE_OP_TAGGED, .tag = tag, .ignore = ignore,
	};

	return verve_request_recv(ep, &request);
}

static ssize_t recvmsg_(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct verve_ep *ep = verve_ep_from_fid(fid);
	struct verve_request request = {
		.iov = msg->msg_iov,
		.desc = msg->desc,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.context = msg->context,
		.tag = msg->tag,
		.ignore = msg->ignore,
		.flags = verve_ep_rx_flags(ep, flags) | VERVE_OP_TAGGED,
	};

	if (flags & ~recv_flags)
		return -FI_EBADFLAGS;
	if (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD))
		return verve_request_peek(ep, &request, flags);
	return verve_request_recv(ep, &request);
}

static ssize_t send_one(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			fi_addr_t dest_addr, uint64_t tag, void *context)
{
	struct verve_ep *ep = verve_ep_from_fid(fid);
	struct iovec iov = {(void *)buf, len};
	struct verve_request request = {
		.iov = &iov, .desc = &desc, .iov_count = 1, .addr = dest_addr, .context = context,
		.flags = ep->tx_flags | VERVE_OP_TAGGED, .tag = tag,
	};

	return verve_request_send(ep, &request);
}

static ssize_t sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		     fi_addr_t dest_addr, uint64_t tag,
		     void *context)
{
	struct verve_ep *ep = verve_ep_from_fid(fid);
	struct verve_request request = {
		.iov = iov, .desc = desc, .iov_count = count, .addr = dest_addr, .context = context,
		.flags = ep->tx_flags | VERVE_OP_TAGGED, .tag = tag,
	};

	return verve_request_send(ep, &request);
}

static ssize_t sendmsg_(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct verve_ep *ep = verve_ep_from_fid(fid);
	struct verve_request request = {
		.iov = msg->msg_iov,
		.desc = msg->desc,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.data = msg->data,
		.context = msg->context,
		.tag = msg->tag,
		.flags = verve_ep_tx_flags(ep, flags) | VERVE_OP_TAGGED,
	};

	if (flags & ~send_flags)
		return -FI_EBADFLAGS;
	return verve_request_send(ep, &request);
}

static ssize_t inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest_addr,
		      uint64_t tag)
{
	struct iovec iov = {(void *)buf, len};
	struct verve_request request = {
		.iov = &iov,
		.iov_count = 1,
		.addr = dest_addr,
		.flags = VERVE_OP_INJECT | VERVE_OP_TAGGED,
		.tag = tag,
	};

	return verve_request_send(verve_ep_from_fid(fid), &request);
}

static ssize_t senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			fi_addr_t dest_addr, uint64_t tag,
		     void *context)
{
	struct verve_ep *ep = verve_ep_from_fid(fid);
	struct iovec iov = {(void *)buf, len};
	struct verve_request request = {
		.iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = dest_addr,
		.data = data,
		.context = context,
		.flags = ep->tx_flags | VERVE_OP_DATA | VERVE_OP_TAGGED,
		.tag = tag,
	};

	return verve_request_send(ep, &request);
}

static ssize_t injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			  fi_addr_t dest_addr, uint64_t tag)
{
	struct iovec iov = {(void *)buf, len};
	struct verve_request request = {
		.iov = &iov, .iov_count = 1, .addr = dest_addr, .data = data,
		.flags = VERVE_OP_INJECT | VERVE_OP_DATA | VERVE_OP_TAGGED, .tag = tag,
	};

	return verve_request_send(verve_ep_from_fid(fid), &request);
}

struct fi_ops_tagged verve_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = recv_one,
	.recvv = recvv,
	.recvmsg = recvmsg_,
	.send = send_one,
	.sendv = sendv,
	.sendmsg = sendmsg_,
	.inject = inject,
	.senddata = senddata,
	.injectdata = injectdata,
};
