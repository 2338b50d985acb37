/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Key table: one per domain; the application's regions by remote key, for requests that the
 * processor executes in the device's stead. What it finds stays open until the table is unlocked.
 *
 * Its own lock, taken last (only proto/amo.c's comes after it), shared by those who look and never
 * held across libibverbs, malloc or free. Any thread.
 */
#ifndef VERVE_MR_KEYTAB_H
#define VERVE_MR_KEYTAB_H

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

struct verve_mr_region;

enum { VERVE_MR_KEYTAB_BUCKETS = 1024 }; /* fixed: nothing is allocated under the lock */

LIST_HEAD(verve_mr_bucket, verve_mr_region);

struct verve_mr_keytab {
	pthread_rwlock_t lock;
	struct verve_mr_bucket buckets[VERVE_MR_KEYTAB_BUCKETS];
};

void verve_mr_keytab_init(struct verve_mr_keytab *tab);
/* Every region must have been removed. */
void verve_mr_keytab_fini(struct verve_mr_keytab *tab);

/* The region is open, and no other in the table has its remote key. */
void verve_mr_keytab_add(struct verve_mr_keytab *tab, struct verve_mr_region *region);
/* Waits until nobody uses what it found. Before the region is closed. */
void verve_mr_keytab_remove(struct verve_mr_keytab *tab, struct verve_mr_region *region);

/* What find returns is good from lock to unlock. Not recursive. */
void verve_mr_keytab_lock(struct verve_mr_keytab *tab);
void verve_mr_keytab_unlock(struct verve_mr_keytab *tab);
/* NULL: no such key. */
struct verve_mr_region *verve_mr_keytab_find(struct verve_mr_keytab *tab, uint32_t rkey);

#endif
