/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reporting: the queue and the counter of each completion, and the text of errors. */
#include "xport/report.h"

#include <assert.h>
#include <stdio.h>

#include "base/probe.h"
#include "conn/addrvec.h"
#include "xport/errand.h"
#include "xport/memory.h"
#include "xport/op.h"
#include "xport/peer.h"
#include "xport/xport.h"

/* The receive of a shared context, which belongs to the context. */
static bool is_foreign(const struct verve_xport *xport, const struct verve_op *op)
{
	return op->cls->is_receive && xport->home != xport;
}

/*
 * The operations of a closed endpoint end without a completion: fi_close, fi_endpoint(3). The
 * shared context of a foreign receive stays open, so that the receive is reported.
 */
static const struct verve_sink *sink_of(const struct verve_xport *xport, const struct verve_op *op)
{
	static const struct verve_sink none;

	return xport->mute && !is_foreign(xport, op) ? &none : &xport->attr.sink;
}

static struct verve_comp_queue *queue_of(const struct verve_xport *xport, const struct verve_op *op)
{
	const struct verve_sink *sink = sink_of(xport, op);

	return op->cls->is_receive ? sink->rx_queue : sink->tx_queue;
}

static struct verve_comp_counter *counter_of(const struct verve_xport *xport,
					     const struct verve_op *op)
{
	const char *sink = (const char *)sink_of(xport, op);

	/* Operations of a class without a counter have VERVE_OP_REPORTED from the start. */
	assert(op->cls->counter_at);
	return *(struct verve_comp_counter *const *) (sink + op->cls->counter_at);
}

static uint64_t comp_flags(const struct verve_op *op)
{
	uint64_t message = op->flags & VERVE_OP_TAGGED ? VERVE_COMP_TAGGED : VERVE_COMP_MSG;

	return op->cls->comp_flags | (op->cls->is_message ? message : 0);
}

/*
 * Makes the operation's completion, and marks the operation as reported. NULL: it may be written.
 * Else verve_errand_send sends the errand that is to write it.
 */
static inline struct verve_errand *make_comp(struct verve_xport *xport, struct verve_op *op,
					     struct verve_comp *comp)
{
	struct verve_errand *errand = NULL;

	*comp = (struct verve_comp) {
		.context = op->context,
		.flags = comp_flags(op),
		.len = op->len,
		.src = UINT64_MAX,
	};

	assert(!(op->flags & VERVE_OP_REPORTED));
	op->flags |= VERVE_OP_REPORTED;
	/*
	 * The application may free its buffer as soon as another of its threads sees the
	 * completion.
	 */
	if (op->cls->memory_at)
		errand = verve_memory_part(xport, op);
	if (op->cls->describe)
		op->cls->describe(xport, op, comp);
	return errand;
}

/* An errand's completion, once the operation's regions are given back. The endpoint may close. */
static void write_late(const struct verve_errand *errand)
{
	const struct verve_errand_report *report = &errand->report;

	if (errand->xport->mute && !report->is_foreign)
		return;
	if (!report->is_error) {
		verve_report_now(report->queue, report->counter, report->notify,
				 &report->entry.comp);
		return;
	}
	if (report->queue)
		verve_comp_queue_write_error(report->queue, &report->entry);
	if (report->counter)
		verve_comp_counter_add_error(report->counter, 1);
}

static __attribute__((noinline)) void
send_errand(struct verve_errand *errand, const struct verve_op *op,
	    const struct verve_errand_report *report)
{
	errand->report = *report;
	errand->report.write = write_late;
	errand->report.is_foreign = is_foreign(errand->xport, op);
	if (!op->cls->is_receive) {
		errand->report.peer = op->peer;
		op->peer->parting++;
	}
	verve_errand_send(errand);
}

void verve_op_report(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_comp_queue *queue = queue_of(xport, op);
	struct verve_comp_counter *counter = counter_of(xport, op);
	struct verve_errand *errand;
	struct verve_comp comp;
	bool notify;

	errand = make_comp(xport, op, &comp);
	/* A completion that gives a multi-receive buffer back is never suppressed. */
	notify = op->flags & VERVE_OP_NOTIFY || comp.flags & VERVE_COMP_MULTI_RECV;
	if (__builtin_expect(errand != NULL, 0)) {
		send_errand(errand, op, &(struct verve_errand_report){
						.queue = queue, .counter = counter,
						.notify = notify, .entry.comp = comp});
		return;
	}
	if (queue && notify && op->flags & VERVE_OP_UNINVITED) {
		verve_comp_queue_write_uninvited(queue, &comp);
		notify = false;
	}
	verve_report_now(queue, counter, notify, &comp);
}

/*
 * The target's fi_addr_t, or UINT64_MAX. Not verve_peer_fi_addr: that also enters the peer in the
 * table by which requests find it, and an endpoint that has failed must find none.
 */
static uint64_t target_of(const struct verve_xport *xport, const struct verve_peer *peer)
{
	return peer->fi_addr != UINT64_MAX ? peer->fi_addr :
					     verve_addrvec_find(xport->attr.addrvec, &peer->addr);
}

void verve_op_report_error(struct verve_xport *xport, struct verve_op *op, int error,
			   uint32_t status, const char *reason)
{
	struct verve_comp_queue *queue = queue_of(xport, op);
	struct verve_comp_counter *counter = counter_of(xport, op);
	struct verve_comp_error entry = {
		.err = error,
		.prov_errno = status,
		.uninvited = op->flags & VERVE_OP_UNINVITED,
	};
	struct verve_errand *errand;
	char name[VERVE_ADDR_STRLEN];

	assert(error > 0);
	errand = make_comp(xport, op, &entry.comp);
	if (!op->cls->is_receive) {
		entry.comp.len = 0;
		if (op->peer)
			entry.comp.src = target_of(xport, op->peer);
	}
	if (op->cls->blame)
		op->cls->blame(op, &entry, &reason);
	snprintf(entry.reason, sizeof(entry.reason), "%s%s%s", reason, op->peer ? ", peer " : "",
		 op->peer ? verve_addr_str(&op->peer->addr, name) : "");
	verve_probe_failed(op->peer ? op->peer->stat->name : "", op->cls->name, error, status,
			   entry.reason);
	if (errand) {
		send_errand(errand, op, &(struct verve_errand_report){
						.queue = queue, .counter = counter,
						.is_error = true, .entry = entry});
		return;
	}
	if (queue)
		verve_comp_queue_write_error(queue, &entry);
	if (counter)
		verve_comp_counter_add_error(counter, 1);
}

void verve_op_finish(struct verve_xport *xport, struct verve_op *op)
{
	verve_op_report(xport, op);
	verve_op_free(xport, op);
}

void verve_op_fail(struct verve_xport *xport, struct verve_op *op, int error, const char *reason)
{
	if (!(op->flags & VERVE_OP_REPORTED))
		verve_op_report_error(xport, op, error, op->status, reason);
	verve_op_free(xport, op);
}
