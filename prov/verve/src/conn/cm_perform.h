/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Output of the connection manager: has queue pairs connected, puts events for the engine, sends
 * datagrams to peers.
 *
 * A connection decides on actions (struct verve_conn_out); this file performs them. It must not
 * know the input or the step that made the connection decide. Service thread.
 */
#ifndef VERVE_CONN_CM_PERFORM_H
#define VERVE_CONN_CM_PERFORM_H

#include "base/addr.h"
#include "conn/cm_state.h"
#include "conn/conn_state.h"
#include "conn/hello.h"

/*
 * Performs the actions of *out, and settles the entry (verve_cm_entry_settle). A failed action is
 * the connection's next input, and the actions that follow from it are performed as well; *out may
 * be changed. VERVE_CONN_DO_OPEN is left to the caller. VERVE_CONN_DO_CONNECT makes the entry busy;
 * all other actions wait until the worker has connected the queue pair.
 */
void verve_cm_perform(struct verve_cm *cm, struct verve_cm_entry *entry,
		      struct verve_conn_out *out);
/* Sends a datagram, signed if there is a key. The result of verve_net_dgram_send. */
int verve_cm_send(struct verve_cm *cm, const struct verve_hello *hello,
		  const struct verve_addr *to);
/* Turns a request for a connection into its FAILED event, and puts it. error: positive FI errno. */
void verve_cm_fail_request(struct verve_cm *cm, struct verve_cm_event *request, int error);

#endif
