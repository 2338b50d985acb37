/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pair numbers: find the link over whose queue pair something came: a write with immediate
 * data, which has no header, or a packet whose header leads elsewhere. The engine's lock protects
 * everything here.
 */
#ifndef VERVE_XPORT_QP_NUM_H
#define VERVE_XPORT_QP_NUM_H

#include <stdint.h>

#include "xport/link.h"
#include "xport/xport.h"

static inline struct verve_link_list *verve_qp_num_list(struct verve_xport *xport, uint32_t qp_num)
{
	return &xport->links_of_qp[qp_num % VERVE_QP_LISTS];
}

/* The link over whose queue pair packets arrive; NULL: none. */
static inline struct verve_link *verve_qp_num_find(struct verve_xport *xport, uint32_t qp_num)
{
	struct verve_link *link;

	LIST_FOREACH(link, verve_qp_num_list(xport, qp_num), same_list)
		if (link->qp_num == qp_num)
			break;
	return link;
}

/* From now on the link's packets arrive over queue pair qp_num; 0: over none. */
static inline void verve_qp_num_set(struct verve_xport *xport, struct verve_link *link,
				    uint32_t qp_num)
{
	if (link->qp_num)
		LIST_REMOVE(link, same_list);
	link->qp_num = qp_num;
	if (qp_num)
		LIST_INSERT_HEAD(verve_qp_num_list(xport, qp_num), link, same_list);
}

#endif
