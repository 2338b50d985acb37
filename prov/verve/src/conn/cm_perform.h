/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Performing: everything that leaves the connection manager: connecting queue pairs, events for the
 * engine, datagrams to peers.
 *
 * Connections decide (struct verve_conn_out), this file does. It must not know which input, or
 * which step, made the connection decide. Service thread.
 */
#ifndef VERVE_CONN_CM_PERFORM_H
#define VERVE_CONN_CM_PERFORM_H

#include "base/addr.h"
#include "conn/cm_state.h"
#include "conn/conn_state.h"
#include "conn/hello.h"

/*
 * Performs the actions of *out, and settles the entry (verve_cm_entry_settle). Actions that fail
 * are an input to the connection, whose actions are performed, too: *out is changed.
 * VERVE_CONN_DO_OPEN is the caller's.
 */
void verve_cm_perform(struct verve_cm *cm, struct verve_cm_entry *entry,
		      struct verve_conn_out *out);
/* Sends a datagram, authenticated if there is a key. Returns what verve_net_dgram_send returns. */
int verve_cm_send(struct verve_cm *cm, const struct verve_hello *hello,
		  const struct verve_addr *to);
/* Reports a request for a connection as FAILED. Takes the request. error: positive FI errno. */
void verve_cm_fail_request(struct verve_cm *cm, struct verve_cm_event *request, int error);

#endif
