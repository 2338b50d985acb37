/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Workers: the few threads of the process that execute the commands of queue pairs: opening,
 * connecting, stopping, closing. Such a command takes a millisecond on some devices; connecting may
 * take a second, because the kernel looks for the peer's Ethernet address meanwhile. So the service
 * thread and the application's threads leave them to workers; where no worker can be started, or an
 * endpoint closes, they execute them.
 *
 * An owner (a connection manager, a transport) puts jobs, and gets each back by mail when it is
 * done. Urgent jobs overtake those that only a stranger has caused, and strangers' jobs never have
 * all workers. Owners take turns.
 *
 * A manager starts the first one when it is opened. A job that finds no worker idle starts one
 * more, up to their number. The last owner that leaves ends all. In a child after fork(2), jobs of
 * the parent's owners are not executed any more.
 *
 * Any thread may call the functions here. The lock of this file is taken last, and is never held
 * while a job is executed.
 */
#ifndef VERVE_CONN_WORKER_H
#define VERVE_CONN_WORKER_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/mailbox.h"

enum verve_job_class {
	VERVE_JOB_URGENT, /* this side has asked for the connection, or waits for its end */
	/*
	 * This side does not wait for it: only the peer has asked, whose address may be forged, or
	 * a queue pair is closed that was not handed over. Or this side waits for what the peer has
	 * asked for and then suspended, which a stranger may do without end.
	 */
	VERVE_JOB_STRANGER,
	VERVE_JOB_CLASSES,
};

struct verve_job_owner;

/* A job, embedded in its object. From verve_worker_put until its mail comes, the workers own it. */
struct verve_job {
	struct verve_mail mail; /* must be first */
	TAILQ_ENTRY(verve_job) link;
	struct verve_job_owner *owner;
	enum verve_job_class class;
	bool queued;			    /* no worker has begun it */
	bool dropped;			    /* the owner left first: run was not called */
	void (*run)(struct verve_job *job); /* set before verve_worker_put */
};

TAILQ_HEAD(verve_job_queue, verve_job);

struct verve_job_owner {
	struct verve_mailbox done; /* struct verve_job: done, or dropped */
	void (*wake)(void *arg);   /* the first mail has come into done; must not block */
	void *arg;
	/* Private: the lock of worker.c guards it. */
	struct verve_job_queue queues[VERVE_JOB_CLASSES];
	TAILQ_ENTRY(verve_job_owner) turn[VERVE_JOB_CLASSES];
	unsigned running; /* jobs that workers have begun */
};

/* wake, arg: see struct verve_job_owner. */
void verve_worker_open(struct verve_job_owner *owner, void (*wake)(void *arg), void *arg);
/*
 * Starts a worker if there is none; it stays while an owner does. When the first job comes, the
 * process may have used up its descriptors, or threads. Logs. A negative error of starting a
 * thread.
 */
int verve_worker_prepare(void);
/*
 * Waits for the owner's jobs that have begun; the others come back as dropped. Afterwards no worker
 * touches the owner, and done has the last mail. No other thread may put a job of this owner
 * meanwhile.
 */
void verve_worker_close(struct verve_job_owner *owner);

/*
 * 0: the job is queued. A negative error of starting a thread: there is no worker, and the job
 * stays the caller's.
 */
int verve_worker_put(struct verve_job_owner *owner, struct verve_job *job,
		     enum verve_job_class class);
/* Makes a job urgent. Harmless if it has begun. */
void verve_worker_hurry(struct verve_job *job);

/* The provider is unloaded: stops the threads, also if endpoints were left open. */
void verve_worker_fini(void);

#endif
