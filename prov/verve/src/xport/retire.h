/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Retiring: what an outstanding request held goes back when it has ended. The engine's lock protects everything here. */
#ifndef VERVE_XPORT_RETIRE_H
#define VERVE_XPORT_RETIRE_H

#include <stdint.h>

struct verve_link;
struct verve_slot;
struct verve_xport;

/* The request is not outstanding any more: gives back what its slot held. */
void verve_link_release(struct verve_xport *xport, struct verve_link *link,
			const struct verve_slot *slot);
/* The oldest outstanding request ended; status: ibv_wc_status. Its operation hears of it if it is to be told. */
void verve_link_retire(struct verve_xport *xport, struct verve_link *link, uint32_t status);

#endif
