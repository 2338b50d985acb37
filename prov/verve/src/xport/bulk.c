/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "xport/bulk.h"

bool verve_bulk_is_full(const struct verve_link *link)
{
	uint32_t reads = verve_net_qp_reads(link->qp), most = reads - (reads + 3) / 4;

	return link->bulk_reads >= (most ? most : 1);
}
