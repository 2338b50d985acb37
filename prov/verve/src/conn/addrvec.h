/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address table: what an address vector (fi_av(3)) holds: index (fi_addr_t) to address and back.
 *
 * Its own lock serializes changes and verve_addrvec_find; it is taken last. Entries never move and
 * verve_addrvec_get takes no lock, so that engines may translate while another thread inserts.
 */
#ifndef VERVE_CONN_ADDRVEC_H
#define VERVE_CONN_ADDRVEC_H

#include <atomic_ops.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/lock.h"

struct verve_addrvec_slot;

enum {
	VERVE_ADDRVEC_FIRST_BITS = 6, /* chunk 0: 64 slots; each further one doubles the table */
	VERVE_ADDRVEC_CHUNKS = 25,    /* 2^30 slots in all */
};

struct verve_addrvec {
	struct verve_lock lock;
	volatile AO_t version;
	volatile AO_t chunks[VERVE_ADDRVEC_CHUNKS]; /* struct verve_addrvec_slot *, or 0 */
	/* Guarded by lock. */
	struct verve_addrvec_slot *by_addr; /* uthash */
	uint64_t *used;			    /* a bit a slot */
	size_t used_words;
	size_t first_word; /* no word of used before this one has a free bit */
};

void verve_addrvec_init(struct verve_addrvec *vec);
/* No reader may be left. */
void verve_addrvec_fini(struct verve_addrvec *vec);

/*
 * Adds an address at the lowest free index. An address that is there already keeps its index, and
 * must be removed once more. -FI_ENOMEM: no memory, or 2^30 addresses.
 */
int verve_addrvec_insert(struct verve_addrvec *vec, const struct verve_addr *addr,
			 uint64_t *fi_addr);
/*
 * Takes back one insertion. 1: that was the last, and the index is free for another address; 0: it
 * was inserted more often. -FI_EINVAL: there is no address at that index.
 */
int verve_addrvec_remove(struct verve_addrvec *vec, uint64_t fi_addr);

/* Any thread, no lock. False: there is no address at that index, whatever the 64-bit value. */
bool verve_addrvec_get(const struct verve_addrvec *vec, uint64_t fi_addr, struct verve_addr *out);
/* Any thread. UINT64_MAX: not in the table. */
uint64_t verve_addrvec_find(struct verve_addrvec *vec, const struct verve_addr *addr);

/*
 * Increases whenever an address becomes known or ceases to be; what verve_addrvec_find said at one
 * version holds until the next.
 */
static inline AO_t verve_addrvec_version(const struct verve_addrvec *vec)
{
	return AO_load_acquire(&vec->version);
}

#endif
