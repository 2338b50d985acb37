/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory that a work request names at its initiator. */
#include <string.h>

#include "fake_qp.h"
#include "fake_region.h"
#include "fake_world.h"

enum { POISON = 0xa5 };

bool fake_wr_is_valid(const struct verve_net_qp *qp, const struct fake_wr *wr)
{
	unsigned access = fake_wr_fetches(wr) ? VERVE_NET_LOCAL_WRITE : 0;

	if (wr->inline_data)
		return true;
	for (uint32_t i = 0; i < wr->wr.sge_count; i++)
		if (!fake_lkey_covers(qp->dev, wr->sge[i].lkey, wr->sge[i].addr, wr->sge[i].length,
				      access))
			return false;
	return true;
}

int fake_wr_execute_here(struct verve_net_qp *qp, const struct fake_wr *wr)
{
	if (wr->wr.op == VERVE_NET_BIND)
		return fake_window_bind(qp, &wr->bind, wr->wr.rkey) ? FAKE_WC_OK : FAKE_WC_BIND;
	return fake_window_invalidate(qp->dev, qp, wr->wr.rkey) ? FAKE_WC_OK :
								   FAKE_WC_LOCAL_OPERATION;
}

void *fake_wr_memory(const struct verve_net_qp *qp, const struct verve_net_sge *sge)
{
	return fake_lkey_memory(qp->dev, sge->lkey, sge->addr);
}

void fake_wr_gather(const struct verve_net_qp *qp, const struct fake_wr *wr, void *to)
{
	char *at = to;

	if (wr->inline_data && wr->len)
		memcpy(to, wr->inline_data, wr->len);
	for (uint32_t i = 0; !wr->inline_data && i < wr->wr.sge_count; i++) {
		if (wr->sge[i].length)
			memmove(at, fake_wr_memory(qp, &wr->sge[i]), wr->sge[i].length);
		at += wr->sge[i].length;
	}
}

void fake_wr_scatter(const struct verve_net_qp *qp, const struct fake_wr *wr, const void *from)
{
	const char *at = from;

	for (uint32_t i = 0; i < wr->wr.sge_count; i++) {
		if (wr->sge[i].length)
			memmove(fake_wr_memory(qp, &wr->sge[i]), at, wr->sge[i].length);
		at += wr->sge[i].length;
	}
}

void fake_wr_poison(const struct verve_net_qp *qp, const struct fake_wr *wr)
{
	for (uint32_t i = 0; i < wr->wr.sge_count; i++) {
		memset(fake_wr_memory(qp, &wr->sge[i]), POISON,
		       wr->sge[i].length < 64 ? wr->sge[i].length : 64);
	}
}
