/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Key table: one per domain; what each key of the application's regions opens, for requests that the
 * processor executes in the device's stead, and the counters of regions that peers write and read
 * (FI_RMA_EVENT; fi_mr(3), fi_mr_bind). What it finds stays open until the table is unlocked.
 *
 * Its own lock, taken last (only proto/amo.c's comes after it), shared by those who look and never
 * held across libibverbs, malloc or free. Any thread.
 */
#ifndef VERVE_MR_KEYTAB_H
#define VERVE_MR_KEYTAB_H

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

struct verve_comp_counter;
struct verve_mr_region;

enum { VERVE_MR_KEYTAB_BUCKETS = 1024 }; /* fixed: nothing is allocated under the lock */

/* One key. Embedded in its owner. The table guards the counters; the rest is constant while it is in. */
struct verve_mr_key {
	LIST_ENTRY(verve_mr_key) link;
	uint32_t rkey;
	const struct verve_mr_region *region;
	struct verve_comp_counter *read, *write; /* NULL: not counted */
};

LIST_HEAD(verve_mr_bucket, verve_mr_key);

struct verve_mr_keytab {
	pthread_rwlock_t lock;
	struct verve_mr_bucket buckets[VERVE_MR_KEYTAB_BUCKETS];
};

void verve_mr_keytab_init(struct verve_mr_keytab *tab);
/* Every key must have been removed. */
void verve_mr_keytab_fini(struct verve_mr_keytab *tab);

/* Its region is open, and no other in the table is the same. */
void verve_mr_keytab_add(struct verve_mr_keytab *tab, struct verve_mr_key *key);
/* Waits until nobody uses what it found. Before the region, and a counter, is closed. */
void verve_mr_keytab_remove(struct verve_mr_keytab *tab, struct verve_mr_key *key);
/* From now on these count. NULL: leaves that one as it is. */
void verve_mr_keytab_count(struct verve_mr_keytab *tab, struct verve_mr_key *key,
			   struct verve_comp_counter *read, struct verve_comp_counter *write);

/* What find returns is good from lock to unlock. Not recursive. */
void verve_mr_keytab_lock(struct verve_mr_keytab *tab);
void verve_mr_keytab_unlock(struct verve_mr_keytab *tab);
/* NULL: no such key. */
const struct verve_mr_key *verve_mr_keytab_find(struct verve_mr_keytab *tab, uint32_t rkey);

#endif
