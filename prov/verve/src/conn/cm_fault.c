/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Input of the connection manager: what fails of the device. */
#include "conn/cm_fault.h"

#include <rdma/fi_errno.h>

#include "conn/cm_job.h"
#include "conn/cm_perform.h"
#include "conn/cm_state.h"
#include "conn/conn.h"

void verve_cm_abandon_entry(struct verve_cm *cm, struct verve_cm_entry *entry, int error)
{
	struct verve_conn_out out;

	verve_conn_abandon(&entry->conn, error, &out);
	/* The engine knows nothing of a connection before UP, and waits for its request's end. */
	if (out.actions & VERVE_CONN_DO_DOWN && entry->up) {
		out.actions &= ~VERVE_CONN_DO_DOWN;
		out.actions |= VERVE_CONN_DO_FAIL;
	}
	verve_cm_perform(cm, entry, &out);
}

/*
 * Another manager's step may have read the event. No step of this manager follows then, so its
 * engine is woken here.
 */
static void wake_engine(struct verve_cm *cm)
{
	if (cm->has_news)
		cm->attr.notify(cm->attr.arg);
	cm->has_news = false;
}

static void put_fatal(struct verve_cm *cm, int error)
{
	cm->failed = error;
	cm->fatal->type = VERVE_CM_FATAL;
	cm->fatal->error = error;
	verve_mailbox_put(cm->attr.events, &cm->fatal->mail);
	cm->fatal = NULL;
	cm->has_news = true;
	if (cm->attr.fatal)
		cm->attr.fatal(cm->attr.arg, error);
}

void verve_cm_abandon(struct verve_cm *cm, int error)
{
	/* FATAL goes first, so that the engine does not ask for the connections again. */
	if (!cm->failed)
		put_fatal(cm, error);
	for (struct verve_cm_entry *entry = cm->entries; entry; entry = entry->hh.next)
		if (!entry->busy)
			verve_cm_abandon_entry(cm, entry, error);
	wake_engine(cm);
}

/* Both engines go on over another queue pair, as after a refused request: doc/refusals.md. */
static void entry_suspend(struct verve_cm *cm, struct verve_cm_entry *entry)
{
	struct verve_conn_out out;

	verve_conn_suspend(&entry->conn, &out);
	out.actions |= VERVE_CONN_DO_DOWN;
	out.error = FI_EIO;
	out.suspended = true;
	verve_cm_perform(cm, entry, &out);
}

static void replace_qp(struct verve_cm *cm, uint32_t qp_num)
{
	for (struct verve_cm_entry *entry = cm->entries; entry; entry = entry->hh.next) {
		const struct verve_conn *conn = &entry->conn;

		if (!conn->local.id || conn->local.qp.qp_num != qp_num)
			continue;
		/* Only a connection that the peer surely has can go on. */
		if (entry->busy)
			entry->job->is_faulty = true;
		else if (conn->state == VERVE_CONN_UP && !verve_conn_is_self(conn))
			entry_suspend(cm, entry);
		else
			verve_cm_abandon_entry(cm, entry, FI_EIO);
	}
	wake_engine(cm);
}

void verve_cm_fault(struct verve_cm *cm, const struct verve_net_fault *fault)
{
	const struct verve_net_qp_attr *own = &cm->attr.qp_attr;

	switch (fault->kind) {
	case VERVE_NET_FAULT_CQ:
		if (fault->queue == own->send_cq || fault->queue == own->recv_cq)
			verve_cm_abandon(cm, FI_EIO);
		break;
	case VERVE_NET_FAULT_SRQ:
		if (fault->queue == own->srq)
			verve_cm_abandon(cm, FI_EIO);
		break;
	case VERVE_NET_FAULT_QP:
		replace_qp(cm, fault->qp_num);
		break;
	case VERVE_NET_FAULT_NONE:
		break;
	}
}
