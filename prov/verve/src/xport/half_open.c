/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Half-open links: which are late, and when they break. */
#include "xport/half_open.h"

#include "base/config.h"
#include "conn/cm.h"
#include "xport/dispatch.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

bool verve_half_open_is_any(const struct verve_xport *xport)
{
	return !TAILQ_EMPTY(&xport->half_open);
}

static bool is_late(const struct verve_link *link, uint64_t now)
{
	return verve_link_is_half_open(link) &&
	       now - link->listening >= verve_config.connect_timeout * UINT64_C(1000000);
}

void verve_half_open_expire(struct verve_xport *xport, uint64_t now)
{
	struct verve_link *link, *next;

	TAILQ_FOREACH(link, &xport->half_open, half_open) {
		xport->count.looks++;
		if (is_late(link, now))
			break;
	}
	if (!link)
		return;
	if (!verve_dispatch_drain(xport))
		return;
	for (link = TAILQ_FIRST(&xport->half_open); link; link = next) {
		next = TAILQ_NEXT(link, half_open);
		if (!is_late(link, now)) {
			link->overdue = false;
		} else if (!link->overdue) {
			link->overdue = true;
		} else {
			if (xport->cm)
				verve_cm_expire(xport->cm, &link->drop);
			verve_link_break(xport, link, FI_ETIMEDOUT, 0,
					 "the peer began to connect, and was not heard of again");
		}
	}
}
