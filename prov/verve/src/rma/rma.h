/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory access: RDMA write and read, fi_rma(3). The engine's lock protects everything here.
 */
#ifndef VERVE_RMA_RMA_H
#define VERVE_RMA_RMA_H

#include "xport/op.h"
#include "xport/request.h"

enum verve_rma_kind { VERVE_RMA_WRITE, VERVE_RMA_READ };

extern const struct verve_op_class verve_write_class, verve_read_class;

/*
 * Accepts one read or write. 0: the operation will complete once; without VERVE_OP_NOTIFY, only an
 * error makes a completion entry. -FI_EAGAIN, -FI_EINVAL, -FI_EMSGSIZE as verve_send.
 */
int verve_rma(struct verve_xport *xport, enum verve_rma_kind kind,
	      const struct verve_request *request);

#endif
