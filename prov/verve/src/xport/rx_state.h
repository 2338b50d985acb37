/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State of a transport's receive buffers: where each of them is, which may be lost
 * (xport/rx_lost.h), and how busy they are (xport/rx_buffers.h). The engine's lock protects it.
 */
#ifndef VERVE_XPORT_RX_STATE_H
#define VERVE_XPORT_RX_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct verve_slab;

/* Place of a receive buffer (xport/rx_lost.h). */
enum verve_rx_lost_state {
	VERVE_RX_LOST_HERE,   /* in xport->rx_free */
	VERVE_RX_LOST_POSTED, /* posted to the device; the completion, if any, is not handled */
	VERVE_RX_LOST_BEGUN,  /* posted; a queue pair had begun to write to it at the last watch */
	VERVE_RX_LOST_ASKED,  /* posted to the device, and in question */
};

/* Receive buffers that queue pairs may have taken along (xport/rx_lost.h). */
struct verve_rx_lost {
	uint64_t mark;	 /* random; the first bytes of each posted buffer */
	struct verve_slab **buffers; /* all xport->rx_count; from malloc; NULL: none yet */
	uint32_t count;	 /* buffers in question */
	uint32_t before; /* queue pairs of this serial or later cannot have these buffers */
	uint32_t closed; /* verve_net_srq_closed when buffers were last examined */
	uint64_t handled; /* xport->handled then */
	bool pressing;	 /* silent peers were asked, or renewed: a later turn looks again */
};

/* How busy the receive buffers are (xport/rx_buffers.h). */
struct verve_rx_load {
	uint32_t peak;	/* most packets that a poll has found since the last watch, if many */
	uint32_t wanted; /* buffers that packets can wait in, by a poll since then; 0: enough */
	uint64_t quiet; /* since when half of the buffers would have done, nanoseconds; 0: not */
	uint32_t first; /* buffers that were registered when the transport was opened */
	bool grown;	/* this turn has added a step */
	bool refused;	/* no step could be registered: not tried again before the next watch */
	bool shrinking; /* buffers that come back are put aside, if not needed */
	struct verve_slab *aside; /* buffers that are not posted any more: by next */
	uint32_t aside_count;
};

#endif
