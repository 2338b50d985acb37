/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Request: the way from an endpoint's data transfer call to its engine. msg.c, tagged.c and rma.c
 * turn libfabric's arguments into a request; the functions here check the request and hand it to
 * the engine. Any thread; the functions take the engine's lock. The request and the memory that it
 * names stay the caller's: nothing of the request itself is kept.
 */
#ifndef VERVE_API_REQUEST_H
#define VERVE_API_REQUEST_H

#include <stdint.h>
#include <sys/types.h>

#include "rma/rma.h"
#include "xport/request.h"

struct verve_ep;

/*
 * Hand a request to the engine. 0: accepted. -FI_EOPBADSTATE: the endpoint is not enabled;
 * -FI_EINVAL: too many segments, or the address vector has no such peer; -FI_EMSGSIZE: longer than
 * VERVE_MSG_SIZE_MAX, or too long to inject; -FI_EAGAIN: there is no room now, the caller makes
 * progress and calls again.
 */
ssize_t verve_request_send(struct verve_ep *ep, struct verve_request *request);
ssize_t verve_request_recv(struct verve_ep *ep, struct verve_request *request);
/*
 * As verve_request_recv, for FI_PEEK, FI_CLAIM and FI_DISCARD, which flags name. -FI_EINVAL also:
 * FI_DISCARD alone, or the context has claimed no message.
 */
ssize_t verve_request_peek(struct verve_ep *ep, struct verve_request *request, uint64_t flags);
/* As verve_request_send, for RMA. kind: VERVE_RMA_READ or VERVE_RMA_WRITE. */
ssize_t verve_request_rma(struct verve_ep *ep, enum verve_rma_kind kind,
			  struct verve_request *request);

#endif
