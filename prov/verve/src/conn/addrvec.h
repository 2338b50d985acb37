/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address table: the addresses of an address vector (fi_av(3)), by index (fi_addr_t), and the index
 * of an address.
 *
 * The table's own lock serializes changes and verve_addrvec_find; it is taken last. Slots never
 * move and verve_addrvec_get takes no lock, so that engines may translate while another thread
 * inserts.
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
	VERVE_ADDRVEC_CHUNKS = 25,    /* 2^30 slots in all chunks */
};

struct verve_addrvec {
	struct verve_lock lock;
	volatile AO_t version; /* verve_addrvec_version */
	volatile AO_t chunks[VERVE_ADDRVEC_CHUNKS]; /* struct verve_addrvec_slot *, or 0 */
	/* Guarded by lock. */
	struct verve_addrvec_slot *by_addr; /* uthash: slots by address */
	uint64_t *used;			    /* bit i: slot i holds an address */
	size_t used_words;		    /* 64-bit words in used */
	size_t first_word; /* no word of used before this one has a free bit */
};

void verve_addrvec_init(struct verve_addrvec *vec);
/* No other thread may use the table any more. */
void verve_addrvec_fini(struct verve_addrvec *vec);

/*
 * Adds an address at the lowest free index; *fi_addr: the index. An address that is in the table
 * already keeps its index; each insertion needs one removal. addr must be canonical
 * (verve_addr_set). Any thread. -FI_ENOMEM: no memory, or 2^30 addresses.
 */
int verve_addrvec_insert(struct verve_addrvec *vec, const struct verve_addr *addr,
			 uint64_t *fi_addr);
/*
 * Takes back one insertion. 1: it was the last one, and the index is free for another address; 0:
 * the address was inserted more often. Any thread. -FI_EINVAL: no address at that index.
 */
int verve_addrvec_remove(struct verve_addrvec *vec, uint64_t fi_addr);

/* Any thread, no lock. Any 64-bit value is allowed. False: no address at that index. */
bool verve_addrvec_get(const struct verve_addrvec *vec, uint64_t fi_addr, struct verve_addr *out);
/* The index of an address. Any thread. UINT64_MAX: the address is not in the table. */
uint64_t verve_addrvec_find(struct verve_addrvec *vec, const struct verve_addr *addr);

/*
 * The version increases when an address is added to the table, or removed. An answer of
 * verve_addrvec_find stays true while the version is the same. Any thread.
 */
static inline AO_t verve_addrvec_version(const struct verve_addrvec *vec)
{
	return AO_load_acquire(&vec->version);
}

#endif
