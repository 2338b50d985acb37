/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoint: flags, options, cancelling. */
#include "api/ep.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "api/attr.h"
#include "api/stubs.h"
#include "base/log.h"
#include "engine/engine.h"
#include "proto/cancel.h"
#include "xport/op.h"
#include "xport/xport.h"

uint32_t verve_ep_tx_flags(const struct verve_ep *ep, uint64_t flags)
{
	return (!ep->tx_selective || flags & FI_COMPLETION ? VERVE_OP_NOTIFY : 0) |
	       (flags & FI_REMOTE_CQ_DATA ? VERVE_OP_DATA : 0) |
	       (flags & FI_INJECT ? VERVE_OP_INJECT : 0) |
	       (flags & FI_TRANSMIT_COMPLETE ? VERVE_OP_TRANSMIT : 0) |
	       (flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE) ? VERVE_OP_ACK : 0) |
	       (flags & FI_MATCH_COMPLETE ? VERVE_OP_MATCH : 0) |
	       (flags & FI_FENCE ? VERVE_OP_FENCE : 0);
}

uint32_t verve_ep_rx_flags(const struct verve_ep *ep, uint64_t flags)
{
	return (!ep->rx_selective || flags & FI_COMPLETION ? VERVE_OP_NOTIFY : 0) |
	       (flags & FI_MULTI_RECV ? VERVE_OP_MULTI : 0);
}

void verve_ep_update_flags(struct verve_ep *ep)
{
	/* Each call says itself whether it has remote CQ data or a fence. These are no defaults. */
	ep->tx_flags = verve_ep_tx_flags(ep, ep->tx_op_flags) & ~(VERVE_OP_DATA | VERVE_OP_FENCE);
	ep->rx_flags = verve_ep_rx_flags(ep, ep->rx_op_flags);
}

int verve_ep_get_op_flags(const struct verve_ep *ep, uint64_t *flags)
{
	bool tx = *flags & FI_TRANSMIT, rx = *flags & FI_RECV;

	if (tx == rx)
		return -FI_EINVAL;
	*flags = tx ? ep->tx_op_flags : ep->rx_op_flags;
	return 0;
}

int verve_ep_set_op_flags(struct verve_ep *ep, uint64_t flags)
{
	bool tx = flags & FI_TRANSMIT, rx = flags & FI_RECV;
	uint64_t unknown;

	if (tx == rx)
		return -FI_EINVAL;
	flags &= ~(FI_TRANSMIT | FI_RECV);
	unknown = flags & ~(tx ? VERVE_TX_OP_FLAGS : VERVE_RX_OP_FLAGS);
	if (unknown) {
		VERVE_WARN(EP_CTRL, "flags 0x%llx cannot be the default of %s operations\n",
			   (unsigned long long)unknown, tx ? "transmit" : "receive");
		return -FI_EBADFLAGS;
	}
	*(tx ? &ep->tx_op_flags : &ep->rx_op_flags) = flags;
	verve_ep_update_flags(ep);
	return 0;
}

void verve_ep_set_directed(struct verve_ep *ep, uint64_t caps)
{
	ep->directed = caps & FI_DIRECTED_RECV;
	ep->tagged_directed =
		ep->directed || (caps & VERVE_TAGGED_DIRECTED_RECV &&
				 FI_VERSION_GE(ep->domain->api_version, FI_VERSION(2, 0)));
}

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct verve_ep *ep = (struct verve_ep *)fid;
	struct verve_xport *xport;
	ssize_t ret;

	if (!ep->engine)
		return -FI_EOPBADSTATE;
	xport = verve_engine_lock(ep->engine);
	ret = verve_cancel(xport, context);
	verve_engine_unlock(ep->engine);
	return ret;
}

static int ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	struct verve_ep *ep = verve_ep_owner(fid);

	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*optlen < sizeof(size_t)) {
		*optlen = sizeof(size_t);
		return -FI_ETOOSMALL;
	}
	memcpy(optval, &ep->min_multi_recv, sizeof(size_t));
	*optlen = sizeof(size_t);
	return 0;
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	struct verve_ep *ep = verve_ep_owner(fid);

	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (optlen != sizeof(size_t))
		return -FI_EINVAL;
	memcpy(&ep->min_multi_recv, optval, sizeof(size_t));
	/* At least 1, so that a buffer without room is always given back. */
	if (!ep->min_multi_recv)
		ep->min_multi_recv = 1;
	if (ep->engine) {
		verve_engine_lock(ep->engine)->attr.min_multi_recv = ep->min_multi_recv;
		verve_engine_unlock(ep->engine);
	}
	return 0;
}

struct fi_ops_ep verve_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = verve_stub_ep_tx_ctx,
	.rx_ctx = verve_stub_ep_rx_ctx,
	.rx_size_left = verve_stub_ep_rx_size_left,
	.tx_size_left = verve_stub_ep_tx_size_left,
};
