/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Retiring: what a request gives back, and what its operation learns. */
#include "xport/retire.h"

#include "net/cq.h"
#include "xport/bulk.h"
#include "xport/link.h"
#include "xport/xport.h"

void verve_link_uncount(struct verve_xport *xport, struct verve_link *link,
			const struct verve_slot *slot)
{
	xport->wr_used--;
	xport->asked -= slot->asks;
	link->sharing -= slot->shares;
	link->bulk_reads -= verve_bulk_is(xport, slot->verb, slot->length);
	link->slabs -= slot->has_slab;
	xport->tx_slabs.posted -= slot->has_slab;
}

void verve_link_release(struct verve_xport *xport, struct verve_link *link,
			const struct verve_slot *slot)
{
	verve_link_uncount(xport, link, slot);
	if (slot->kind == VERVE_SLOT_COPY)
		link->copied_retired = slot->copied;
	else if (slot->kind != VERVE_SLOT_MEMORY && slot->slab)
		verve_slab_free(&xport->tx_slabs, slot->slab);
}

void verve_link_retire(struct verve_xport *xport, struct verve_link *link, uint32_t status)
{
	struct verve_slot *slot = verve_link_slot(link, link->retired++);
	struct verve_op *op = slot->op;

	verve_link_release(xport, link, slot);
	if (!op)
		return;
	if (status && status != VERVE_NET_WC_FLUSHED) {
		op->error = verve_net_wc_errno(status);
		op->status = status;
	} else if (!status && slot->tell) {
		op->cls->done(xport, op);
	}
}
