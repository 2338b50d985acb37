/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Key table: one per domain; what each key of the application's regions opens, for requests that the
 * processor executes in the device's stead, and the counters of regions that peers write and read
 * (FI_RMA_EVENT; fi_mr(3), fi_mr_bind). What it finds stays open until the table is unlocked.
 *
 * Its own lock, taken last (only rma/amo.c's comes after it), shared by those who look and never
 * held across libibverbs, malloc or free. Any thread.
 */
#ifndef VERVE_MR_KEYTAB_H
#define VERVE_MR_KEYTAB_H

#include <atomic_ops.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "mr/segments.h"

struct verve_comp_counter;

enum { VERVE_MR_KEYTAB_BUCKETS = 1024 }; /* fixed: nothing is allocated under the lock */

/*
 * Keys that the domain makes (FI_MR_PROV_KEY) say themselves what they are. An rkey: the upper half
 * is what to add to the offsets of peers, less than a page, or 0 (mr/region.h). Else this bit is set,
 * and peers have to ask what they open, as for each key that the application chose.
 */
#define VERVE_MR_KEY_EXPORTED (1ull << 63)

/*
 * One key. Embedded in its owner. The table guards the counters; told is atomic; the rest is constant
 * while it is in.
 */
struct verve_mr_key {
	LIST_ENTRY(verve_mr_key) link;
	uint64_t key;
	uint64_t generation; /* no other of this table, ever, has the same. Set by add */
	struct verve_mr_segments segments;
	unsigned access; /* VERVE_NET_*, to all segments */
	bool device;	 /* memory that the processor may not touch: no atomics of its */
	volatile AO_t told; /* a peer may know what it opens */
	struct verve_comp_counter *read, *write; /* NULL: not counted */
};

LIST_HEAD(verve_mr_bucket, verve_mr_key);

struct verve_mr_keytab {
	pthread_rwlock_t lock;
	uint64_t generation; /* the last one */
	struct verve_mr_bucket buckets[VERVE_MR_KEYTAB_BUCKETS];
};

void verve_mr_keytab_init(struct verve_mr_keytab *tab);
/* Every key must have been removed. */
void verve_mr_keytab_fini(struct verve_mr_keytab *tab);

/* Its segments are registered. Any number may be its key. -FI_ENOKEY: the table has that key. */
int verve_mr_keytab_add(struct verve_mr_keytab *tab, struct verve_mr_key *key);
/*
 * The same, and the table sets the key, to one with VERVE_MR_KEY_EXPORTED that it never had. Only for
 * tables in which no application chooses keys: there nothing else has that bit.
 */
void verve_mr_keytab_add_made(struct verve_mr_keytab *tab, struct verve_mr_key *key);
/* Waits until nobody uses what it found. Before the region, and a counter, is closed. */
void verve_mr_keytab_remove(struct verve_mr_keytab *tab, struct verve_mr_key *key);
/* From now on these count. NULL: leaves that one as it is. */
void verve_mr_keytab_count(struct verve_mr_keytab *tab, struct verve_mr_key *key,
			   struct verve_comp_counter *read, struct verve_comp_counter *write);

/* What find returns is good from lock to unlock. Not recursive. */
void verve_mr_keytab_lock(struct verve_mr_keytab *tab);
void verve_mr_keytab_unlock(struct verve_mr_keytab *tab);
/* NULL: no such key. */
struct verve_mr_key *verve_mr_keytab_find(struct verve_mr_keytab *tab, uint64_t key);

#endif
