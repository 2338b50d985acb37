/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Request: the checks that all calls of msg.c, tagged.c and rma.c share, and the engine's lock. */
#include "api/request.h"

#include <rdma/fi_errno.h>

#include "api/attr.h"
#include "api/domain.h"
#include "api/ep.h"
#include "engine/engine.h"
#include "msg/peek.h"
#include "msg/recv.h"
#include "msg/send.h"
#include "rma/rma.h"

/* -FI_EMSGSIZE: all segments together are longer than room bytes. */
static inline int check_length(const struct verve_request *request, size_t room)
{
	for (size_t i = 0; i < request->iov_count; i++) {
		if (request->iov[i].iov_len > room)
			return -FI_EMSGSIZE;
		room -= request->iov[i].iov_len;
	}
	return 0;
}

/* Where descriptors are ignored, the application may pass anything. fi_mr(3), FI_MR_LOCAL. */
static void prepare_desc(const struct verve_ep *ep, struct verve_request *request)
{
	if (!ep->domain->takes_desc)
		request->desc = NULL;
}

static inline int prepare_tx(const struct verve_ep *ep, struct verve_request *request)
{
	if (!ep->engine)
		return -FI_EOPBADSTATE;
	if (request->iov_count > VERVE_IOV_LIMIT)
		return -FI_EINVAL;
	prepare_desc(ep, request);
	return check_length(request, request->flags & VERVE_OP_INJECT ? verve_attr_inject_size()
								      : VERVE_MSG_SIZE_MAX);
}

ssize_t verve_request_send(struct verve_ep *ep, struct verve_request *request)
{
	int ret = prepare_tx(ep, request);

	if (ret)
		return ret;
	ret = verve_send(verve_engine_lock(ep->engine), request);
	verve_engine_unlock(ep->engine);
	return ret;
}

static inline int prepare_rx(const struct verve_ep *ep, struct verve_request *request)
{
	if (!ep->engine)
		return -FI_EOPBADSTATE;
	if (request->iov_count > VERVE_IOV_LIMIT)
		return -FI_EINVAL;
	prepare_desc(ep, request);
	if (!(request->flags & VERVE_OP_TAGGED ? ep->tagged_directed : ep->directed))
		request->addr = FI_ADDR_UNSPEC;
	if (request->flags & VERVE_OP_TAGGED)
		request->flags &= ~VERVE_OP_MULTI;
	if (request->flags & VERVE_OP_MULTI && request->iov_count != 1)
		return -FI_EINVAL;
	return 0;
}

ssize_t verve_request_recv(struct verve_ep *ep, struct verve_request *request)
{
	int ret = prepare_rx(ep, request);

	if (!ret)
		ret = check_length(request, SIZE_MAX);
	if (ret)
		return ret;
	ret = verve_recv(verve_engine_lock(ep->engine), request);
	verve_engine_unlock(ep->engine);
	return ret;
}

ssize_t verve_request_peek(struct verve_ep *ep, struct verve_request *request, uint64_t flags)
{
	unsigned what = (flags & FI_PEEK ? VERVE_PEEK : 0) | (flags & FI_CLAIM ? VERVE_CLAIM : 0) |
			(flags & FI_DISCARD ? VERVE_DISCARD : 0);
	int ret = prepare_rx(ep, request);

	if (ret)
		return ret;
	if (what == VERVE_DISCARD)
		return -FI_EINVAL;
	/* Only FI_CLAIM alone receives into a buffer. */
	if (what == VERVE_CLAIM)
		ret = check_length(request, SIZE_MAX);
	if (ret)
		return ret;
	/* The message may just have arrived, so take a turn first. */
	verve_engine_progress(ep->engine);
	ret = verve_recv_peek(verve_engine_lock(ep->engine), request, what);
	verve_engine_unlock(ep->engine);
	return ret;
}

ssize_t verve_request_rma(struct verve_ep *ep, enum verve_rma_kind kind,
			  struct verve_request *request)
{
	int ret = prepare_tx(ep, request);

	if (ret)
		return ret;
	ret = verve_rma(verve_engine_lock(ep->engine), kind, request);
	verve_engine_unlock(ep->engine);
	return ret;
}
