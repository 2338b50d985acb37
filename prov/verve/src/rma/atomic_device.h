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

#include "net/qp.h"
#include "rma/amo.h"
#include "xport/op.h"

/* Whether a device can: one element, at an address that its size divides. */
bool verve_atomic_device_has(enum verve_amo_form form, enum verve_amo_op op,
			     enum verve_amo_type type);

/* The operation is an atomic, and the way is the device's here. */
bool verve_atomic_device_executes(const struct verve_xport *xport, const struct verve_op *op);
/* Takes the one element's operands while the application's memory is there. */
void verve_atomic_device_load(struct verve_op *op);
/* For verve_peer_kick: posts what is at the head of pending, or refuses it. False: later. */
bool verve_atomic_device_start(struct verve_xport *xport, struct verve_link *link,
			       struct verve_op *op);
/* For verve_rma_start: the request, and where its result goes. -FI_EINVAL: *reason; -FI_EAGAIN: later. */
enum verve_net_wr_op verve_atomic_device_verb(const struct verve_op *op);
int verve_atomic_device_prepare(struct verve_xport *xport, struct verve_link *link,
				struct verve_op *op, const char **reason);
/* For verve_transfer_post: the operands of its request. */
void verve_atomic_device_describe(const struct verve_op *op, struct verve_net_wr *wr);
/* Its last work request completed. */
void verve_atomic_device_done(struct verve_xport *xport, struct verve_op *op);

#endif
