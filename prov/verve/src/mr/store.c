/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Store: an interval tree of the entries; hints, which are read without the lock before the tree is
 * searched; and a queue for second-chance eviction.
 */
#include "mr/store.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr/hints.h"

/* The state of an entry: two bits, and the number of uses in the bits above. */
enum { LINKED = 1, READY = 2, USE = 4 };

enum {
	CHUNK = 64,	      /* entries allocated at a time */
	EVICT_LOOKS = 128,    /* entries that an eviction looks at before it gives up */
	HELD_LOOKS = 256,     /* held entries whose hits are counted at a time */
	AGE_FROM = 64,	      /* no entry ages while there are at most so many */
	AGE_LOOKS = 4,	      /* entries looked at with each add; two would only keep the number */
};

_Static_assert(offsetof(struct verve_mr_entry, node.start) % 64 == 0, "one line for a hit");

struct chunk {
	struct verve_mr_entry entries[CHUNK];
	SLIST_ENTRY(chunk) link;
};

TAILQ_HEAD(queue, verve_mr_entry);

struct verve_mr_store {
	pthread_mutex_t lock;
	struct verve_itree tree;
	struct queue placed; /* entries that take places, as eviction looks at them */
	struct queue held;   /* linked, but take no place */
	struct queue dead;   /* to be buried */
	struct queue unused; /* free */
	SLIST_HEAD(, chunk) chunks;
	size_t count, size, max_count, max_size; /* entries in placed, and their bytes */
	uint64_t hits;				 /* hits that entries have counted */
	uint64_t evictions;
	volatile AO_t dead_count;
	uintptr_t page;
	struct verve_mr_hints hints; /* written under the lock */
};

struct verve_mr_store *verve_mr_store_open(size_t count, size_t size)
{
	struct verve_mr_store *store = calloc(1, sizeof(*store));

	if (!store)
		return NULL;
	if (verve_mr_hints_open(&store->hints, count)) {
		free(store);
		return NULL;
	}
	store->page = sysconf(_SC_PAGESIZE);
	store->max_count = count;
	store->max_size = size;
	pthread_mutex_init(&store->lock, NULL);
	TAILQ_INIT(&store->placed);
	TAILQ_INIT(&store->held);
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
	verve_mr_hints_close(&store->hints);
	free(store);
}

static struct verve_mr_entry *entry_of(const struct verve_itree_node *node)
{
	return (void *)((char *)node - offsetof(struct verve_mr_entry, node));
}

/*
 * Takes a use of an entry, which may be another entry by now: the caller checks it afterwards.
 * alone: only if it is not in use. False: the entry is not linked and ready, or is in use.
 */
static bool entry_use(struct verve_mr_entry *entry, bool alone)
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

	state = AO_fetch_and_add_full(&entry->state, (AO_t)0 - USE) - USE;
	return state < USE && !(state & LINKED);
}

bool verve_mr_store_put_shared(struct verve_mr_entry *entry)
{
	AO_t state = AO_load(&entry->state);

	while (state >= 2 * USE || state & LINKED) {
		AO_t seen = AO_fetch_compare_and_swap_full(&entry->state, state, state - USE);

		if (seen == state)
			return true;
		state = seen;
	}
	return false;
}

/* Counts with a plain store: a lost count is cheaper than another atomic instruction. */
static void entry_hit(struct verve_mr_entry *entry)
{
	AO_store(&entry->hits, AO_load(&entry->hits) + 1);
}

static void entry_count_hits(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	AO_t hits = AO_load(&entry->hits);

	store->hits += hits - entry->counted;
	entry->counted = hits;
}

/* Bytes of the pages that the range touches. */
static size_t range_pinned(const struct verve_mr_store *store, uintptr_t start, uintptr_t end)
{
	return ((end - 1) | (store->page - 1)) - (start & -store->page) + 1;
}

/* Queues an entry that is neither linked nor used for burying. The lock is held. */
static void entry_queue_dead(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	TAILQ_INSERT_TAIL(&store->dead, entry, link);
	AO_fetch_and_add1(&store->dead_count);
}

/* The entry is in the tree: puts it into the queue where it belongs. The lock is held. */
static void entry_enqueue(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	if (entry->holds) {
		TAILQ_INSERT_TAIL(&store->held, entry, link);
		return;
	}
	TAILQ_INSERT_TAIL(&store->placed, entry, link);
	store->count++;
	store->size += range_pinned(store, entry->node.start, entry->node.end);
}

/* The opposite, before entry->holds changes. */
static void entry_dequeue(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	if (entry->holds) {
		TAILQ_REMOVE(&store->held, entry, link);
		return;
	}
	TAILQ_REMOVE(&store->placed, entry, link);
	store->count--;
	store->size -= range_pinned(store, entry->node.start, entry->node.end);
}

/* The entry is linked. The lock is held. */
static void entry_unlink(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	verve_itree_remove(&store->tree, &entry->node);
	entry_dequeue(store, entry);
	entry_count_hits(store, entry);
	if (AO_fetch_and_add_full(&entry->state, (AO_t)0 - LINKED) - LINKED < USE)
		entry_queue_dead(store, entry);
}

/* True: the entry serves the request. The caller has a use of the entry, or holds the lock. */
static bool entry_grants(const struct verve_mr_entry *entry, const struct verve_mr_want *want)
{
	if (entry->exact != want->exact)
		return false;
	if (want->exact)
		return entry->node.start == want->start && entry->node.end == want->end &&
		       entry->access == want->access;
	return entry->node.start <= want->start && entry->node.end >= want->end &&
	       (entry->access & want->access) == want->access;
}

static bool entry_take(const struct verve_itree_node *node, void *arg)
{
	struct verve_mr_entry *entry = entry_of(node);
	const struct verve_mr_want *want = arg;

	return entry_grants(entry, want) && entry_use(entry, want->exact);
}

static struct verve_mr_entry *tree_find(struct verve_mr_store *store,
					const struct verve_mr_want *want)
{
	struct verve_mr_entry *entry = NULL;
	struct verve_itree_node *node;

	pthread_mutex_lock(&store->lock);
	node = verve_itree_containing(&store->tree, want->start, want->end, entry_take,
				      (void *)want);
	if (node) {
		entry = entry_of(node);
		verve_mr_hints_set(&store->hints, want->start, entry);
	}
	pthread_mutex_unlock(&store->lock);
	return entry;
}

struct verve_mr_entry *verve_mr_store_find(struct verve_mr_store *store,
					   const struct verve_mr_want *want)
{
	struct verve_mr_entry *entry = verve_mr_hints_get(&store->hints, want->start);

	if (entry && entry_use(entry, want->exact)) {
		if (entry_grants(entry, want)) {
			entry_hit(entry);
			return entry;
		}
		if (verve_mr_store_put(entry)) {
			pthread_mutex_lock(&store->lock);
			entry_queue_dead(store, entry);
			pthread_mutex_unlock(&store->lock);
		}
	}
	entry = tree_find(store, want);
	if (entry)
		entry_hit(entry);
	return entry;
}

/*
 * Second chance: evicts the first entry of the queue, unless it is in use or was found since the
 * last look; then it goes to the end of the queue. True: an entry was evicted.
 */
static bool evict_look(struct verve_mr_store *store)
{
	struct verve_mr_entry *entry = TAILQ_FIRST(&store->placed);

	if (!entry)
		return false;
	if (AO_load(&entry->state) < USE && AO_load(&entry->hits) == entry->seen) {
		entry_unlink(store, entry);
		store->evictions++;
		return true;
	}
	entry->seen = AO_load(&entry->hits);
	TAILQ_REMOVE(&store->placed, entry, link);
	TAILQ_INSERT_TAIL(&store->placed, entry, link);
	return false;
}

static bool evict_one(struct verve_mr_store *store)
{
	for (int i = 0; i < EVICT_LOOKS; i++)
		if (evict_look(store))
			return true;
	return false;
}

void verve_mr_store_age(struct verve_mr_store *store)
{
	pthread_mutex_lock(&store->lock);
	for (int i = 0; i < AGE_LOOKS && store->count > AGE_FROM; i++)
		evict_look(store);
	pthread_mutex_unlock(&store->lock);
}

static bool make_room(struct verve_mr_store *store, size_t size)
{
	if (size > store->max_size)
		return false;
	while (store->count >= store->max_count || store->size > store->max_size - size)
		if (!evict_one(store))
			return false;
	return true;
}

struct join {
	struct verve_mr_want *want;
	size_t max; /* bytes */
};

static bool entry_can_join(const struct verve_itree_node *node, void *arg)
{
	const struct verve_mr_entry *entry = entry_of(node);
	const struct join *join = arg;
	const struct verve_mr_want *want = join->want;
	uintptr_t start = node->start < want->start ? node->start : want->start;
	uintptr_t end = node->end > want->end ? node->end : want->end;

	return !entry->exact && entry->access == want->access && AO_load(&entry->state) & READY &&
	       end - start > want->end - want->start && end - start <= join->max;
}

/* Widens a request by all ready entries that it may join. The lock is held. */
static struct verve_mr_want want_join(const struct verve_mr_store *store,
				      const struct verve_mr_want *want)
{
	struct verve_mr_want all = *want;
	struct join join = {&all, (want->end - want->start) * VERVE_MR_STORE_JOIN};
	struct verve_itree_node *node;

	while ((node = verve_itree_overlap(&store->tree, all.start, all.end, entry_can_join,
					   &join))) {
		all.start = node->start < all.start ? node->start : all.start;
		all.end = node->end > all.end ? node->end : all.end;
	}
	return all;
}

/* Takes an unused entry. The lock is held; it is released while memory is allocated. */
static struct verve_mr_entry *entry_take_unused(struct verve_mr_store *store)
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

/* Links a new entry; NULL: no room, and the entry is unused again. The lock is held. */
static struct verve_mr_entry *entry_link(struct verve_mr_store *store, struct verve_mr_entry *entry,
					 const struct verve_mr_want *want)
{
	if (!make_room(store, range_pinned(store, want->start, want->end))) {
		TAILQ_INSERT_HEAD(&store->unused, entry, link);
		return NULL;
	}
	entry->node.start = want->start;
	entry->node.end = want->end;
	entry->access = want->access;
	entry->exact = want->exact;
	entry->region = NULL;
	entry->holds = 0;
	entry->born = AO_load(&entry->hits);
	entry->seen = entry->born - 1; /* a new entry gets a second chance, too */
	AO_store_release(&entry->state, LINKED | USE);
	verve_itree_insert(&store->tree, &entry->node);
	entry_enqueue(store, entry);
	return entry;
}

struct verve_mr_entry *verve_mr_store_add(struct verve_mr_store *store,
					  const struct verve_mr_want *want)
{
	struct verve_mr_entry *entry;

	pthread_mutex_lock(&store->lock);
	entry = entry_take_unused(store);
	if (entry)
		entry = entry_link(store, entry, want);
	pthread_mutex_unlock(&store->lock);
	return entry;
}

struct verve_mr_entry *verve_mr_store_add_joined(struct verve_mr_store *store,
						 const struct verve_mr_want *want, bool *joined)
{
	struct verve_mr_entry *entry;
	struct verve_mr_want all;

	*joined = false;
	pthread_mutex_lock(&store->lock);
	entry = entry_take_unused(store);
	if (!entry)
		goto out;
	/*
	 * The lock is held from here on. If it were not, an invalidation could come between: it
	 * would unlink the entries that are joined here, and miss the new entry of the same memory.
	 */
	all = want_join(store, want);
	*joined = all.end - all.start > want->end - want->start;
	if (*joined) {
		entry = entry_link(store, entry, &all);
	} else {
		TAILQ_INSERT_HEAD(&store->unused, entry, link);
		entry = NULL;
	}
out:
	pthread_mutex_unlock(&store->lock);
	return entry;
}

uint64_t verve_mr_store_found(const struct verve_mr_entry *entry)
{
	return AO_load(&entry->hits) - entry->born;
}

/* True: a ready entry grants nothing that better does not, so it need not be found any more. */
static bool entry_is_superfluous(const struct verve_itree_node *node, void *arg)
{
	const struct verve_mr_entry *entry = entry_of(node), *better = arg;
	struct verve_mr_want all = {node->start, node->end, entry->access, entry->exact};

	return entry != better && AO_load(&entry->state) & READY && entry_grants(better, &all);
}

bool verve_mr_store_ready(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	struct verve_itree_node *old;
	bool linked;

	pthread_mutex_lock(&store->lock);
	linked = AO_load(&entry->state) & LINKED;
	if (linked) {
		AO_fetch_and_add_full(&entry->state, READY);
		verve_mr_hints_set(&store->hints, entry->node.start, entry);
		while ((old = verve_itree_overlap(&store->tree, entry->node.start, entry->node.end,
						  entry_is_superfluous, entry)))
			entry_unlink(store, entry_of(old));
	}
	pthread_mutex_unlock(&store->lock);
	return linked;
}

void verve_mr_store_unlink(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	pthread_mutex_lock(&store->lock);
	if (AO_load(&entry->state) & LINKED)
		entry_unlink(store, entry);
	pthread_mutex_unlock(&store->lock);
}

/* The lock is held. */
static void set_holds(struct verve_mr_store *store, struct verve_mr_entry *entry, uint32_t holds)
{
	bool linked = AO_load(&entry->state) & LINKED;

	if (linked)
		entry_dequeue(store, entry);
	entry->holds = holds;
	if (linked)
		entry_enqueue(store, entry);
}

void verve_mr_store_hold(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	pthread_mutex_lock(&store->lock);
	set_holds(store, entry, entry->holds + 1);
	pthread_mutex_unlock(&store->lock);
}

void verve_mr_store_release(struct verve_mr_store *store, struct verve_mr_entry *entry)
{
	size_t size = range_pinned(store, entry->node.start, entry->node.end);

	pthread_mutex_lock(&store->lock);
	if (entry->holds == 1 && AO_load(&entry->state) & LINKED && !make_room(store, size)) {
		entry_unlink(store, entry);
		store->evictions++;
	}
	set_holds(store, entry, entry->holds - 1);
	pthread_mutex_unlock(&store->lock);
}

bool verve_mr_store_evict_idle(struct verve_mr_store *store)
{
	struct verve_mr_entry *entry, *next;
	bool found = false;

	pthread_mutex_lock(&store->lock);
	for (entry = TAILQ_FIRST(&store->placed); entry; entry = next) {
		next = TAILQ_NEXT(entry, link);
		if (AO_load(&entry->state) >= USE)
			continue;
		entry_unlink(store, entry);
		store->evictions++;
		found = true;
	}
	pthread_mutex_unlock(&store->lock);
	return found;
}

static bool entry_take_any(const struct verve_itree_node *node, void *arg)
{
	(void)node;
	(void)arg;
	return true;
}

size_t verve_mr_store_invalidate(struct verve_mr_store *store, uintptr_t start, uintptr_t end)
{
	struct verve_itree_node *node;
	size_t count = 0;

	pthread_mutex_lock(&store->lock);
	while ((node = verve_itree_overlap(&store->tree, start, end, entry_take_any, NULL))) {
		entry_unlink(store, entry_of(node));
		count++;
	}
	pthread_mutex_unlock(&store->lock);
	return count;
}

bool verve_mr_store_has_dead(const struct verve_mr_store *store)
{
	return AO_load(&store->dead_count);
}

struct verve_mr_entry *verve_mr_store_bury(struct verve_mr_store *store)
{
	struct verve_mr_entry *entry;

	if (!verve_mr_store_has_dead(store))
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
	entry_count_hits(store, entry);
	AO_store(&entry->state, 0);
	TAILQ_INSERT_HEAD(&store->unused, entry, link);
	pthread_mutex_unlock(&store->lock);
}

uint64_t verve_mr_store_hits(struct verve_mr_store *store)
{
	struct verve_mr_entry *entry;
	uint64_t hits;

	pthread_mutex_lock(&store->lock);
	/* Held entries may be many, so a few at a time, in turn, are brought up to date. */
	for (int i = 0; i < HELD_LOOKS && (entry = TAILQ_FIRST(&store->held)); i++) {
		entry_count_hits(store, entry);
		TAILQ_REMOVE(&store->held, entry, link);
		TAILQ_INSERT_TAIL(&store->held, entry, link);
	}
	hits = store->hits;
	TAILQ_FOREACH(entry, &store->placed, link)
		hits += AO_load(&entry->hits) - entry->counted;
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
