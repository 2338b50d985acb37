/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Request: peeking. */
#include "api/request.h"

#include "msg/peek.h"

ssize_t verve_request_peek(struct verve_ep *ep, struct verve_request *request, uint64_t flags)
{
	unsigned what = (flags & FI_PEEK ? VERVE_PEEK : 0) | (flags & FI_CLAIM ? VERVE_CLAIM : 0) |
			(flags & FI_DISCARD ? VERVE_DISCARD : 0);
	int ret = verve_request_prepare_rx(ep, request);

	if (ret)
		return ret;
	if (what == VERVE_DISCARD)
		return -FI_EINVAL;
	/* Only FI_CLAIM alone receives into a buffer. */
	if (what == VERVE_CLAIM)
		ret = verve_request_check_length(request, SIZE_MAX);
	if (ret)
		return ret;
	/* The message may just have arrived, so take a turn first. */
	verve_engine_progress(ep->engine);
	ret = verve_recv_peek(verve_engine_lock(ep->engine), request, what);
	verve_engine_unlock(ep->engine);
	return ret;
}
