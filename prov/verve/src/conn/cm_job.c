/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Jobs of the connection manager: what a worker does, and the way there and back. */
#include "conn/cm_job.h"

#include <stdlib.h>
#include <string.h>

#include "conn/cm_state.h"

static void job_run(struct verve_job *base)
{
	struct verve_cm_job *job = (struct verve_cm_job *)base;
	const struct verve_cm_attr *attr = &job->cm->attr;

	switch (job->kind) {
	case VERVE_CM_JOB_OPEN:
		job->error = verve_net_qp_open(attr->dev, &attr->qp_attr, job->psn, &job->qp);
		break;
	case VERVE_CM_JOB_CONNECT:
		job->error = verve_net_qp_connect(job->qp, &job->remote,
						  attr->transport_timeout_ms);
		break;
	case VERVE_CM_JOB_CLOSE:
		verve_net_qp_close(job->qp);
		break;
	}
}

static int job_put(struct verve_cm *cm, struct verve_cm_job *job, enum verve_cm_job_kind kind,
		   bool stranger)
{
	int ret;

	job->cm = cm;
	job->kind = kind;
	job->job.run = job_run;
	ret = verve_worker_put(&cm->jobs, &job->job,
			       stranger ? VERVE_JOB_STRANGER : VERVE_JOB_URGENT);
	if (ret)
		return ret;
	job->stranger = stranger;
	cm->strangers += stranger;
	return 0;
}

static int entry_put(struct verve_cm *cm, struct verve_cm_entry *entry,
		     enum verve_cm_job_kind kind)
{
	int ret;

	entry->job->entry = entry;
	entry->job->kept_count = 0;
	entry->job->is_faulty = false;
	ret = job_put(cm, entry->job, kind, !entry->request || entry->for_peer);
	entry->busy = !ret;
	return ret;
}

int verve_cm_job_open(struct verve_cm *cm, struct verve_cm_entry *entry)
{
	return entry_put(cm, entry, VERVE_CM_JOB_OPEN);
}

int verve_cm_job_connect(struct verve_cm *cm, struct verve_cm_entry *entry,
			 const struct verve_conn_out *out)
{
	entry->job->remote = entry->conn.remote.qp;
	entry->job->out = *out;
	entry->job->out.actions &= ~VERVE_CONN_DO_CONNECT;
	return entry_put(cm, entry, VERVE_CM_JOB_CONNECT);
}

/* Nobody waits for it: urgent jobs go first. */
void verve_cm_job_close(struct verve_cm *cm, struct verve_cm_job *job)
{
	job->entry = NULL;
	if (!cm->jobless && !job_put(cm, job, VERVE_CM_JOB_CLOSE, true))
		return;
	verve_net_qp_close(job->qp);
	free(job);
}

static void job_forget_stranger(struct verve_cm *cm, struct verve_cm_job *job)
{
	cm->strangers -= job->stranger;
	job->stranger = false;
}

void verve_cm_job_hurry(struct verve_cm *cm, struct verve_cm_job *job)
{
	job_forget_stranger(cm, job);
	verve_worker_hurry(&job->job);
}

void verve_cm_job_keep(struct verve_cm_job *job, const struct verve_hello *hello)
{
	for (unsigned i = 0; i < job->kept_count; i++)
		if (!memcmp(&job->kept[i], hello, sizeof(*hello)))
			return;
	if (job->kept_count < VERVE_CM_JOB_KEPT)
		job->kept[job->kept_count++] = *hello;
}

/* The owner has left: a queue pair that was to be closed is closed here. */
static void job_finish_close(struct verve_cm_job *job)
{
	if (job->job.dropped)
		verve_net_qp_close(job->qp);
	free(job);
}

struct verve_cm_job *verve_cm_job_next(struct verve_cm *cm)
{
	struct verve_cm_job *job;

	for (;;) {
		if (!cm->done)
			cm->done = verve_mailbox_take(&cm->jobs.done);
		job = (struct verve_cm_job *)cm->done;
		if (!job)
			return NULL;
		cm->done = cm->done->next;
		job_forget_stranger(cm, job);
		if (job->kind != VERVE_CM_JOB_CLOSE) {
			job->entry->busy = false;
			return job;
		}
		job_finish_close(job);
	}
}
