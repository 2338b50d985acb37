/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reporting: the one completion of an operation: an entry of a completion queue, a count, the text of an error. Nobody
 * hears of it if the endpoint closes. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_REPORT_H
#define VERVE_XPORT_REPORT_H

#include <stdint.h>

struct verve_op;
struct verve_xport;

/* Success. Leaves the operation to the caller. */
void verve_op_report(struct verve_xport *xport, struct verve_op *op);
/* The same: error, positive FI errno, ibv_wc_status or 0, and a readable reason. */
void verve_op_report_error(struct verve_xport *xport, struct verve_op *op, int error, uint32_t status,
			   const char *reason);
/* Success, and the end: reported and freed. */
void verve_op_finish(struct verve_xport *xport, struct verve_op *op);
/* The same with an error, for one that nothing posted refers to; reported unless it was. */
void verve_op_fail(struct verve_xport *xport, struct verve_op *op, int error, const char *reason);

#endif
