/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Entry: the connection manager's record of one peer address. It has the connection, and our end of
 * it: id, queue pair, prepared events.
 *
 * This file owns the table of entries, the lists, and the count of handshakes in the window. It
 * must not know datagrams or events that go out (conn/cm_perform.h), nor the inputs. Service
 * thread.
 */
#ifndef VERVE_CONN_CM_ENTRY_H
#define VERVE_CONN_CM_ENTRY_H

#include "base/addr.h"
#include "conn/cm_state.h"

/* NULL: no entry for that address. */
struct verve_cm_entry *verve_cm_entry_find(const struct verve_cm *cm,
					   const struct verve_addr *addr);
/* Finds the entry, or makes one. NULL: no memory. */
struct verve_cm_entry *verve_cm_entry_make(struct verve_cm *cm, const struct verve_addr *addr);
/* Frees the entry, and our end without telling the peer. */
void verve_cm_entry_free(struct verve_cm *cm, struct verve_cm_entry *entry);
/*
 * Begins to open our end: allocates id, events and job, and has a worker open the queue pair. The
 * entry is busy afterwards. -FI_ENOMEM, the error of verve_worker_put, or that of cm->failed: our
 * end is not open.
 */
int verve_cm_entry_open(struct verve_cm *cm, struct verve_cm_entry *entry);
/*
 * The worker has opened the queue pair: gives the connection our end. The error of
 * verve_net_qp_open: our end is not open.
 */
int verve_cm_entry_opened(struct verve_cm *cm, struct verve_cm_entry *entry);
/*
 * To be called after each input of the connection, and when the entry becomes busy: moves the entry
 * to the list of the connection's state, and sets window and timer. If the connection has ended,
 * frees our end, except the queue pair and the events that the engine has by then. A busy entry is
 * on no list, and has no timer.
 */
void verve_cm_entry_settle(struct verve_cm *cm, struct verve_cm_entry *entry);

#endif
