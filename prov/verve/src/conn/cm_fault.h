/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Input of the connection manager: what fails of the device. A queue pair that fails is replaced,
 * as after a refused request (doc/refusals.md). A queue that all connections share, or the device
 * itself, ends all of them, and the endpoint makes none any more. Service thread.
 */
#ifndef VERVE_CONN_CM_FAULT_H
#define VERVE_CONN_CM_FAULT_H

struct verve_cm;
struct verve_cm_entry;
struct verve_net_fault;

/*
 * The device, or a queue that all connections share, has failed. The first call puts a FATAL event,
 * and calls fatal. Every connection gets a DOWN event and every pending request a FAILED event,
 * with error (positive FI errno); peers get a BYE. (Where a worker is at the queue pair, this
 * follows when the worker is done: conn/cm_done.c.) Later requests and peers are refused. Calls
 * notify.
 */
void verve_cm_abandon(struct verve_cm *cm, int error);
/* Ends the connection of an entry that is not busy, and whose end is open or was never opened. */
void verve_cm_abandon_entry(struct verve_cm *cm, struct verve_cm_entry *entry, int error);
/*
 * An object of the device has failed. If it is a queue of this endpoint, verve_cm_abandon with
 * FI_EIO. If it is the queue pair of a connection that is up, both sides suspend the connection; of
 * another one, it ends with FI_EIO. Else nothing.
 */
void verve_cm_fault(struct verve_cm *cm, const struct verve_net_fault *fault);

#endif
