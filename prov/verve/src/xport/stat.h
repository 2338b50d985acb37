/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Statistics: a transport's entries in the page of the process (base/page.h), and what their
 * numbers mean to the tool that reads them. A change of these changes VERVE_PAGE_LAYOUT.
 *
 * Packets, requests and events of a peer are counted in the page, where a reader sees them at once;
 * present values are written by xport/publish.h. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_STAT_H
#define VERVE_XPORT_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/page.h"
#include "net/qp.h"
#include "xport/wire.h"

struct verve_addr;
struct verve_peer;

/* Kinds of entries, with their owner, name and text. */
enum verve_stat_kind {
	VERVE_STAT_DOMAIN = 1, /* device; no text */
	VERVE_STAT_ENDPOINT,   /* of its domain; address; device:port */
	VERVE_STAT_PEER,       /* of its endpoint; address; the last error's reason */
	VERVE_STAT_KINDS,
};

enum { VERVE_STAT_OPS_MAX = 1000 }; /* operations of a queue that are counted */

/* Numbers of a peer: counters since the peer is known, and present values. */
enum {
	VERVE_STAT_STATE, /* enum verve_stat_state */
	VERVE_STAT_CONN_ID,
	VERVE_STAT_QP_NUM,
	VERVE_STAT_CREDITS,
	VERVE_STAT_PENDING, /* of each queue at most VERVE_STAT_OPS_MAX are counted */
	VERVE_STAT_ACTIVE,  /* at most VERVE_STAT_OPS_MAX are counted */
	VERVE_STAT_OUTSTANDING,
	VERVE_STAT_ERROR,
	VERVE_STAT_STATUS,
	VERVE_STAT_CONNECTIONS,
	VERVE_STAT_ERRORS,
	VERVE_STAT_REPLAYS,
	VERVE_STAT_REPEATED,
	VERVE_STAT_SENT_BYTES,
	VERVE_STAT_ARRIVED_BYTES,
	VERVE_STAT_REQUESTS,					 /* read, write, atomic */
	VERVE_STAT_REQUEST_BYTES = VERVE_STAT_REQUESTS + 3,	 /* likewise */
	VERVE_STAT_SENT = VERVE_STAT_REQUEST_BYTES + 3,		 /* by enum verve_wire_type */
	VERVE_STAT_ARRIVED = VERVE_STAT_SENT + VERVE_WIRE_TYPES, /* likewise */
	VERVE_STAT_PEER_VALUES = VERVE_STAT_ARRIVED + VERVE_WIRE_TYPES,
};

enum verve_stat_state {
	VERVE_STAT_IDLE,       /* not connected */
	VERVE_STAT_WANTING,    /* waits for a place (FI_VERVE_MAX_CONNS) */
	VERVE_STAT_CONNECTING, /* the handshake is under way */
	VERVE_STAT_HALF_OPEN,  /* the peer has not been heard yet */
	VERVE_STAT_UP,
	VERVE_STAT_SUSPENDED, /* goes on over another queue pair */
	VERVE_STAT_QUIESCING, /* idle, and about to make place */
	VERVE_STAT_LEAVING,   /* the peer has left; last acknowledgements may come */
	VERVE_STAT_STATES,
};

/* Numbers of an endpoint. */
enum {
	VERVE_STAT_PEERS,
	VERVE_STAT_LINKS,
	VERVE_STAT_TX_USED,
	VERVE_STAT_TX_SIZE,
	VERVE_STAT_WR_USED,
	VERVE_STAT_WR_LIMIT,
	VERVE_STAT_SLABS_USED,
	VERVE_STAT_SLABS_LIMIT,
	VERVE_STAT_SLAB_FAILURES,
	VERVE_STAT_RX_BUFFERS,
	VERVE_STAT_RX_FREE,
	VERVE_STAT_RX_REFUSED,
	VERVE_STAT_STALE,
	VERVE_STAT_MALFORMED,
	VERVE_STAT_ENDPOINT_VALUES,
};

/* Numbers of a domain: its registrations (mr/cache.h). */
enum {
	VERVE_STAT_REGIONS,
	VERVE_STAT_REGION_BYTES,
	VERVE_STAT_HITS,
	VERVE_STAT_MISSES,
	VERVE_STAT_FAILURES,
	VERVE_STAT_UNKEPT,
	VERVE_STAT_EVICTIONS,
	VERVE_STAT_INVALIDATIONS,
	VERVE_STAT_DOMAIN_VALUES,
};

/* Events of a peer; id, error and status of struct verve_page_event belong to the connection. */
enum verve_stat_event {
	VERVE_STAT_ASKED = 1, /* the manager was asked to connect */
	VERVE_STAT_CAME_UP,   /* connected, asked by one side */
	VERVE_STAT_HEARD,     /* the peer can hear this side: packets may leave */
	VERVE_STAT_FAILED,    /* cannot connect: error */
	VERVE_STAT_STOPPED,   /* suspended: the queue pair failed */
	VERVE_STAT_WENT_ON,   /* over another queue pair */
	VERVE_STAT_QUIESCED,  /* this side asks to make place, or agrees */
	VERVE_STAT_REOPENED,  /* one side was not idle */
	VERVE_STAT_LEFT,      /* the peer has left: error */
	VERVE_STAT_BROKE,     /* ended: error, status of the work completion or 0 */
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

/* A transport's part of the page. */
struct verve_stat {
	bool open;				    /* the process has a page */
	struct verve_page_entry *endpoint, *domain; /* NULL: there is no place for it */
	struct verve_peer *next;       /* xport/publish.h goes on with this peer; NULL: the first */
	uint64_t when;		       /* present values were written, nanoseconds */
	struct verve_page_entry spare; /* of all peers without a place in the page */
};

/* The entry of a new peer; never NULL. Given back with verve_stat_peer_close. */
struct verve_page_entry *verve_stat_peer_open(struct verve_stat *stat,
					      const struct verve_addr *addr);
void verve_stat_peer_close(struct verve_stat *stat, struct verve_page_entry *entry);

/* The peer's connection conn_id (0: none yet) has come to this. */
void verve_stat_event(const struct verve_stat *stat, struct verve_page_entry *entry,
		      enum verve_stat_event what, uint32_t conn_id);
/*
 * Likewise for its end. error: positive FI errno; status: ibv_wc_status, or 0. Unless the end was
 * in order, it counts as an error, and the reason is kept.
 */
void verve_stat_end(const struct verve_stat *stat, struct verve_page_entry *entry,
		    enum verve_stat_event what, uint32_t conn_id, int error, uint32_t status,
		    const char *reason);

/* A packet was posted. type: its first byte; one that is no enum verve_wire_type counts as 0. */
static inline void verve_stat_sent(struct verve_page_entry *entry, uint8_t type, size_t len)
{
	entry->values[VERVE_STAT_SENT + (type < VERVE_WIRE_TYPES ? type : 0)]++;
	entry->values[VERVE_STAT_SENT_BYTES] += len;
}

/* A packet of this type and length has arrived. */
static inline void verve_stat_arrived(struct verve_page_entry *entry, uint8_t type, size_t len)
{
	entry->values[VERVE_STAT_ARRIVED + type]++;
	entry->values[VERVE_STAT_ARRIVED_BYTES] += len;
}

/* A request on memory was posted. verb: not VERVE_NET_SEND. */
static inline void verve_stat_request(struct verve_page_entry *entry, enum verve_net_wr_op verb,
				      size_t len)
{
	int kind = verb == VERVE_NET_READ ? 0 : verb < VERVE_NET_READ ? 1 : 2;

	entry->values[VERVE_STAT_REQUESTS + kind]++;
	entry->values[VERVE_STAT_REQUEST_BYTES + kind] += len;
}

#endif
