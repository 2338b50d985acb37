/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Input of the connection manager: jobs that workers have done. */
#include "conn/cm_done.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "conn/cm_dgram.h"
#include "conn/cm_entry.h"
#include "conn/cm_fault.h"
#include "conn/cm_job.h"
#include "conn/cm_perform.h"
#include "conn/cm_state.h"
#include "conn/conn.h"
#include "conn/conn_send.h"
#include "net/sys.h"

/* Datagrams that an entry kept while it was busy. */
struct kept {
	unsigned count;
	struct verve_hello hello[VERVE_CM_JOB_KEPT];
};

/*
 * Tells the engine, which may close an idle connection. The peer asks again, so the event may be
 * missing: there is no memory, or the engine has not come to older ones, and strangers could ask
 * without end.
 */
static void tell_scarcity(struct verve_cm *cm)
{
	struct verve_cm_event *event =
		verve_mailbox_is_empty(cm->attr.events) ? calloc(1, sizeof(*event)) : NULL;

	if (!event)
		return;
	event->type = VERVE_CM_SCARCE;
	verve_mailbox_put(cm->attr.events, &event->mail);
	cm->has_news = true;
}

/*
 * Our end cannot be opened. A connection that is IDLE has asked for nothing, and keeps what it
 * remembers: its peer, which asked, may be a forged one.
 */
static void open_failed(struct verve_cm *cm, struct verve_cm_entry *entry, int error,
			struct kept *kept)
{
	bool is_short = !cm->failed && verve_net_qp_is_short(error);
	struct verve_conn_out out = {0};
	struct verve_hello bye;

	if (entry->request)
		entry->request->scarce = is_short;
	else if (is_short && kept->count)
		tell_scarcity(cm);
	if (entry->conn.state != VERVE_CONN_IDLE)
		verve_conn_abort(&entry->conn, error, &out);
	verve_cm_perform(cm, entry, &out);
	for (unsigned i = 0; i < kept->count; i++) {
		if (kept->hello[i].kind != VERVE_HELLO_HELLO)
			continue;
		verve_conn_refuse(&cm->self, &kept->hello[i],
				  cm->failed ? VERVE_HELLO_FAILED :
				  is_short   ? VERVE_HELLO_RESOURCE :
					       VERVE_HELLO_NO_WAY,
				  &bye);
		verve_cm_send(cm, &bye, &entry->conn.addr);
	}
	kept->count = 0;
}

static void connect_done(struct verve_cm *cm, struct verve_cm_entry *entry)
{
	struct verve_conn_out out = entry->job->out;

	if (cm->failed || entry->job->is_faulty) {
		verve_cm_abandon_entry(cm, entry, cm->failed ? cm->failed : FI_EIO);
		return;
	}
	if (entry->job->error)
		verve_conn_abort(&entry->conn, -entry->job->error, &out);
	verve_cm_perform(cm, entry, &out);
}

/* The peer's HELLO, which came while our end was opened, makes starting needless. */
static void start_queued(struct verve_cm *cm, struct verve_cm_entry *entry, uint64_t now)
{
	struct verve_conn_out out;

	if (entry->busy || entry->conn.state != VERVE_CONN_QUEUED || !entry->conn.local.id)
		return;
	verve_conn_start(&entry->conn, now, verve_net_random64(), &out);
	verve_cm_perform(cm, entry, &out);
}

static void job_done(struct verve_cm *cm, const struct verve_cm_job *job, uint64_t now)
{
	struct verve_cm_entry *entry = job->entry;
	struct kept kept = {.count = job->kept_count};
	int ret;

	/* The job may be freed below, or begin anew. */
	memcpy(kept.hello, job->kept, sizeof(kept.hello));
	if (job->kind == VERVE_CM_JOB_CONNECT) {
		connect_done(cm, entry);
	} else {
		ret = verve_cm_entry_opened(cm, entry);
		if (ret)
			open_failed(cm, entry, -ret, &kept);
	}
	for (unsigned i = 0; i < kept.count; i++)
		verve_cm_receive(cm, entry, &kept.hello[i], now);
	start_queued(cm, entry, now);
}

void verve_cm_step_jobs(struct verve_cm *cm, uint64_t now)
{
	struct verve_cm_job *job;

	while ((job = verve_cm_job_next(cm)))
		job_done(cm, job, now);
}
