/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics that the target's device executes (FI_VERVE_ATOMICS=device): one work request each,
 * started in order with everything else to that peer, complete with what was there, at every
 * completion level. The target's processor takes no part, so they are atomic among themselves only:
 * an endpoint says in its handshake which way its memory is updated, and atomics of the other way
 * are refused.
 *
 * One that a broken connection leaves unanswered is an error, and nobody knows whether it was
 * executed; it is never repeated. InfiniBand spec. vol. 1, 9.4.5. The engine's lock protects
 * everything here.
 */
#ifndef VERVE_RMA_ATOMIC_DEVICE_H
#define VERVE_RMA_ATOMIC_DEVICE_H

#include <stdbool.h>

#include "rma/amo.h"
#include "xport/op.h"

struct verve_atomic_op;

/* Whether a device can: one element, at an address that its size divides. */
bool verve_atomic_device_has(enum verve_amo_form form, enum verve_amo_op op,
			     enum verve_amo_type type);

/* Takes the one element's operands while the application's memory is there. */
void verve_atomic_device_load(struct verve_atomic_op *atomic);
/* Posts the atomic, or refuses it because the peer goes the other way. */
enum verve_outcome verve_atomic_device_start(struct verve_xport *xport, struct verve_link *link,
					      struct verve_atomic_op *atomic);
/* Its last work request completed. */
void verve_atomic_device_done(struct verve_xport *xport, struct verve_op *op);

#endif
