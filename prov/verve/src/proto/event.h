/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA events: the counters of memory regions that peers write and read, by remote key. One table
 * for each domain. FI_RMA_EVENT; fi_mr(3), fi_mr_bind.
 *
 * Its own lock, taken last; nothing is allocated. Any thread.
 */
#ifndef VERVE_PROTO_EVENT_H
#define VERVE_PROTO_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/lock.h"

struct verve_comp_counter;

enum { VERVE_EVENT_BUCKETS = 64 };

/* Embedded in its owner, who sets rkey. */
struct verve_event_region {
	LIST_ENTRY(verve_event_region) link;
	uint32_t rkey;
	struct verve_comp_counter *read, *write; /* NULL: not counted. Guarded by the table's lock */
};

struct verve_event_table {
	struct verve_lock lock;
	LIST_HEAD(, verve_event_region) buckets[VERVE_EVENT_BUCKETS];
};

void verve_event_table_init(struct verve_event_table *table);
/* All regions have been removed. */
void verve_event_table_fini(struct verve_event_table *table);

/* One that is not in the table yet, without counters. */
void verve_event_insert(struct verve_event_table *table, struct verve_event_region *region);
/* When it returns, its counters are not touched any more. */
void verve_event_remove(struct verve_event_table *table, struct verve_event_region *region);
/* NULL: leaves that one as it is. */
void verve_event_set(struct verve_event_table *table, struct verve_event_region *region,
		     struct verve_comp_counter *read, struct verve_comp_counter *write);

/* A peer has read, or else written, the region behind rkey; an unknown key counts nowhere. */
void verve_event_count(struct verve_event_table *table, uint32_t rkey, bool read);

#endif
