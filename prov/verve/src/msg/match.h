/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching: which posted receive takes which message. One table for tagged and one for untagged
 * messages per engine; the engine's lock protects it.
 *
 * Rule (fi_tagged(3), fi_msg(3)): a receive takes a message when (tag ^ rx.tag) & ~rx.ignore == 0
 * and the receive's source is the message's or any. A message goes to the oldest receive that takes
 * it; a receive gets the oldest message it takes.
 *
 * Cost does not depend on how many wait. Receives that differ only in tag and source form a class
 * (one per ignore mask, and directed or not); each class hashes by what it compares. A message
 * looks once into each class that has receives; sequence numbers decide between them. A receive
 * looks once into its class's index of the messages. Only a class that finds VERVE_MATCH_INDEXED
 * busier classes indexed already walks through the messages instead.
 */
#ifndef VERVE_MSG_MATCH_H
#define VERVE_MSG_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/pool.h"

#define VERVE_MATCH_ANY UINT32_MAX /* source of a receive that takes messages from all */

enum { VERVE_MATCH_INDEXED = 8 }; /* classes that messages can be indexed by at a time */

struct verve_match_class;
struct verve_match_index;

/*
 * A place in a class's hash: in the ring of those with an equal key, the first of which stands for
 * it.
 */
struct verve_match_node {
	uint64_t tag; /* less what the class ignores */
	uint32_t source;
	bool first;
	struct verve_match_node *older, *younger; /* of the first, older is the youngest */
	struct verve_match_node *next;		  /* of the first: another key in the bucket */
};

/* Embedded in a posted receive. The owner sets source, tag and ignore; the rest is the table's. */
struct verve_match_recv {
	uint32_t source; /* peer id, or VERVE_MATCH_ANY */
	uint64_t tag;	 /* bits under ignore do not count */
	uint64_t ignore;
	/* the table's */
	uint64_t seq;
	struct verve_match_class *mclass;
	struct verve_match_node node;
	TAILQ_ENTRY(verve_match_recv) order; /* all posted, oldest first */
};

/* Embedded in a message that found no receive. The owner sets source and tag. */
struct verve_match_msg {
	uint32_t source;
	uint64_t tag;
	/* the table's */
	TAILQ_ENTRY(verve_match_msg) order; /* all, oldest first */
	struct verve_match_index *index;    /* one for each class that it is indexed by */
};

struct verve_match {
	TAILQ_HEAD(, verve_match_recv) posted;
	TAILQ_HEAD(, verve_match_msg) unexpected;
	size_t posted_count, unexpected_count;
	/* the table's */
	struct verve_match_class **classes;
	uint32_t class_count, class_limit;
	struct verve_match_class *indexed[VERVE_MATCH_INDEXED];
	uint32_t indexed_count;
	uint64_t next_seq;
	uint64_t finds; /* looks for a message; the clock that says how long a class was idle */
	uint64_t misses; /* nodes and messages looked at in vain, ever; for tests and statistics */
	struct verve_pool indexes;
};

/* Allocates nothing yet. 0. */
int verve_match_init(struct verve_match *match);
/* Frees the table; what is still in it belongs to the owners (walk posted and unexpected first). */
void verve_match_fini(struct verve_match *match);

/* Adds a receive behind all others. -FI_ENOMEM: nothing changed. */
int verve_match_post(struct verve_match *match, struct verve_match_recv *recv);
/* Takes a posted receive out. */
void verve_match_cancel(struct verve_match *match, struct verve_match_recv *recv);
/*
 * The receive that a message with this source and tag goes to; NULL: none. Takes it out unless
 * keep.
 */
struct verve_match_recv *verve_match_arrive(struct verve_match *match, uint32_t source,
					    uint64_t tag, bool keep);

/* Adds a message behind all others. -FI_ENOMEM: nothing changed. */
int verve_match_add(struct verve_match *match, struct verve_match_msg *msg);
void verve_match_remove(struct verve_match *match, struct verve_match_msg *msg);
/* The message that such a receive gets; NULL: none. Leaves it in. */
struct verve_match_msg *verve_match_find(struct verve_match *match, uint32_t source, uint64_t tag,
					 uint64_t ignore);

#endif
