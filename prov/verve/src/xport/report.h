/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reporting: writes the one completion of an operation: an entry of a completion queue, a count,
 * the text of an error. While the endpoint closes, nothing is written. The engine's lock protects
 * everything here.
 */
#ifndef VERVE_XPORT_REPORT_H
#define VERVE_XPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "comp/comp_queue.h"
#include "comp/counter.h"

struct verve_op;
struct verve_xport;

/* Reports success. Does not free the operation, which must not have been reported (asserted). */
void verve_op_report(struct verve_xport *xport, struct verve_op *op);
/*
 * Reports an error: a positive FI errno, an ibv_wc_status or 0, and a readable reason, which is
 * copied. comp.src of a transmit is its target. Otherwise like verve_op_report.
 */
void verve_op_report_error(struct verve_xport *xport, struct verve_op *op, int error,
			   uint32_t status, const char *reason);
/*
 * Writes and counts a completion. The caller has looked at xport->mute. queue, counter: NULL:
 * there is none. notify: the request wants an entry.
 */
static inline void verve_report_now(struct verve_comp_queue *queue,
				    struct verve_comp_counter *counter, bool notify,
				    const struct verve_comp *comp)
{
	if (queue && notify)
		verve_comp_queue_write(queue, comp);
	if (counter)
		verve_comp_counter_add(counter, 1);
}

/* Reports success, and frees the operation. */
void verve_op_finish(struct verve_xport *xport, struct verve_op *op);
/*
 * Reports this error, with op->status, unless the operation was reported already; then frees the
 * operation. No outstanding request may name the operation.
 */
void verve_op_fail(struct verve_xport *xport, struct verve_op *op, int error, const char *reason);

#endif
