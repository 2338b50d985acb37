/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Store: the registrations that a cache keeps, by address, and their life. It registers nothing
 * itself.
 *
 * An entry is *linked* (in the tree) while its memory is known to be there, *ready* once it has a
 * region, and in *use* as often as it was found and not given back. These three are one atomic
 * word, so that a hit takes no lock: entries are reused, but their memory is freed only with the
 * store, and whoever finds one takes a use of it before believing what it says. An entry that is
 * neither linked nor used belongs to whoever made it so; those that the monitor makes so wait to
 * be *buried*, because its thread may not deregister. The store's lock is taken last (the
 * monitor's before it) and never held across libibverbs, malloc or free.
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

/* A miss registers at most so many times the pages that it needs. */
enum { VERVE_MR_STORE_JOIN = 4 };

/* What a registration is for. */
struct verve_mr_want {
	uintptr_t start, end; /* start < end */
	unsigned access;      /* VERVE_NET_* */
	bool exact;	      /* no more than that, and nobody else's: the application's */
};

/* What a hit looks at, from node.start on, is one line of the processor's cache. */
struct verve_mr_entry {
	TAILQ_ENTRY(verve_mr_entry) link;
	uint64_t counted; /* of its hits, by the store */
	uint64_t seen;	  /* of its hits, by the eviction when it looked last */
	struct verve_itree_node node;
	volatile AO_t state;		/* store.c */
	volatile AO_t hits;		/* in all its lives */
	struct verve_mr_region *region; /* NULL: none yet */
	unsigned access;		/* VERVE_NET_*, of the region */
	bool exact;			/* who takes it has it alone */
	uint64_t born;			/* hits when it was added */
} __attribute__((aligned(64)));

/* Keeps at most count entries (not 0), their pages at most size bytes. NULL: no memory. */
struct verve_mr_store *verve_mr_store_open(size_t count, size_t size);
/* Every entry has been freed. */
void verve_mr_store_close(struct verve_mr_store *store);

/*
 * A ready entry that contains the range and grants the access; with exact, one that was added so,
 * is that and no more, and is not in use. It has one use more. NULL: none.
 */
struct verve_mr_entry *verve_mr_store_find(struct verve_mr_store *store,
					   const struct verve_mr_want *want);

/*
 * Links a new entry, in use once, not ready. Others may have to be evicted for it: bury them before
 * registering. NULL: no memory, or no room.
 */
struct verve_mr_entry *verve_mr_store_add(struct verve_mr_store *store,
					  const struct verve_mr_want *want);
/*
 * The same, but of more than is wanted, which is not exact: the entry can take the place of ready ones
 * that overlap it, those of the same access, while it is at most VERVE_MR_STORE_JOIN times as long as
 * what is wanted. No verve_mr_store_invalidate comes between looking for those and linking the entry: it
 * either unlinks them first, and they are not joined, or unlinks the entry. NULL and *joined false: there
 * are none.
 */
struct verve_mr_entry *verve_mr_store_add_joined(struct verve_mr_store *store,
						 const struct verve_mr_want *want, bool *joined);
/*
 * Evicts what is idle and was not found lately, if there are more than 64, a few entries at a time: called beside
 * each add, it lets the store shrink to those that are found again while it takes in a quarter of their number.
 */
void verve_mr_store_age(struct verve_mr_store *store);
/* Hits since it was added. In use, or the caller's to free. */
uint64_t verve_mr_store_found(const struct verve_mr_entry *entry);
/*
 * It has its region. Unlinks the ready ones that grant nothing which it does not. False: it is linked
 * no more.
 */
bool verve_mr_store_ready(struct verve_mr_store *store, struct verve_mr_entry *entry);
/* Nobody finds it any more. The caller's use stays. */
void verve_mr_store_unlink(struct verve_mr_store *store, struct verve_mr_entry *entry);
/* One use less. True: the entry is the caller's, to free. */
bool verve_mr_store_put(struct verve_mr_entry *entry);

/* Unlinks all that share memory with start to end; how many. Under the rule of mr/monitor.h. */
size_t verve_mr_store_invalidate(struct verve_mr_store *store, uintptr_t start, uintptr_t end);

/* Unlinks all that are not in use. False: there was none. */
bool verve_mr_store_evict_idle(struct verve_mr_store *store);

/* An entry that is neither linked nor used, the caller's to free; NULL: none. */
struct verve_mr_entry *verve_mr_store_bury(struct verve_mr_store *store);
/* Its region is closed. */
void verve_mr_store_free(struct verve_mr_store *store, struct verve_mr_entry *entry);

/* Since open. Of hits that two threads have on one entry at the same moment, one may be missing. */
uint64_t verve_mr_store_hits(struct verve_mr_store *store);
uint64_t verve_mr_store_evictions(struct verve_mr_store *store);

#endif
