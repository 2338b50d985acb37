/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Request: the way from an endpoint's data transfer call to its engine. msg.c, tagged.c and rma.c
 * turn libfabric's arguments into a request; the functions here check the request and hand it to
 * the engine. Any thread; the functions take the engine's lock. The request and the memory that it
 * names stay the caller's: nothing of the request itself is kept.
 *
 * They are inline, because most callers have one piece of memory and no flags: little is left to
 * check then.
 */
#ifndef VERVE_API_REQUEST_H
#define VERVE_API_REQUEST_H

#include <rdma/fi_errno.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/attr.h"
#include "api/domain.h"
#include "api/ep.h"
#include "engine/engine.h"
#include "msg/recv.h"
#include "msg/send.h"
#include "rma/rma.h"
#include "xport/request.h"

/* For the functions below alone. -FI_EMSGSIZE: all segments together are longer than room bytes. */
static inline int verve_request_check_length(const struct verve_request *request, size_t room)
{
	for (size_t i = 0; i < request->iov_count; i++) {
		if (request->iov[i].iov_len > room)
			return -FI_EMSGSIZE;
		room -= request->iov[i].iov_len;
	}
	return 0;
}

/* Likewise: what sends and receives have in common. */
static inline int verve_request_prepare(const struct verve_ep *ep, struct verve_request *request)
{
	if (!ep->engine)
		return -FI_EOPBADSTATE;
	if (request->iov_count > VERVE_IOV_LIMIT)
		return -FI_EINVAL;
	/* Where descriptors are ignored, they may be anything. fi_mr(3), FI_MR_LOCAL. */
	if (!ep->domain->takes_desc)
		request->desc = NULL;
	return 0;
}

/* Likewise. */
static inline int verve_request_prepare_tx(const struct verve_ep *ep, struct verve_request *request)
{
	bool inject = request->flags & VERVE_OP_INJECT;
	int ret = verve_request_prepare(ep, request);

	return ret ? ret : verve_request_check_length(
		request, inject ? verve_attr_inject_size() : VERVE_MSG_SIZE_MAX);
}

/* Likewise. */
static inline int verve_request_prepare_rx(const struct verve_ep *ep, struct verve_request *request)
{
	int ret = verve_request_prepare(ep, request);

	if (ret)
		return ret;
	if (!(request->flags & VERVE_OP_TAGGED ? ep->tagged_directed : ep->directed))
		request->addr = FI_ADDR_UNSPEC;
	if (request->flags & VERVE_OP_TAGGED)
		request->flags &= ~VERVE_OP_MULTI;
	if (request->flags & VERVE_OP_MULTI && request->iov_count != 1)
		return -FI_EINVAL;
	return 0;
}

/*
 * Hand a request to the engine. 0: accepted. -FI_EOPBADSTATE: the endpoint is not enabled;
 * -FI_EINVAL: too many segments, or the address vector has no such peer; -FI_EMSGSIZE: longer than
 * VERVE_MSG_SIZE_MAX, or too long to inject; -FI_EAGAIN: there is no room now, the caller makes
 * progress and calls again.
 */
static inline ssize_t verve_request_send(struct verve_ep *ep, struct verve_request *request)
{
	int ret = verve_request_prepare_tx(ep, request);

	if (ret)
		return ret;
	ret = verve_send(verve_engine_lock(ep->engine), request);
	verve_engine_unlock(ep->engine);
	return ret;
}

static inline ssize_t verve_request_recv(struct verve_ep *ep, struct verve_request *request)
{
	int ret = verve_request_prepare_rx(ep, request);

	if (!ret)
		ret = verve_request_check_length(request, SIZE_MAX);
	if (ret)
		return ret;
	ret = verve_recv(verve_engine_lock(ep->engine), request);
	verve_engine_unlock(ep->engine);
	return ret;
}

/* As verve_request_send, for RMA. kind: VERVE_RMA_READ or VERVE_RMA_WRITE. */
static inline ssize_t verve_request_rma(struct verve_ep *ep, enum verve_rma_kind kind,
					struct verve_request *request)
{
	int ret = verve_request_prepare_tx(ep, request);

	if (ret)
		return ret;
	ret = verve_rma(verve_engine_lock(ep->engine), kind, request);
	verve_engine_unlock(ep->engine);
	return ret;
}

/*
 * As verve_request_recv, for FI_PEEK, FI_CLAIM and FI_DISCARD, which flags name. -FI_EINVAL also:
 * FI_DISCARD alone, or the context has claimed no message.
 */
ssize_t verve_request_peek(struct verve_ep *ep, struct verve_request *request, uint64_t flags);

#endif
