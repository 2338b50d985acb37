/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Statistics: a transport's entries in the page of the process (base/page.h). Which numbers there
 * are: stat_values.h.
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
#include "base/probe.h"
#include "net/qp.h"
#include "xport/stat_values.h"

struct verve_addr;
struct verve_peer;

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
	verve_probe_sent(entry->name, type, len);
	entry->values[VERVE_STAT_PEER_SENT + (type < VERVE_WIRE_TYPES ? type : 0)]++;
	entry->values[VERVE_STAT_PEER_SENT_BYTES] += len;
}

/* A packet of this type and length has arrived. */
static inline void verve_stat_arrived(struct verve_page_entry *entry, uint8_t type, size_t len)
{
	verve_probe_arrived(entry->name, type, len);
	entry->values[VERVE_STAT_PEER_ARRIVED + type]++;
	entry->values[VERVE_STAT_PEER_ARRIVED_BYTES] += len;
}

/* A request on memory was posted. verb: not VERVE_NET_SEND. */
static inline void verve_stat_request(struct verve_page_entry *entry, enum verve_net_wr_op verb,
				      size_t len)
{
	int kind = verb == VERVE_NET_READ ? 0 : verb < VERVE_NET_READ ? 1 : 2;

	verve_probe_request(entry->name, kind, len);
	entry->values[VERVE_STAT_PEER_REQUESTS + kind]++;
	entry->values[VERVE_STAT_PEER_REQUEST_BYTES + kind] += len;
}

#endif
