/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Input of the connection manager: requests that engines put into its mailbox (conn/cm_event.h).
 *
 * This file maps each request to an input of its connection (conn/conn.h). It must not know
 * datagrams or timers. Service thread.
 */
#ifndef VERVE_CONN_CM_MAIL_H
#define VERVE_CONN_CM_MAIL_H

struct verve_cm;

/* Takes all requests out of the mailbox, and performs them. */
void verve_cm_step_requests(struct verve_cm *cm);

#endif
