/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Store: an interval tree; before it a table of the entries that were found last, by page, which
 * is read without the lock; behind it a queue for second-chance eviction.
 */
#include "mr/store.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The state of an entry: two bits, and above them how often it is in use. */
enum { LINKED = 1, READY = 2, USE = 4 };

enum {
	CHUNK = 64,	      /* entries allocated at a time */
	HINTS_MAX = 1 << 18,  /* pointers */
	PAGE_SHIFT = 12,      /* of hints; any would do */
	EVICT_LOOKS = 128,    /* entries that an eviction looks at before it gives up */
};

struct chunk {
	struct verve_mr_entry entries[CHUNK];
	SLIST_ENTRY(chunk) link;
};

TAILQ_HEAD(queue, verve_mr_entry);

struct verve_mr_store {
	pthread_mutex_t lock;
	struct verve_itree tree;
	struct queue linked, dead, unused;
	SLIST_HEAD(, chunk) chunks;
	size_t count, size, max_count, max_size; /* entries, bytes: linked */
	uint64_t hits;				 /* of entries that are not linked any more */
	uint64_t evictions;
	volatile AO_t dead_count;
	uintptr_t page;
	unsigned hint_shift;
	volatile AO_t *hints; /* struct verve_mr_entry *; written under the lock */
};

struct verve_mr_store *verve_mr_store_open(size_t count, size_t size)
{
	struct verve_mr_store *store = calloc(1, sizeof(*store));
	size_t hints = 64;

	if (!store)
		return NULL;
	while (hints < HINTS_MAX && hints < 4 * count)
		hints *= 2;
	store->hints = calloc(hints, sizeof(*store->hints));
	if (!store->hints) {
		free(store);
		return NULL;
	}
	store->hint_shift = 64 - __builtin_ctzl(hints);
	store->page = sysconf(_SC_PAGESIZE);
	store->max_count = count;
	store->max_size = size;
	pthread_mutex_init(&store->lock, NULL);
	TAILQ_INIT(&store->linked);
	TAILQ_INIT(&store->dead);
	TAILQ_INIT(&store->unused);
	SLIST_INIT(&store->chunks);
	return store;
}

void verve_mr_store_close(struct verve_mr_store *store)
{
	struct chunk *chunk;

	assert(!store->tree.root && TAILQ_EMPTY(&store->dead));
	while ((chunk = SLIST_FIRST(&store->chunks))) {
		SLIST_REMOVE_HEAD(&store->chunks, link);
		free(chunk);
	}
	pthread_mutex_destroy(&store->lock);
	free((void *)store->hints);
	free(store);
}

/* One use more of an entry that may be any by now; alone: if it has none. */
static bool use(struct verve_mr_entry *entry, bool alone)
{
	AO_t state = AO_load(&entry->state);

	while ((state & (LINKED | READY)) == (LINKED | READY) && !(alone && state >= USE)) {
		AO_t seen = AO_fetch_compare_and_swap_full(&entry->state, state, state + USE);

		if (seen == state)
			return true;
		state = seen;
	}
	return false;
}

bool verve_mr_store_put(struct verve_mr_entry *entry)
{
	AO_t state;

	AO_store(&entry->recent, 1);
	state = AO_fetch_and_add_full(&entry->state, (AO_t)0 - USE) - USE;
	return state < USE && !(state & LINKED);
}

static void count_hits(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	AO_t hits = AO_load(&entry->hits);

	AO_fetch_and_add(&entry->hits, (AO_t)0 - hits);
	store->hits += hits;
}

/* Bytes of the pages that it pins. */
static size_t pinned(const struct verve_mr_store *store, uintptr_t start, uintptr_t end)
{
	return ((end - 1) | (store->page - 1)) - (start & -store->page) + 1;
}

/* Nobody finds it, nobody uses it. The lock is held. */
static void lay_out(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	TAILQ_INSERT_TAIL(&store->dead, entry, link);
	AO_fetch_and_add1(&store->dead_count);
}

/* It is linked. The lock is held. */
static void unlink_entry(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	verve_itree_remove(&store->tree, &entry->node);
	TAILQ_REMOVE(&store->linked, entry, link);
	store->count--;
	store->size -= pinned(store, entry->node.start, entry->node.end);
	count_hits(store, entry);
	if (AO_fetch_and_add_full(&entry->state, (AO_t)0 - LINKED) - LINKED < USE)
		lay_out(store, entry);
}

/* Of an entry that is in use, or under the lock. */
static bool grants(const struct verve_mr_entry *entry, const struct verve_mr_want *want)
{
	if (entry->exact != want->exact)
		return false;
	if (want->exact)
		return entry->node.start == want->start && entry->node.end == want->end &&
		       entry->access == want->access;
	return entry->node.start <= want->start && entry->node.end >= want->end &&
	       (entry->access & want->access) == want->access;
}

static volatile AO_t *hint_of(struct verve_mr_store *store, uintptr_t start)
{
	return &store->hints[(start >> PAGE_SHIFT) * 0x9e3779b97f4a7c15u >> store->hint_shift];
}

static bool take(const struct verve_itree_node *node, void *arg)
{
	struct verve_mr_entry *entry = (struct verve_mr_entry *)node;
	const struct verve_mr_want *want = arg;

	return grants(entry, want) && use(entry, want->exact);
}

static struct verve_mr_entry *find_in_tree(struct verve_mr_store *store,
					   const struct verve_mr_want *want)
{
	struct verve_mr_entry *entry;

	pthread_mutex_lock(&store->lock);
	entry = (struct verve_mr_entry *)verve_itree_containing(&store->tree, want->start,
								want->end, take, (void *)want);
	if (entry)
		AO_store_release(hint_of(store, want->start), (AO_t)entry);
	pthread_mutex_unlock(&store->lock);
	return entry;
}

struct verve_mr_entry *verve_mr_store_find(struct verve_mr_store *store,
					   const struct verve_mr_want *want)
{
	struct verve_mr_entry *entry = (void *)AO_load_acquire(hint_of(store, want->start));

	if (entry && use(entry, want->exact)) {
		if (grants(entry, want)) {
			AO_fetch_and_add1(&entry->hits);
			return entry;
		}
		if (verve_mr_store_put(entry)) {
			pthread_mutex_lock(&store->lock);
			lay_out(store, entry);
			pthread_mutex_unlock(&store->lock);
		}
	}
	entry = find_in_tree(store, want);
	if (entry)
		AO_fetch_and_add1(&entry->hits);
	return entry;
}

/* Second chance: the one at the head goes unless it is, or was lately, in use. */
static bool evict(struct verve_mr_store *store)
{
	for (int i = 0; i < EVICT_LOOKS; i++) {
		struct verve_mr_entry *entry = TAILQ_FIRST(&store->linked);

		if (!entry)
			return false;
		if (AO_load(&entry->state) < USE && !AO_load(&entry->recent)) {
			unlink_entry(store, entry);
			store->evictions++;
			return true;
		}
		AO_store(&entry->recent, 0);
		TAILQ_REMOVE(&store->linked, entry, link);
		TAILQ_INSERT_TAIL(&store->linked, entry, link);
	}
	return false;
}

static bool make_room(struct verve_mr_store *store, size_t size)
{
	if (size > store->max_size)
		return false;
	while (store->count >= store->max_count || store->size > store->max_size - size)
		if (!evict(store))
			return false;
	return true;
}

/* An unused entry; the lock is held, and let go of to allocate. */
static struct verve_mr_entry *take_unused(struct verve_mr_store *store)
{
	struct verve_mr_entry *entry;
	struct chunk *chunk;

	if (TAILQ_EMPTY(&store->unused)) {
		pthread_mutex_unlock(&store->lock);
		chunk = aligned_alloc(_Alignof(struct chunk), sizeof(*chunk));
		if (chunk)
			memset(chunk, 0, sizeof(*chunk));
		pthread_mutex_lock(&store->lock);
		if (!chunk)
			return NULL;
		SLIST_INSERT_HEAD(&store->chunks, chunk, link);
		for (int i = 0; i < CHUNK; i++)
			TAILQ_INSERT_TAIL(&store->unused, &chunk->entries[i], link);
	}
	entry = TAILQ_FIRST(&store->unused);
	TAILQ_REMOVE(&store->unused, entry, link);
	return entry;
}

struct verve_mr_entry *verve_mr_store_add(struct verve_mr_store *store,
					  const struct verve_mr_want *want)
{
	size_t size = pinned(store, want->start, want->end);
	struct verve_mr_entry *entry;

	pthread_mutex_lock(&store->lock);
	entry = take_unused(store);
	if (!entry)
		goto out;
	if (!make_room(store, size)) {
		TAILQ_INSERT_HEAD(&store->unused, entry, link);
		entry = NULL;
		goto out;
	}
	entry->node.start = want->start;
	entry->node.end = want->end;
	entry->access = want->access;
	entry->exact = want->exact;
	entry->region = NULL;
	AO_store(&entry->hits, 0);
	AO_store(&entry->recent, 1);
	AO_store_release(&entry->state, LINKED | USE);
	verve_itree_insert(&store->tree, &entry->node);
	TAILQ_INSERT_TAIL(&store->linked, entry, link);
	store->count++;
	store->size += size;
out:
	pthread_mutex_unlock(&store->lock);
	return entry;
}

/* The same range, no more access, ready, and another: nobody needs to find it any more. */
static bool is_superfluous(const struct verve_itree_node *node, void *arg)
{
	const struct verve_mr_entry *entry = (const struct verve_mr_entry *)node, *better = arg;

	return entry != better && node->start == better->node.start &&
	       node->end == better->node.end && entry->exact == better->exact &&
	       AO_load(&entry->state) & READY &&
	       (entry->exact ? entry->access == better->access :
			       (entry->access & ~better->access) == 0);
}

bool verve_mr_store_ready(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	struct verve_itree_node *old;
	bool linked;

	pthread_mutex_lock(&store->lock);
	linked = AO_load(&entry->state) & LINKED;
	if (linked) {
		AO_fetch_and_add_full(&entry->state, READY);
		AO_store_release(hint_of(store, entry->node.start), (AO_t)entry);
		while ((old = verve_itree_containing(&store->tree, entry->node.start,
						     entry->node.end, is_superfluous, entry)))
			unlink_entry(store, (struct verve_mr_entry *)old);
	}
	pthread_mutex_unlock(&store->lock);
	return linked;
}

void verve_mr_store_unlink(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	pthread_mutex_lock(&store->lock);
	if (AO_load(&entry->state) & LINKED)
		unlink_entry(store, entry);
	pthread_mutex_unlock(&store->lock);
}

bool verve_mr_store_evict_idle(struct verve_mr_store *store)
{
	struct verve_mr_entry *entry, *next;
	bool found = false;

	pthread_mutex_lock(&store->lock);
	for (entry = TAILQ_FIRST(&store->linked); entry; entry = next) {
		next = TAILQ_NEXT(entry, link);
		if (AO_load(&entry->state) >= USE)
			continue;
		unlink_entry(store, entry);
		store->evictions++;
		found = true;
	}
	pthread_mutex_unlock(&store->lock);
	return found;
}

size_t verve_mr_store_invalidate(struct verve_mr_store *store, uintptr_t start, uintptr_t end)
{
	struct verve_itree_node *node;
	size_t count = 0;

	pthread_mutex_lock(&store->lock);
	while ((node = verve_itree_overlap(&store->tree, start, end))) {
		unlink_entry(store, (struct verve_mr_entry *)node);
		count++;
	}
	pthread_mutex_unlock(&store->lock);
	return count;
}

struct verve_mr_entry *verve_mr_store_bury(struct verve_mr_store *store)
{
	struct verve_mr_entry *entry;

	if (!AO_load(&store->dead_count))
		return NULL;
	pthread_mutex_lock(&store->lock);
	entry = TAILQ_FIRST(&store->dead);
	if (entry) {
		TAILQ_REMOVE(&store->dead, entry, link);
		AO_fetch_and_sub1(&store->dead_count);
	}
	pthread_mutex_unlock(&store->lock);
	return entry;
}

void verve_mr_store_free(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	pthread_mutex_lock(&store->lock);
	count_hits(store, entry);
	AO_store(&entry->state, 0);
	TAILQ_INSERT_HEAD(&store->unused, entry, link);
	pthread_mutex_unlock(&store->lock);
}

uint64_t verve_mr_store_hits(struct verve_mr_store *store)
{
	struct verve_mr_entry *entry;
	uint64_t hits;

	pthread_mutex_lock(&store->lock);
	hits = store->hits;
	TAILQ_FOREACH(entry, &store->linked, link)
		hits += AO_load(&entry->hits);
	pthread_mutex_unlock(&store->lock);
	return hits;
}

uint64_t verve_mr_store_evictions(struct verve_mr_store *store)
{
	uint64_t evictions;

	pthread_mutex_lock(&store->lock);
	evictions = store->evictions;
	pthread_mutex_unlock(&store->lock);
	return evictions;
}
