/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Service thread: one per process, from the first open endpoint to the last. Steps every connection
 * manager (handshakes are answered whether or not the application calls libfabric) and reads the
 * devices' asynchronous events. Never touches an engine's data; asleep when idle.
 *
 * A child after fork(2) serves nobody that its parent did; what it opens itself gets a thread of its own.
 */
#ifndef VERVE_ENGINE_SERVICE_H
#define VERVE_ENGINE_SERVICE_H

#include <stdint.h>

struct verve_cm;
struct verve_net_device;

/* From now on the thread steps cm and watches dev. -FI_ENOMEM, or what starting a thread said. */
int verve_service_add(struct verve_cm *cm, struct verve_net_device *dev);
/* When it returns, the thread does not touch cm any more. */
void verve_service_remove(struct verve_cm *cm);
/* Something is to be done at once. Any thread. */
void verve_service_wake(void);
/*
 * Does for cm, which is served, what the thread would, unless the thread is at it. Any thread. now:
 * verve_net_now().
 */
void verve_service_help(struct verve_cm *cm, uint64_t now);
/* The provider is unloaded: stops the thread even if endpoints were left open. */
void verve_service_fini(void);

#endif
