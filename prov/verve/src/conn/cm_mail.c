/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Input of the connection manager: the requests of engines. */
#include "conn/cm_mail.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "conn/cm_entry.h"
#include "conn/cm_fault.h"
#include "conn/cm_job.h"
#include "conn/cm_perform.h"
#include "conn/cm_state.h"
#include "conn/conn.h"

/* A request to connect, or, if it names a connection, to continue that one. */
static void mail_connect(struct verve_cm *cm, struct verve_cm_event *request)
{
	struct verve_cm_entry *entry = verve_cm_entry_make(cm, &request->addr);

	if (!entry) {
		verve_cm_fail_request(cm, request, FI_ENOMEM);
		return;
	}
	if (!request->conn_id)
		entry->for_peer = false;
	if (entry->conn.state == VERVE_CONN_IDLE)
		verve_conn_forget(&entry->conn, request->conn_id);
	verve_conn_connect(&entry->conn);
	if (entry->request || (verve_conn_is_established(&entry->conn) && !entry->busy)) {
		verve_cm_event_free(request);
	} else {
		entry->request = request;
	}
	if (entry->busy && !entry->for_peer)
		verve_cm_job_hurry(cm, entry->job);
	verve_cm_entry_settle(cm, entry);
}

/*
 * The engine has given the connection up, so DOWN is not reported. If READY came meanwhile, the
 * peer exists, and gets a BYE.
 */
static void mail_expire(struct verve_cm_entry *entry, struct verve_conn_out *out)
{
	if (entry->conn.state != VERVE_CONN_WAIT_READY) {
		verve_conn_drop(&entry->conn, out);
		return;
	}
	verve_conn_expire(&entry->conn, out);
	out->actions &= ~VERVE_CONN_DO_DOWN;
}

/* A request about a connection that the manager still has. */
static void conn_step_request(struct verve_cm *cm, struct verve_cm_entry *entry,
		      const struct verve_cm_request *request)
{
	struct verve_conn_out out = {0};

	switch (request->kind) {
	case VERVE_CM_REQUEST_RESUME:
		verve_conn_suspend(&entry->conn, &out);
		break;
	case VERVE_CM_REQUEST_DROP:
		verve_conn_drop(&entry->conn, &out);
		break;
	case VERVE_CM_REQUEST_EXPIRE:
		mail_expire(entry, &out);
		break;
	case VERVE_CM_REQUEST_CHECK:
		verve_conn_check(&entry->conn, request->first, &out);
		break;
	case VERVE_CM_REQUEST_HEAR:
		verve_conn_hear(&entry->conn);
		break;
	case VERVE_CM_REQUEST_CONNECT:
	case VERVE_CM_REQUEST_FAIL:
		break;
	}
	verve_cm_perform(cm, entry, &out);
}

/*
 * A RESUME may name a connection that is gone: the peer has suspended it, too, or has asked for the
 * next one already. That next connection serves both sides.
 */
static void mail_step_request(struct verve_cm *cm, struct verve_cm_request *request)
{
	struct verve_cm_entry *entry = verve_idtab_get(&cm->ids, request->event.conn_id);

	if (entry && !entry->busy)
		conn_step_request(cm, entry, request);
	if (request->kind == VERVE_CM_REQUEST_FAIL)
		verve_cm_abandon(cm, request->event.error);
	if (request->kind == VERVE_CM_REQUEST_CONNECT ||
	    request->kind == VERVE_CM_REQUEST_RESUME)
		mail_connect(cm, &request->event);
	else
		free(request);
}

void verve_cm_step_requests(struct verve_cm *cm)
{
	struct verve_mail *mail, *next;

	for (mail = verve_mailbox_take(&cm->requests); mail; mail = next) {
		next = mail->next;
		mail_step_request(cm, (struct verve_cm_request *)mail);
	}
}
