/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching: the classes of receives, with their hash tables of receives and indexes of messages.
 *
 * A message or receive seldom costs a malloc: a receive brings its own node, and the nodes of an
 * index come from a pool. Only classes and their buckets are allocated, and both stay for later
 * receives with the same ignore mask.
 */
#include "msg/match.h"

#include <stdlib.h>
#include <string.h>

#include "net/sys.h"
#include <rdma/fi_errno.h>

enum {
	BUCKETS_MIN = 64,
	CLASSES_KEPT = 16, /* with more classes, an empty class is given another ignore mask */
	SHORT_WALK = 8,	   /* messages that are compared one by one before an index is made */
};

struct hash {
	struct verve_match_node **buckets; /* NULL: not allocated yet */
	uint64_t tag_factor, source_factor; /* odd; a peer that knew them could fill one bucket */
	uint32_t shift;			   /* 64 - log2 of the number of buckets */
	size_t keys;			   /* different keys in the table */
};

struct verve_match_class {
	uint64_t keep; /* tag bits that are compared: ~ignore */
	uint32_t any;  /* ored to each source: VERVE_MATCH_ANY, or 0 for directed receives */
	bool indexed;  /* msgs holds all messages */
	size_t posted; /* receives in recvs */
	uint64_t used; /* match->finds when the index was last used */
	struct hash recvs, msgs;
};

/* A message's entry in the index of one class. */
struct verve_match_index {
	struct verve_match_node node;
	struct verve_match_msg *msg;
	struct verve_match_class *mclass;
	struct verve_match_index *next; /* the same message's entry in another class's index */
};

static struct verve_match_recv *recv_of(struct verve_match_node *node)
{
	return (struct verve_match_recv *)((char *)node - offsetof(struct verve_match_recv, node));
}

static struct verve_match_index *index_of(struct verve_match_node *node)
{
	return (struct verve_match_index *)((char *)node -
					    offsetof(struct verve_match_index, node));
}

/*
 * The random factors keep peers, which choose the tags, from choosing tags of one bucket. The
 * constant one spreads tags that count up in any of their fields over the top bits, whatever the
 * others are.
 */
static inline struct verve_match_node **bucket_of(const struct hash *hash, uint64_t tag,
						  uint32_t source)
{
	uint64_t mix = tag ^ (source * hash->source_factor);

	mix = (mix ^ mix >> 32) * hash->tag_factor;
	mix = (mix ^ mix >> 32) * 0x9e3779b97f4a7c15ull;
	return &hash->buckets[mix >> hash->shift];
}

/*
 * The pointer that leads to the first node with this key. If there is no such node, the pointer
 * that is to lead to it: its value is NULL.
 */
static inline struct verve_match_node **
hash_find(struct verve_match *match, const struct hash *hash, uint64_t tag, uint32_t source)
{
	struct verve_match_node **place = bucket_of(hash, tag, source);

	while (*place && ((*place)->tag != tag || (*place)->source != source)) {
		match->misses++;
		place = &(*place)->next;
	}
	return place;
}

static int hash_init(struct hash *hash)
{
	hash->buckets = calloc(BUCKETS_MIN, sizeof(hash->buckets[0]));
	if (!hash->buckets)
		return -FI_ENOMEM;
	hash->shift = 64 - __builtin_ctz(BUCKETS_MIN);
	hash->tag_factor = verve_net_random64() | 1;
	hash->source_factor = verve_net_random64() | 1;
	return 0;
}

/* Doubles the number of buckets. Without memory the table stays as it is; lookups take longer. */
static __attribute__((noinline, cold)) void hash_grow(struct hash *hash)
{
	size_t count = (size_t)1 << (64 - hash->shift);
	struct hash bigger = {
		.buckets = calloc(2 * count, sizeof(hash->buckets[0])),
		.tag_factor = hash->tag_factor,
		.source_factor = hash->source_factor,
		.shift = hash->shift - 1,
		.keys = hash->keys,
	};

	if (!bigger.buckets)
		return;
	for (size_t i = 0; i < count; i++) {
		struct verve_match_node *node = hash->buckets[i], *next;

		for (; node; node = next) {
			struct verve_match_node **bucket =
				bucket_of(&bigger, node->tag, node->source);

			next = node->next;
			node->next = *bucket;
			*bucket = node;
		}
	}
	free(hash->buckets);
	*hash = bigger;
}

/* Adds the node as the youngest of its key. The caller has set the node's tag and source. */
static inline __attribute__((always_inline)) void
hash_add(struct verve_match *match, struct hash *hash, struct verve_match_node *node)
{
	struct verve_match_node **place = hash_find(match, hash, node->tag, node->source);
	struct verve_match_node *first = *place;

	if (first) {
		node->first = false;
		node->older = first->older;
		node->younger = first;
		first->older->younger = node;
		first->older = node;
		return;
	}
	node->first = true;
	node->older = node->younger = node;
	node->next = NULL;
	*place = node;
	if (__builtin_expect(++hash->keys >> (64 - hash->shift), 0))
		hash_grow(hash);
}

/* place: hash_find's result for the node's key; ignored if the node is not the first of its key. */
static inline void hash_unlink(struct hash *hash, struct verve_match_node *node,
			       struct verve_match_node **place)
{
	struct verve_match_node *heir = node->younger;

	if (node->first) {
		if (heir == node) {
			*place = node->next;
			hash->keys--;
			return;
		}
		heir->first = true;
		heir->next = node->next;
		*place = heir;
	}
	node->older->younger = heir;
	heir->older = node->older;
}

static void hash_remove(struct verve_match *match, struct hash *hash, struct verve_match_node *node)
{
	hash_unlink(hash, node,
		    node->first ? hash_find(match, hash, node->tag, node->source) : NULL);
}

int verve_match_init(struct verve_match *match)
{
	memset(match, 0, sizeof(*match));
	TAILQ_INIT(&match->posted);
	TAILQ_INIT(&match->unexpected);
	verve_pool_init(&match->indexes, sizeof(struct verve_match_index), SIZE_MAX);
	return 0;
}

static void class_free(struct verve_match_class *mclass)
{
	free(mclass->recvs.buckets);
	free(mclass->msgs.buckets);
	free(mclass);
}

void verve_match_fini(struct verve_match *match)
{
	for (uint32_t i = 0; i < match->class_count; i++)
		class_free(match->classes[i]);
	free(match->classes);
	verve_pool_fini(&match->indexes);
}

static inline struct verve_match_class *class_find(const struct verve_match *match, uint64_t keep,
					    uint32_t any)
{
	for (uint32_t i = 0; i < match->class_count; i++) {
		struct verve_match_class *mclass = match->classes[i];

		if (mclass->keep == keep && mclass->any == any)
			return mclass;
	}
	return NULL;
}

/*
 * A class without receives and index, which may be given another ignore mask. NULL: there is none,
 * or there are so few classes that a new one is better.
 */
static struct verve_match_class *class_reuse(struct verve_match *match)
{
	if (match->class_count < CLASSES_KEPT)
		return NULL;
	for (uint32_t i = 0; i < match->class_count; i++)
		if (!match->classes[i]->posted && !match->classes[i]->indexed)
			return match->classes[i];
	return NULL;
}

static struct verve_match_class *class_alloc(struct verve_match *match)
{
	struct verve_match_class *mclass, **classes;

	if (match->class_count == match->class_limit) {
		uint32_t limit = match->class_limit ? 2 * match->class_limit : CLASSES_KEPT;

		classes = realloc(match->classes, limit * sizeof(classes[0]));
		if (!classes)
			return NULL;
		match->classes = classes;
		match->class_limit = limit;
	}
	mclass = calloc(1, sizeof(*mclass));
	if (!mclass)
		return NULL;
	if (hash_init(&mclass->recvs)) {
		free(mclass);
		return NULL;
	}
	match->classes[match->class_count++] = mclass;
	return mclass;
}

static __attribute__((noinline)) struct verve_match_class *class_make(struct verve_match *match,
								      uint64_t keep, uint32_t any)
{
	struct verve_match_class *mclass = class_reuse(match);

	if (!mclass)
		mclass = class_alloc(match);
	if (!mclass)
		return NULL;
	mclass->keep = keep;
	mclass->any = any;
	return mclass;
}

/* The class, which is made if it does not exist. NULL: no memory. */
static inline struct verve_match_class *class_get(struct verve_match *match, uint64_t keep,
						  uint32_t any)
{
	struct verve_match_class *mclass = class_find(match, keep, any);

	return __builtin_expect(mclass != NULL, 1) ? mclass : class_make(match, keep, any);
}

static uint32_t any_of(uint32_t source)
{
	return source == VERVE_MATCH_ANY ? VERVE_MATCH_ANY : 0;
}

int verve_match_post(struct verve_match *match, struct verve_match_recv *recv)
{
	struct verve_match_class *mclass = class_get(match, ~recv->ignore, any_of(recv->source));

	if (!mclass)
		return -FI_ENOMEM;
	recv->seq = match->next_seq++;
	recv->mclass = mclass;
	recv->node.tag = recv->tag & mclass->keep;
	recv->node.source = recv->source;
	hash_add(match, &mclass->recvs, &recv->node);
	mclass->posted++;
	TAILQ_INSERT_TAIL(&match->posted, recv, order);
	match->posted_count++;
	return 0;
}

static inline void forget_recv(struct verve_match *match, struct verve_match_recv *recv)
{
	recv->mclass->posted--;
	TAILQ_REMOVE(&match->posted, recv, order);
	match->posted_count--;
}

void verve_match_cancel(struct verve_match *match, struct verve_match_recv *recv)
{
	hash_remove(match, &recv->mclass->recvs, &recv->node);
	forget_recv(match, recv);
}

/*
 * The oldest posted receive that matches; NULL: none. *best_place becomes hash_find's result for
 * it.
 */
static inline __attribute__((always_inline)) struct verve_match_recv *
find_recv(struct verve_match *match, uint32_t source, uint64_t tag,
	  struct verve_match_node ***best_place)
{
	struct verve_match_recv *best = NULL;

	if (!match->posted_count)
		return NULL;
	for (uint32_t i = 0; i < match->class_count; i++) {
		struct verve_match_class *mclass = match->classes[i];
		struct verve_match_node **place;

		if (!mclass->posted)
			continue;
		place = hash_find(match, &mclass->recvs, tag & mclass->keep, source | mclass->any);
		if (*place && (!best || recv_of(*place)->seq < best->seq)) {
			best = recv_of(*place);
			*best_place = place;
		}
	}
	return best;
}

struct verve_match_recv *verve_match_arrive(struct verve_match *match, uint32_t source,
					    uint64_t tag)
{
	struct verve_match_node **place = NULL;
	struct verve_match_recv *best = find_recv(match, source, tag, &place);

	if (best && !best->stays) {
		hash_unlink(&best->mclass->recvs, &best->node, place);
		forget_recv(match, best);
	}
	return best;
}

struct verve_match_recv *verve_match_expect(struct verve_match *match, uint32_t source,
					    uint64_t tag)
{
	struct verve_match_node **place;

	return find_recv(match, source, tag, &place);
}

/* Adds a message to the index of mclass. False: no memory. */
static bool index_add(struct verve_match *match, struct verve_match_class *mclass,
		      struct verve_match_msg *msg)
{
	struct verve_match_index *index = verve_pool_alloc(&match->indexes);

	if (!index)
		return false;
	index->msg = msg;
	index->mclass = mclass;
	index->node.tag = msg->tag & mclass->keep;
	index->node.source = msg->source | mclass->any;
	index->next = msg->index;
	msg->index = index;
	hash_add(match, &mclass->msgs, &index->node);
	return true;
}

/* Takes the message out of the index of mclass, or out of all indexes if mclass is NULL. */
static void index_remove(struct verve_match *match, struct verve_match_class *mclass,
			 struct verve_match_msg *msg)
{
	struct verve_match_index **place = &msg->index, *index;

	while ((index = *place)) {
		if (mclass && index->mclass != mclass) {
			place = &index->next;
			continue;
		}
		*place = index->next;
		hash_remove(match, &index->mclass->msgs, &index->node);
		verve_pool_free(&match->indexes, index);
	}
}

/* Empties the index of match->indexed[i]. */
static void index_close(struct verve_match *match, uint32_t i)
{
	struct verve_match_class *mclass = match->indexed[i];
	struct verve_match_msg *msg;

	TAILQ_FOREACH(msg, &match->unexpected, order)
		index_remove(match, mclass, msg);
	mclass->indexed = false;
	match->indexed[i] = match->indexed[--match->indexed_count];
}

/*
 * Closes the index that was not used for the longest time. To close one and to fill another costs a
 * step for each message. So an index is closed only after as many finds without it as there are
 * messages. False: all indexes are in use.
 */
static bool index_evict(struct verve_match *match)
{
	uint32_t idle = 0;

	for (uint32_t i = 1; i < match->indexed_count; i++)
		if (match->indexed[i]->used < match->indexed[idle]->used)
			idle = i;
	if (match->finds - match->indexed[idle]->used < match->unexpected_count)
		return false;
	index_close(match, idle);
	return true;
}

/* Makes an index of all messages. False: no memory, or other classes use their indexes more. */
static bool index_open(struct verve_match *match, struct verve_match_class *mclass)
{
	struct verve_match_msg *msg;

	if (match->indexed_count == VERVE_MATCH_INDEXED && !index_evict(match))
		return false;
	if (!mclass->msgs.buckets && hash_init(&mclass->msgs))
		return false;
	mclass->indexed = true;
	match->indexed[match->indexed_count++] = mclass;
	TAILQ_FOREACH(msg, &match->unexpected, order)
		if (!index_add(match, mclass, msg)) {
			index_close(match, match->indexed_count - 1);
			return false;
		}
	return true;
}

int verve_match_add(struct verve_match *match, struct verve_match_msg *msg)
{
	msg->index = NULL;
	for (uint32_t i = 0; i < match->indexed_count; i++)
		if (!index_add(match, match->indexed[i], msg)) {
			index_remove(match, NULL, msg);
			return -FI_ENOMEM;
		}
	TAILQ_INSERT_TAIL(&match->unexpected, msg, order);
	match->unexpected_count++;
	return 0;
}

void verve_match_remove(struct verve_match *match, struct verve_match_msg *msg)
{
	index_remove(match, NULL, msg);
	if (match->next == msg)
		match->next = TAILQ_NEXT(msg, order);
	TAILQ_REMOVE(&match->unexpected, msg, order);
	if (--match->unexpected_count)
		return;
	/* The indexes are empty now. Close them: the next few messages need none. */
	while (match->indexed_count)
		match->indexed[--match->indexed_count]->indexed = false;
}

/* Compares the oldest max messages one by one. Returns the first that matches, or NULL. */
static struct verve_match_msg *walk(struct verve_match *match, uint32_t source, uint64_t tag,
				    uint64_t keep, uint32_t any, size_t max)
{
	struct verve_match_msg *msg;

	TAILQ_FOREACH(msg, &match->unexpected, order) {
		if (!max--)
			return NULL;
		if ((msg->source | any) == source && !((msg->tag ^ tag) & keep))
			return msg;
		match->misses++;
	}
	return NULL;
}

struct verve_match_msg *verve_match_search(struct verve_match *match, uint32_t source, uint64_t tag,
					   uint64_t ignore)
{
	struct verve_match_class *mclass;
	struct verve_match_node *node;
	struct verve_match_msg *msg;
	uint32_t any = any_of(source);

	match->finds++;
	mclass = class_find(match, ~ignore, any);
	if (!mclass || !mclass->indexed) {
		msg = walk(match, source, tag, ~ignore, any, SHORT_WALK);
		if (msg || match->unexpected_count <= SHORT_WALK)
			return msg;
		mclass = class_get(match, ~ignore, any);
		if (!mclass || !index_open(match, mclass))
			return walk(match, source, tag, ~ignore, any, SIZE_MAX);
	}
	mclass->used = match->finds;
	node = *hash_find(match, &mclass->msgs, tag & mclass->keep, source);
	return node ? index_of(node)->msg : NULL;
}
