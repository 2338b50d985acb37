/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Remote memory access: fi_rma(3). Any thread; the calls take the engine's lock. */
#ifndef VERVE_API_RMA_H
#define VERVE_API_RMA_H

#include <rdma/fi_rma.h>

extern struct fi_ops_rma verve_rma_ops;

#endif
