/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wire format (xport/wire.h): what the status of a packet says. Peers agree on these numbers. */
#ifndef VERVE_XPORT_WIRE_STATUS_H
#define VERVE_XPORT_WIRE_STATUS_H

#include <stdint.h>

/* The status of a QUIESCE. */
enum { VERVE_WIRE_ASK = 0, VERVE_WIRE_AGREE = 1, VERVE_WIRE_REFUSE = 2 };

/*
 * The status of a RESUME is the sender's lot (0: none of its requests was refused), or this value:
 * the sender's repeated requests are executed.
 */
static const uint32_t VERVE_WIRE_RESUME_DONE = UINT32_MAX;

/* The status of an ATOMIC_REPLY: why the target did not execute the request. */
enum verve_refusal {
	VERVE_REFUSED_NOT = 0, /* the target has executed the request */
	VERVE_REFUSED_MALFORMED = 1,
	VERVE_REFUSED_MODE = 2, /* the target's device executes atomics */
	VERVE_REFUSED_KEY = 3,
	VERVE_REFUSED_RANGE = 4,
	VERVE_REFUSED_ACCESS = 5,
	VERVE_REFUSED_MEMORY = 6, /* the target has no memory for the result */
	VERVE_REFUSED_SPLIT = 7, /* an element lies in two segments of the region */
	VERVE_REFUSALS = 8,
};

#endif
