/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Retiring: a request that has ended gives back the slab or copy of its slot. The engine's lock
 * protects everything here.
 */
#ifndef VERVE_XPORT_RETIRE_H
#define VERVE_XPORT_RETIRE_H

#include <stdint.h>

struct verve_link;
struct verve_slot;
struct verve_xport;

/* The slot's request leaves the link: it counts no more, neither there nor in the transport. */
void verve_link_uncount(struct verve_xport *xport, struct verve_link *link,
			const struct verve_slot *slot);
/* The same, and gives back the slab or the copy that the slot of an ended request holds. */
void verve_link_release(struct verve_xport *xport, struct verve_link *link,
			const struct verve_slot *slot);
/*
 * Retires the oldest outstanding request, which ended with this ibv_wc_status. Success calls the
 * class's done if the slot says so, which may end other operations, and may break the link. An
 * error other than FLUSHED goes into op->error and op->status.
 */
void verve_link_retire(struct verve_xport *xport, struct verve_link *link, uint32_t status);

#endif
