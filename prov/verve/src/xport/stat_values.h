/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The numbers in the page of the process (base/page.h): their places, names and meaning, for the
 * transport that writes them and for the tool that reads them. A change changes VERVE_PAGE_LAYOUT.
 */
#ifndef VERVE_XPORT_STAT_VALUES_H
#define VERVE_XPORT_STAT_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xport/packet.h"

/* Kinds of entries, with their owner, name and text. */
enum verve_stat_kind {
	VERVE_STAT_KIND_DOMAIN = 1, /* device; no text */
	VERVE_STAT_KIND_ENDPOINT,   /* of its domain; address; device:port */
	VERVE_STAT_KIND_PEER,	    /* of its endpoint; address; the last error's reason */
	VERVE_STAT_KINDS,
};

enum { VERVE_STAT_OPS_MAX = 1000 }; /* operations of a queue that are counted */

/* Numbers of a peer: counters since the peer is known, and present values. */
enum {
	VERVE_STAT_PEER_STATE, /* enum verve_stat_state */
	VERVE_STAT_PEER_CONN_ID,
	VERVE_STAT_PEER_QP_NUM,
	VERVE_STAT_PEER_CREDITS,
	VERVE_STAT_PEER_PENDING, /* of each queue at most VERVE_STAT_OPS_MAX are counted */
	VERVE_STAT_PEER_ACTIVE,	 /* at most VERVE_STAT_OPS_MAX are counted */
	VERVE_STAT_PEER_OUTSTANDING,
	VERVE_STAT_PEER_ERROR,
	VERVE_STAT_PEER_STATUS,
	VERVE_STAT_PEER_CONNECTIONS,
	VERVE_STAT_PEER_ERRORS,
	VERVE_STAT_PEER_REPLAYS,
	VERVE_STAT_PEER_REPEATED,
	VERVE_STAT_PEER_SENT_BYTES,
	VERVE_STAT_PEER_ARRIVED_BYTES,
	VERVE_STAT_PEER_REQUESTS,				      /* read, write, atomic */
	VERVE_STAT_PEER_REQUEST_BYTES = VERVE_STAT_PEER_REQUESTS + 3, /* likewise */
	VERVE_STAT_PEER_SENT = VERVE_STAT_PEER_REQUEST_BYTES + 3,     /* by enum verve_wire_type */
	VERVE_STAT_PEER_ARRIVED = VERVE_STAT_PEER_SENT + VERVE_WIRE_TYPES, /* likewise */
	VERVE_STAT_PEER_VALUES = VERVE_STAT_PEER_ARRIVED + VERVE_WIRE_TYPES,
};

enum verve_stat_state {
	VERVE_STAT_STATE_IDLE,	     /* not connected */
	VERVE_STAT_STATE_WANTING,    /* waits for a place, or to ask again a peer that had no queue
					pair */
	VERVE_STAT_STATE_CONNECTING, /* the handshake is under way */
	VERVE_STAT_STATE_HALF_OPEN,  /* the peer has not been heard yet */
	VERVE_STAT_STATE_UP,
	VERVE_STAT_STATE_SUSPENDED, /* goes on over another queue pair */
	VERVE_STAT_STATE_QUIESCING, /* idle, and about to make place */
	VERVE_STAT_STATE_LEAVING,   /* the peer has left; last acknowledgements may come */
	VERVE_STAT_STATES,
};

/* Numbers of an endpoint. */
enum {
	VERVE_STAT_EP_PEERS,
	VERVE_STAT_EP_LINKS,
	VERVE_STAT_EP_TX_USED,
	VERVE_STAT_EP_TX_SIZE,
	VERVE_STAT_EP_WR_USED,
	VERVE_STAT_EP_WR_LIMIT,
	VERVE_STAT_EP_SLABS_USED,
	VERVE_STAT_EP_SLABS_LIMIT,
	VERVE_STAT_EP_SLAB_FAILURES,
	VERVE_STAT_EP_RX_BUFFERS,
	VERVE_STAT_EP_RX_FREE,
	VERVE_STAT_EP_RX_REFUSED,
	VERVE_STAT_EP_STALE,
	VERVE_STAT_EP_MALFORMED,
	VERVE_STAT_EP_VALUES,
};

/* Numbers of a domain: its registrations (mr/cache.h). */
enum {
	VERVE_STAT_DOMAIN_REGIONS,
	VERVE_STAT_DOMAIN_REGION_BYTES,
	VERVE_STAT_DOMAIN_HITS,
	VERVE_STAT_DOMAIN_MISSES,
	VERVE_STAT_DOMAIN_FAILURES,
	VERVE_STAT_DOMAIN_UNKEPT,
	VERVE_STAT_DOMAIN_EVICTIONS,
	VERVE_STAT_DOMAIN_INVALIDATIONS,
	VERVE_STAT_DOMAIN_VALUES,
};

/* Events of a peer; id, error and status of struct verve_page_event belong to the connection. */
enum verve_stat_event {
	VERVE_STAT_EVENT_ASKED = 1, /* the manager was asked to connect */
	VERVE_STAT_EVENT_CAME_UP,   /* connected, asked by one side */
	VERVE_STAT_EVENT_HEARD,	    /* the peer can hear this side: packets may leave */
	VERVE_STAT_EVENT_FAILED,    /* cannot connect: error */
	VERVE_STAT_EVENT_STOPPED,   /* suspended: the queue pair failed */
	VERVE_STAT_EVENT_WENT_ON,   /* over another queue pair */
	VERVE_STAT_EVENT_QUIESCED,  /* this side asks to make place, or agrees */
	VERVE_STAT_EVENT_REOPENED,  /* one side was not idle */
	VERVE_STAT_EVENT_LEFT,	    /* the peer has left: error */
	VERVE_STAT_EVENT_BROKE,	    /* ended: error, status of the work completion or 0 */
	VERVE_STAT_EVENTS,
};

/* A metric: one number of an entry, or several, each with a label. */
struct verve_stat_metric {
	const char *name;	   /* lower case with underscores */
	const char *help;	   /* a sentence without its full stop */
	bool counter;		   /* only grows; else a present value */
	uint32_t first;		   /* index of the first number */
	uint32_t count;		   /* how many numbers; 0: one, which has no label */
	const char *const *labels; /* of each number; a number with label NULL means nothing */
};

extern const char *const verve_stat_kind_names[VERVE_STAT_KINDS];
extern const char *const verve_stat_state_names[VERVE_STAT_STATES];
extern const char *const verve_stat_event_names[VERVE_STAT_EVENTS];

/* The metrics of a kind's entries, *count of them. Constant. */
const struct verve_stat_metric *verve_stat_metrics(enum verve_stat_kind kind, size_t *count);

#endif
