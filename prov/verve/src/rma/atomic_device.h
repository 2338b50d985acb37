/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics that the target's device executes (FI_VERVE_ATOMICS=device). Each is one work request,
 * started in order with the other operations to the same peer. The work request completes when the
 * device has returned the value before the operation. The operation completes with it, at every
 * completion level. The target's processor takes no part. Therefore atomics of the device are
 * atomic among themselves only, not with atomics of the processor: an endpoint says in its
 * handshake which of the two updates its memory, and both sides refuse the other.
 *
 * If the connection breaks before the work request completes, the atomic fails, and it is unknown
 * whether the device has executed it; xport/replay.c says which atomics may be repeated. InfiniBand
 * spec. vol. 1, 9.4.5. The engine's lock protects everything here.
 */
#ifndef VERVE_RMA_ATOMIC_DEVICE_H
#define VERVE_RMA_ATOMIC_DEVICE_H

#include <stdbool.h>

#include "rma/amo.h"
#include "xport/op.h"

struct verve_atomic_op;

/*
 * Whether a device can execute the operation on this type in this form. It takes one element, whose
 * size divides its address.
 */
bool verve_atomic_device_has(enum verve_amo_form form, enum verve_amo_op op,
			     enum verve_amo_type type);

/* Copies the operands into the operation. The application's operand buffer is not needed again. */
void verve_atomic_device_load(struct verve_atomic_op *atomic);
/* Posts the atomic. Fails it if only one of both sides has atomics by the device. */
enum verve_outcome verve_atomic_device_start(struct verve_xport *xport, struct verve_link *link,
					      struct verve_atomic_op *atomic);
/* The atomic's last work request has completed. */
void verve_atomic_device_done(struct verve_xport *xport, struct verve_op *op);

#endif
