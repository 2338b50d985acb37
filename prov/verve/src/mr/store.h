/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Store: the entries of a registration cache, by address, and their life. The store registers no
 * memory itself.
 *
 * An entry is *linked* (in the tree) while its memory is known to be mapped; *ready* once it has a
 * region; and in *use* as many times as it was found and not given back. These three are one atomic
 * word, so that a hit takes no lock. The memory of an entry is reused for others, and freed only
 * with the store; so a thread that finds an entry first takes a use, and then reads its fields. The
 * thread that makes an entry neither linked nor used must free it. A user that keeps its use for
 * long *holds* the entry: the entry takes none of the store's places meanwhile. The monitor's
 * thread must not deregister; its entries wait to be *buried* by another thread. The store's lock
 * is taken last (the monitor's lock before it) and never held across libibverbs, malloc or free.
 * Any thread.
 */
#ifndef VERVE_MR_STORE_H
#define VERVE_MR_STORE_H

#include <atomic_ops.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "mr/itree.h"

struct verve_mr_region;
struct verve_mr_store;

/* A joined entry is at most so many times as long as the request. */
enum { VERVE_MR_STORE_JOIN = 4 };

/* A request for a registration. */
struct verve_mr_want {
	uintptr_t start, end; /* start < end */
	unsigned access;      /* VERVE_NET_* */
	bool exact;	      /* exactly this range and access, for one user at a time */
};

/* A hit reads the fields from node.start on: they are in one line of the processor's cache. */
struct verve_mr_entry {
	TAILQ_ENTRY(verve_mr_entry) link;
	uint64_t counted; /* hits that are in the store's sum already */
	uint64_t seen;	  /* hits when eviction looked at the entry last */
	struct verve_itree_node node;
	volatile AO_t state;		/* linked, ready, uses: store.c */
	volatile AO_t hits;		/* since open, also of entries before in this memory */
	struct verve_mr_region *region; /* NULL: not registered yet */
	unsigned access;		/* VERVE_NET_* of the region */
	bool exact;			/* one user at a time */
	uint64_t born;			/* hits when the entry was added */
	uint32_t holds;			/* verve_mr_store_hold; the store's lock */
} __attribute__((aligned(64)));

/*
 * count: entries kept at most, not 0; size: bytes of their pages at most; both without the entries
 * that are held. NULL: no memory.
 */
struct verve_mr_store *verve_mr_store_open(size_t count, size_t size);
/* Every entry must have been freed. */
void verve_mr_store_close(struct verve_mr_store *store);

/*
 * Finds a ready entry that contains the range and grants the access, and takes a use of it. With
 * exact: an entry that was added with the same range, access and exact, and is not in use. NULL:
 * none. Give it back with verve_mr_store_put.
 */
struct verve_mr_entry *verve_mr_store_find(struct verve_mr_store *store,
					   const struct verve_mr_want *want);

/*
 * Links a new entry, with one use, not ready. It may evict other entries: the caller must bury them
 * before it registers. NULL: no memory, or no room.
 */
struct verve_mr_entry *verve_mr_store_add(struct verve_mr_store *store,
					  const struct verve_mr_want *want);
/*
 * The same for a larger range, if the request (not exact) overlaps ready entries of the same
 * access: the range is the union with them, at most VERVE_MR_STORE_JOIN times as long as the
 * request. The new entry takes their place once it is ready. Finding them and linking the entry is
 * one step under the lock: verve_mr_store_invalidate unlinks either those entries before it, or the
 * new entry after it. *joined false: there are no such entries, and the result is NULL. *joined
 * true and NULL: no room.
 */
struct verve_mr_entry *verve_mr_store_add_joined(struct verve_mr_store *store,
						 const struct verve_mr_want *want, bool *joined);
/*
 * Evicts a few idle entries that were not found lately, if the store has more than 64. Called with
 * each add: while entries are added, the store shrinks to the entries that are found again.
 */
void verve_mr_store_age(struct verve_mr_store *store);
/* Hits since the entry was added. The caller has a use of the entry, or must free it. */
uint64_t verve_mr_store_found(const struct verve_mr_entry *entry);
/*
 * The entry's region is registered: makes the entry ready, and unlinks other ready entries that it
 * makes superfluous. False: the entry is not linked any more, because its memory went.
 */
bool verve_mr_store_ready(struct verve_mr_store *store, struct verve_mr_entry *entry);
/* Unlinks the entry, so that it is not found any more. The caller's use stays. */
void verve_mr_store_unlink(struct verve_mr_store *store, struct verve_mr_entry *entry);
/*
 * The caller's use of the entry will last: until verve_mr_store_release, the entry takes no place,
 * so that regions that an application keeps open leave all places to others.
 */
void verve_mr_store_hold(struct verve_mr_store *store, struct verve_mr_entry *entry);
/*
 * Takes back one verve_mr_store_hold; the use stays. Without another one, the entry takes a place
 * again: others may be evicted, or the entry is unlinked; the caller must bury.
 */
void verve_mr_store_release(struct verve_mr_store *store, struct verve_mr_entry *entry);
/* Gives back one use. True: the caller must close the region and free the entry. */
bool verve_mr_store_put(struct verve_mr_entry *entry);
/*
 * Gives back one use, unless the caller would have to close the region then: false, and the use
 * stays.
 */
bool verve_mr_store_put_shared(struct verve_mr_entry *entry);

/* Unlinks all entries that overlap start to end; returns their number. Rule of mr/monitor.h. */
size_t verve_mr_store_invalidate(struct verve_mr_store *store, uintptr_t start, uintptr_t end);

/* Unlinks all entries that are not in use. False: there was none. */
bool verve_mr_store_evict_idle(struct verve_mr_store *store);

/* True if entries wait to be buried. The answer may be old. */
bool verve_mr_store_has_dead(const struct verve_mr_store *store);
/* Takes an entry that is neither linked nor used; the caller must free it. NULL: none waits. */
struct verve_mr_entry *verve_mr_store_bury(struct verve_mr_store *store);
/* Frees an entry whose region is closed. */
void verve_mr_store_free(struct verve_mr_store *store, struct verve_mr_entry *entry);

/* Counts since open. Two hits on one entry at the same moment may count as one. */
uint64_t verve_mr_store_hits(struct verve_mr_store *store);
uint64_t verve_mr_store_evictions(struct verve_mr_store *store);

#endif
