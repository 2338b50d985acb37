/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching: which posted receive takes which message. One table for tagged and one for untagged
 * messages per engine; the engine's lock protects it.
 *
 * Rule (fi_tagged(3), fi_msg(3)): a receive matches a message when (tag ^ rx.tag) & ~rx.ignore == 0
 * and the receive's source is the message's source or VERVE_MATCH_ANY. A message goes to the oldest
 * receive that matches; a receive gets the oldest message that it matches.
 *
 * The cost does not depend on the number of receives and messages that wait. Receives that differ
 * only in tag and source form a class: there is one class for each ignore mask, and for directed
 * receives and receives from any source. Each class has a hash table of its receives, by the tag
 * bits and the source that the class compares. For a message, the table does one lookup in each
 * class that has receives, and takes the receive with the smallest sequence number. A class may
 * also have an index of the messages; then a receive needs one lookup there. No more than
 * VERVE_MATCH_INDEXED classes have an index at a time. The receives of other classes walk through
 * the list of messages.
 */
#ifndef VERVE_MSG_MATCH_H
#define VERVE_MSG_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/pool.h"

#define VERVE_MATCH_ANY UINT32_MAX /* source of a receive that takes messages from all peers */

enum { VERVE_MATCH_INDEXED = 8 }; /* classes that may have an index of the messages at a time */

struct verve_match_class;
struct verve_match_index;

/*
 * A receive or a message in a class's hash table. Nodes with an equal key (tag and source) form a
 * ring, from the oldest to the youngest; only the oldest, called first, hangs in the bucket.
 */
struct verve_match_node {
	uint64_t tag; /* without the bits that the class ignores */
	uint32_t source;
	bool first;
	struct verve_match_node *older, *younger; /* a ring: first->older is the youngest node */
	struct verve_match_node *next; /* if first: the first node of another key in the bucket */
};

/* Embedded in a posted receive. The owner sets the first four fields, the table the rest. */
struct verve_match_recv {
	uint32_t source; /* peer id, or VERVE_MATCH_ANY */
	bool stays;	 /* takes many messages: verve_match_arrive leaves it in the table */
	uint64_t tag;	 /* bits under ignore do not count */
	uint64_t ignore;
	/* Set by the table. */
	uint64_t seq; /* of two receives, the older one has the smaller number */
	struct verve_match_class *mclass;
	struct verve_match_node node;
	TAILQ_ENTRY(verve_match_recv) order; /* in match->posted */
};

/* Embedded in a message that found no receive. The owner sets source and tag. */
struct verve_match_msg {
	uint32_t source;
	uint64_t tag;
	/* Set by the table. */
	TAILQ_ENTRY(verve_match_msg) order; /* in match->unexpected */
	struct verve_match_index *index;    /* list: one for each class that has an index */
};

struct verve_match {
	TAILQ_HEAD(, verve_match_recv) posted; /* all receives, the oldest first */
	TAILQ_HEAD(, verve_match_msg) unexpected; /* all messages, the oldest first */
	size_t posted_count, unexpected_count;
	/*
	 * For a walk through unexpected during which messages may be removed: the next one. NULL:
	 * none. verve_match_remove keeps it true.
	 */
	struct verve_match_msg *next;
	/* Private to match.c. */
	struct verve_match_class **classes;
	uint32_t class_count, class_limit; /* classes; entries allocated in the array */
	struct verve_match_class *indexed[VERVE_MATCH_INDEXED]; /* classes that have an index */
	uint32_t indexed_count;
	uint64_t next_seq;
	uint64_t finds; /* calls of verve_match_find: the clock by which a class is idle */
	uint64_t misses; /* nodes and messages compared that did not match, ever; for tests */
	struct verve_pool indexes;
};

/* Makes an empty table. Always returns 0; allocates no memory. */
int verve_match_init(struct verve_match *match);
/*
 * Frees the table. It does not free the receives and messages that are still in the table: their
 * owners walk through posted and unexpected before this call.
 */
void verve_match_fini(struct verve_match *match);

/* Adds a receive behind all others. -FI_ENOMEM: nothing changed. */
int verve_match_post(struct verve_match *match, struct verve_match_recv *recv);
/* Takes a posted receive out of the table. */
void verve_match_cancel(struct verve_match *match, struct verve_match_recv *recv);
/*
 * The oldest posted receive that matches a message with this source and tag; NULL: none. Takes the
 * receive out of the table, unless the receive stays.
 */
struct verve_match_recv *verve_match_arrive(struct verve_match *match, uint32_t source,
					    uint64_t tag);
/* The same receive, which stays in the table in any case. */
struct verve_match_recv *verve_match_expect(struct verve_match *match, uint32_t source,
					    uint64_t tag);

/* Adds a message behind all others. -FI_ENOMEM: nothing changed. */
int verve_match_add(struct verve_match *match, struct verve_match_msg *msg);
/* Takes a message out of the table. */
void verve_match_remove(struct verve_match *match, struct verve_match_msg *msg);
/* For verve_match_find alone: there are messages. */
struct verve_match_msg *verve_match_search(struct verve_match *match, uint32_t source, uint64_t tag,
					   uint64_t ignore);
/*
 * The oldest message that a receive with this source, tag and ignore matches; NULL: none. The
 * message stays in the table.
 */
static inline struct verve_match_msg *verve_match_find(struct verve_match *match, uint32_t source,
						       uint64_t tag, uint64_t ignore)
{
	return match->unexpected_count ? verve_match_search(match, source, tag, ignore) : NULL;
}

#endif
