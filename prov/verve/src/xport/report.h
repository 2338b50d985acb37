/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reporting: the one completion of an operation: an entry of a completion queue, a count, the text
 * of an error. While the endpoint closes, nothing is written. The engine's lock protects everything
 * here.
 */
#ifndef VERVE_XPORT_REPORT_H
#define VERVE_XPORT_REPORT_H

#include <stdint.h>

struct verve_op;
struct verve_xport;

/* Success. The operation is not freed, and must not have been reported. */
void verve_op_report(struct verve_xport *xport, struct verve_op *op);
/* The same with an error: a positive FI errno, an ibv_wc_status or 0, and a readable reason. */
void verve_op_report_error(struct verve_xport *xport, struct verve_op *op, int error, uint32_t status,
			   const char *reason);
/* Success: reports the operation, and frees it. */
void verve_op_finish(struct verve_xport *xport, struct verve_op *op);
/*
 * The same with an error; an operation that was reported already is only freed. No posted request
 * may refer to the operation.
 */
void verve_op_fail(struct verve_xport *xport, struct verve_op *op, int error, const char *reason);

#endif
