/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Jobs of the connection manager: the commands of its queue pairs, which workers execute
 * (conn/worker.h), one at a time for each entry.
 *
 * While an entry is busy (a worker has its job), its connection takes no input: datagrams are kept,
 * the timer rests. So the connection sees the same as if the network were slower, and needs no
 * states for it. An engine's request finds nothing of a busy entry that it could name, but for
 * another request to connect, which is kept as ever.
 *
 * Service thread, but for the job itself.
 */
#ifndef VERVE_CONN_CM_JOB_H
#define VERVE_CONN_CM_JOB_H

#include <stdbool.h>

#include "conn/conn_state.h"
#include "conn/hello.h"
#include "conn/worker.h"
#include "net/qp.h"

struct verve_cm;
struct verve_cm_entry;

enum verve_cm_job_kind { VERVE_CM_JOB_OPEN, VERVE_CM_JOB_CONNECT, VERVE_CM_JOB_CLOSE };

/* Datagrams that an entry keeps for its connection. More of them are lost. */
enum { VERVE_CM_JOB_KEPT = 4 };

/*
 * Allocated with our end, so that neither connecting nor closing its queue pair can fail for lack
 * of memory; freed when UP hands the queue pair over, or when it is closed.
 */
struct verve_cm_job {
	struct verve_job job; /* must be first */
	struct verve_cm *cm;
	struct verve_cm_entry *entry; /* NULL: CLOSE */
	enum verve_cm_job_kind kind;
	bool stranger;	  /* the job is under way, and counted in cm->strangers */
	uint32_t psn;	  /* OPEN: of our first packet */
	struct verve_net_qp *qp; /* NULL: not open yet */
	struct verve_net_qp_addr remote; /* CONNECT: the peer's queue pair */
	int error;		 /* OPEN, CONNECT: the result; 0, or negative */
	bool is_faulty; /* CONNECT: the device reported the queue pair's failure meanwhile */
	struct verve_conn_out
		out; /* CONNECT: actions to perform when the queue pair is connected */
	unsigned kept_count;
	struct verve_hello kept[VERVE_CM_JOB_KEPT]; /* datagrams that came meanwhile */
};

/*
 * Begin a job; the entry, which has one (entry->job), is busy from then on. The error of
 * verve_worker_put: the entry is not busy.
 */
int verve_cm_job_open(struct verve_cm *cm, struct verve_cm_entry *entry);
/* Connects to conn.remote.qp; *out is copied, and is job->out when the job is done. */
int verve_cm_job_connect(struct verve_cm *cm, struct verve_cm_entry *entry,
			 const struct verve_conn_out *out);
/*
 * Closes the queue pair of a job that is not under way; the job belongs to nobody from here on. If
 * no worker can be started, or the manager is about to close, this thread closes the queue pair.
 */
void verve_cm_job_close(struct verve_cm *cm, struct verve_cm_job *job);

/* Our engine has asked for the connection of a busy entry, which may be a stranger's so far. */
void verve_cm_job_hurry(struct verve_cm *cm, struct verve_cm_job *job);
/* Keeps a datagram for a busy entry's connection. A copy of one that is kept already is lost. */
void verve_cm_job_keep(struct verve_cm_job *job, const struct verve_hello *hello);
/*
 * Takes the next job that is done: its entry is not busy any more. NULL: there is none. Jobs of
 * closed queue pairs are freed here.
 */
struct verve_cm_job *verve_cm_job_next(struct verve_cm *cm);

#endif
