/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Input of the connection manager: jobs that workers have done (conn/cm_job.h).
 *
 * This file goes on where the job began. Our end is open: the connection gets the datagrams that
 * were kept. The queue pair is connected: the actions that waited for that are performed, then the
 * connection gets the datagrams. It must not know
 * requests or timers. Service thread.
 */
#ifndef VERVE_CONN_CM_DONE_H
#define VERVE_CONN_CM_DONE_H

#include <stdint.h>

struct verve_cm;

/* Takes all jobs that are done, and goes on. now: nanoseconds. */
void verve_cm_step_jobs(struct verve_cm *cm, uint64_t now);

#endif
