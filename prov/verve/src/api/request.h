/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Request: from an endpoint's call of data transfer to its engine. msg.c, tagged.c and rma.c turn libfabric's
 * arguments into a request; here it is checked and handed over. Any thread.
 */
#ifndef VERVE_API_REQUEST_H
#define VERVE_API_REQUEST_H

#include <stdint.h>
#include <sys/types.h>

#include "rma/rma.h"
#include "xport/request.h"

struct verve_ep;

/*
 * Hand a request to the engine. -FI_EOPBADSTATE: not enabled; -FI_EINVAL: too many segments, no such
 * peer; -FI_EMSGSIZE: too long to inject; -FI_EAGAIN: no room now.
 */
ssize_t verve_request_send(struct verve_ep *ep, struct verve_request *request);
ssize_t verve_request_recv(struct verve_ep *ep, struct verve_request *request);
/* flags: FI_PEEK, FI_CLAIM, FI_DISCARD of the call. */
ssize_t verve_request_peek(struct verve_ep *ep, struct verve_request *request, uint64_t flags);
/* kind: VERVE_RMA_READ or VERVE_RMA_WRITE. */
ssize_t verve_request_rma(struct verve_ep *ep, enum verve_rma_kind kind,
			  struct verve_request *request);

#endif
