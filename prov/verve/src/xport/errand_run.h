/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Doing errands (xport/errand.h): a thread takes one under the engine's lock, executes it without,
 * and finishes it under the lock. Several threads may do errands of one transport.
 */
#ifndef VERVE_XPORT_ERRAND_RUN_H
#define VERVE_XPORT_ERRAND_RUN_H

struct verve_errand;
struct verve_xport;

/*
 * An errand that waits at the transport's home; it may be another transport's of that home. NULL:
 * there is none, or another thread gives regions back; it does the rest, or wakes others for it.
 */
struct verve_errand *verve_errand_take(struct verve_xport *xport);
/* Without the lock. May block, and wait for the device. */
void verve_errand_execute(struct verve_errand *errand);
/*
 * Writes the completion, or kicks the peer of the operation that has asked, or gives the slabs to
 * their pool, and tries again what waits for some. May free the errand.
 */
void verve_errand_finish(struct verve_errand *errand);

#endif
