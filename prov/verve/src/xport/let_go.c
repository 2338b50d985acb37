/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Letting go: the jobs that stop and close a queue pair. */
#include "xport/let_go.h"

#include <assert.h>
#include <stdlib.h>

#include "net/qp.h"
#include "xport/link.h"
#include "xport/qp_num.h"
#include "xport/xport.h"

struct letting_go {
	struct verve_job job; /* must be first */
	struct verve_net_qp *qp;
	uint32_t link_id; /* 0: of no link */
	bool close;	  /* false: only puts the queue pair in error */
	int error;	  /* of verve_net_qp_error */
};

static void job_run(struct verve_job *job)
{
	struct letting_go *letting_go = (struct letting_go *)job;

	if (letting_go->close)
		verve_net_qp_close(letting_go->qp);
	else
		letting_go->error = verve_net_qp_error(letting_go->qp);
}

/* link NULL: of no link. Without memory, or without a worker, this thread does the job. */
static void job_give(struct verve_xport *xport, struct verve_link *link, struct letting_go *what)
{
	struct letting_go *job = xport->closers.wake ? malloc(sizeof(*job)) : NULL;

	what->job.run = job_run;
	what->link_id = link ? link->id : 0;
	if (job) {
		*job = *what;
		if (!verve_worker_put(&xport->closers, &job->job, VERVE_JOB_URGENT)) {
			xport->qps_at_workers++;
			if (link)
				link->qps_at_workers++;
			return;
		}
		free(job);
	}
	job_run(&what->job);
	if (link && what->error && what->qp == link->qp)
		link->unmarked = true;
}

void verve_let_go_stop(struct verve_xport *xport, struct verve_link *link, struct verve_net_qp *qp)
{
	job_give(xport, link, &(struct letting_go){.qp = qp});
}

void verve_let_go(struct verve_xport *xport, struct verve_net_qp *qp)
{
	job_give(xport, NULL, &(struct letting_go){.qp = qp, .close = true});
}

void verve_let_go_link(struct verve_xport *xport, struct verve_link *link)
{
	struct verve_net_qp *qps[] = {link->unused, link->qp};

	assert(!link->qps_at_workers);
	verve_qp_num_set(xport, link, 0);
	link->unused = link->qp = NULL;
	for (int i = 0; i < 2; i++)
		if (qps[i])
			job_give(xport, link, &(struct letting_go){.qp = qps[i], .close = true});
}

static void job_done(struct verve_xport *xport, struct letting_go *job)
{
	struct verve_link *link = verve_idtab_get(&xport->link_ids, job->link_id);

	if (job->job.dropped)
		job_run(&job->job);
	if (link) {
		link->qps_at_workers--;
		if (job->error && job->qp == link->qp)
			link->unmarked = true;
	}
	xport->qps_at_workers--;
	free(job);
}

bool verve_let_go_step(struct verve_xport *xport)
{
	struct verve_mail *mail = verve_mailbox_take(&xport->closers.done), *next;
	bool any = mail;

	for (; mail; mail = next) {
		next = mail->next;
		job_done(xport, (struct letting_go *)mail);
	}
	return any;
}

void verve_let_go_open(struct verve_xport *xport, void (*wake)(void *arg), void *arg)
{
	verve_worker_open(&xport->closers, wake, arg);
}

void verve_let_go_close(struct verve_xport *xport)
{
	if (!xport->closers.wake)
		return;
	verve_worker_close(&xport->closers);
	xport->closers.wake = NULL;
	verve_let_go_step(xport);
}
