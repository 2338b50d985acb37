/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A memory window, and what it is to open: for the files of windows and of queue pairs. */
#ifndef VERVE_NET_BIND_H
#define VERVE_NET_BIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct verve_net_mr;

struct verve_net_mw {
	uint32_t rkey; /* changes with each bind, and with each unbind of a window of type 1 */
	bool for_peer;
	void *handle;  /* struct ibv_mw *, for net alone */
};

/* Arguments of verve_net_mw_bind; for a window for a peer also of VERVE_NET_BIND (net/qp.h). */
struct verve_net_bind {
	const struct verve_net_mw *mw; /* for_peer: not bound */
	const struct verve_net_mr *mr;
	void *addr;
	size_t len;
	unsigned access; /* VERVE_NET_*; the REMOTE bits count */
};

#endif
