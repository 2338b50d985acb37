/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* RMA events: a hash table of the regions that have counters. */
#include "proto/event.h"

#include <stddef.h>

#include "proto/comp.h"

/* Devices number their keys upwards, with a varying lowest byte. */
static uint32_t bucket_of(uint32_t rkey)
{
	return (rkey ^ rkey >> 8) % VERVE_EVENT_BUCKETS;
}

void verve_event_table_init(struct verve_event_table *table)
{
	verve_lock_init(&table->lock, false);
	for (uint32_t i = 0; i < VERVE_EVENT_BUCKETS; i++)
		LIST_INIT(&table->buckets[i]);
}

void verve_event_table_fini(struct verve_event_table *table)
{
	verve_lock_fini(&table->lock);
}

void verve_event_insert(struct verve_event_table *table, struct verve_event_region *region)
{
	verve_lock_acquire(&table->lock);
	region->read = region->write = NULL;
	LIST_INSERT_HEAD(&table->buckets[bucket_of(region->rkey)], region, link);
	verve_lock_release(&table->lock);
}

void verve_event_remove(struct verve_event_table *table, struct verve_event_region *region)
{
	verve_lock_acquire(&table->lock);
	LIST_REMOVE(region, link);
	verve_lock_release(&table->lock);
}

void verve_event_set(struct verve_event_table *table, struct verve_event_region *region,
		     struct verve_comp_counter *read, struct verve_comp_counter *write)
{
	verve_lock_acquire(&table->lock);
	if (read)
		region->read = read;
	if (write)
		region->write = write;
	verve_lock_release(&table->lock);
}

void verve_event_count(struct verve_event_table *table, uint32_t rkey, bool read)
{
	struct verve_event_region *region;
	struct verve_comp_counter *counter = NULL;

	verve_lock_acquire(&table->lock);
	LIST_FOREACH(region, &table->buckets[bucket_of(rkey)], link)
		if (region->rkey == rkey)
			counter = read ? region->read : region->write;
	if (counter)
		verve_comp_counter_add(counter, 1);
	verve_lock_release(&table->lock);
}
