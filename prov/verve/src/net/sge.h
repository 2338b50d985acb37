/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Segments of requests (net/qp.h) and receive buffers (net/srq.h). */
#ifndef VERVE_NET_SGE_H
#define VERVE_NET_SGE_H

#include <stdint.h>

/* A piece of local memory. Same layout as struct ibv_sge; qp.c asserts it. */
struct verve_net_sge {
	uint64_t addr;	 /* virtual address */
	uint32_t length; /* bytes */
	uint32_t lkey;
};

#endif
