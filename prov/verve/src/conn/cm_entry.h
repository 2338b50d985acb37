/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Entries: what the connection manager keeps of each peer address, and our end of its connection:
 * id, queue pair, prepared events.
 *
 * This file owns the table of addresses, the lists and the count of handshakes. It must not know
 * what is sent or reported (conn/cm_perform.h), nor what came in. Service thread.
 */
#ifndef VERVE_CONN_CM_ENTRY_H
#define VERVE_CONN_CM_ENTRY_H

#include "base/addr.h"
#include "conn/cm_state.h"

/* NULL: there is none. */
struct verve_cm_entry *verve_cm_entry_find(const struct verve_cm *cm,
					   const struct verve_addr *addr);
/* Finds the entry, or makes one. NULL: no memory. */
struct verve_cm_entry *verve_cm_entry_make(struct verve_cm *cm, const struct verve_addr *addr);
void verve_cm_entry_free(struct verve_cm *cm, struct verve_cm_entry *entry);
/* Opens our end: id, queue pair, events. -FI_ENOMEM, or the error of opening the queue pair. */
int verve_cm_entry_open(struct verve_cm *cm, struct verve_cm_entry *entry);
/*
 * The connection's state may have changed: list, window and timer follow. If the connection has no
 * end of ours any more, closes the end, but for the queue pair and the events that were handed
 * over.
 */
void verve_cm_entry_settle(struct verve_cm *cm, struct verve_cm_entry *entry);

#endif
