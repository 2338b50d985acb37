/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Failure of the endpoint: its device, or a queue that all its links share, does not work any more.
 * The manager decides that, for a queue that the engine cannot poll and for events of the device,
 * and says so with FATAL (xport/cm_events.h). From then on xport->failed is set: no connection is
 * made, no request is posted, every operation ends with an error. The engine's lock protects
 * everything here.
 */
#ifndef VERVE_XPORT_FAILURE_H
#define VERVE_XPORT_FAILURE_H

struct verve_xport;

/*
 * A completion queue cannot be polled or armed: tells the manager, once. error: positive FI errno.
 * Without memory, the next turn finds the same again.
 */
void verve_failure_tell(struct verve_xport *xport, int error);
/* A constant text for completions: what has failed, and what to do. error: xport->failed. */
const char *verve_failure_reason(int error);

#endif
