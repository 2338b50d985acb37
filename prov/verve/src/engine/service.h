/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Service thread: one per process, from the first open endpoint to the last. It steps every
 * connection manager, so that handshakes are answered whether or not the application calls
 * libfabric, and it reads the devices' asynchronous events. It never touches an engine's data, and
 * sleeps when there is nothing to do.
 *
 * In a child after fork(2), endpoints that the parent opened are not served any more. Endpoints
 * that the child opens get a thread of the child's own.
 *
 * Any thread may call the functions here. A lock of this file guards the list of managers; it is
 * taken after an engine's lock. It is not held while a queue pair's command is executed, except to
 * close one where no worker can be started (conn/cm_job.h).
 */
#ifndef VERVE_ENGINE_SERVICE_H
#define VERVE_ENGINE_SERVICE_H

#include <stdint.h>

struct verve_cm;
struct verve_net_device;

/*
 * From now on the thread steps cm and watches dev; both stay the caller's. -FI_ENOMEM, or the error
 * of starting a thread or of watching a descriptor. Logs.
 */
int verve_service_add(struct verve_cm *cm, struct verve_net_device *dev);
/* After this call the thread does not touch cm any more. */
void verve_service_remove(struct verve_cm *cm);
/* The thread steps all managers soon. Never waits for such a step. Any thread. */
void verve_service_wake(void);
/*
 * Steps cm, which was added before, in the place of the thread; if the thread is at work, does
 * nothing. now: verve_net_now(). Any thread.
 */
void verve_service_help(struct verve_cm *cm, uint64_t now);
/* The provider is unloaded: stops thread and workers, also if endpoints were left open. */
void verve_service_fini(void);

#endif
