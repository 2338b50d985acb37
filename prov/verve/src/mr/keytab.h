/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Key table: one per domain, with the key of each region of the application. It tells which memory
 * a key opens, for requests that the processor executes instead of the device; and the counters
 * bound to a region (FI_RMA_EVENT; fi_mr(3), fi_mr_bind). A region that was found stays open until
 * the table is unlocked.
 *
 * The table's lock is taken last (only the lock of rma/amo.c comes after it), shared by readers,
 * and never held across libibverbs, malloc or free. Any thread.
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
 * A key that the domain makes (FI_MR_PROV_KEY) is of one of two kinds. With this bit clear, the
 * lower 32 bits are an rkey, and the upper 32 bits the number that peers add to their offsets (less
 * than a page; mr/region.h). With this bit set, peers must ask which memory the key opens, as for
 * each key that the application chose.
 */
#define VERVE_MR_KEY_EXPORTED (1ull << 63)

/*
 * One key, embedded in its owner. The table's lock guards the counters; told is atomic; the other
 * fields are constant while the key is in the table.
 */
struct verve_mr_key {
	LIST_ENTRY(verve_mr_key) link;
	uint64_t key;
	uint64_t generation; /* unique for ever in this table; set by add */
	struct verve_mr_segments segments; /* the memory that the key opens */
	unsigned access;    /* VERVE_NET_* for all segments */
	bool device;	    /* device memory: the processor must not execute atomics there */
	volatile AO_t told; /* a peer may know the key's segments */
	struct verve_comp_counter *read, *write; /* count peers' RMA; NULL: not counted */
};

LIST_HEAD(verve_mr_bucket, verve_mr_key);

struct verve_mr_keytab {
	pthread_rwlock_t lock;
	uint64_t generation; /* of the key that was added last */
	struct verve_mr_bucket buckets[VERVE_MR_KEYTAB_BUCKETS];
};

void verve_mr_keytab_init(struct verve_mr_keytab *tab);
/* Every key must have been removed. */
void verve_mr_keytab_fini(struct verve_mr_keytab *tab);

/*
 * Adds a key, whose segments must be registered. key->key may be any number. -FI_ENOKEY: the table
 * has that key already.
 */
int verve_mr_keytab_add(struct verve_mr_keytab *tab, struct verve_mr_key *key);
/*
 * The same, but the table sets key->key, to a number with VERVE_MR_KEY_EXPORTED that it never had
 * before. Only for domains in which the application does not choose keys: no other key there has
 * that bit.
 */
void verve_mr_keytab_add_made(struct verve_mr_keytab *tab, struct verve_mr_key *key);
/*
 * Removes a key; waits until no reader has the table locked. To be called before the region closes.
 */
void verve_mr_keytab_remove(struct verve_mr_keytab *tab, struct verve_mr_key *key);
/* Binds counters to a key: peers' reads and writes count there. NULL: no change of that counter. */
void verve_mr_keytab_count(struct verve_mr_keytab *tab, struct verve_mr_key *key,
			   struct verve_comp_counter *read, struct verve_comp_counter *write);

/* For readers: a key that find returned stays valid until unlock. Not recursive. */
void verve_mr_keytab_lock(struct verve_mr_keytab *tab);
void verve_mr_keytab_unlock(struct verve_mr_keytab *tab);
/* The table must be locked. NULL: no such key. */
struct verve_mr_key *verve_mr_keytab_find(struct verve_mr_keytab *tab, uint64_t key);

#endif
