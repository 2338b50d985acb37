/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interval tree: ranges of addresses, which may overlap and repeat, in a treap ordered by start
 * in which every node knows the highest end below it. Nothing is allocated; insert, remove and
 * each step of a search take O(log n) expected. The owner's lock protects it.
 */
#ifndef VERVE_MR_ITREE_H
#define VERVE_MR_ITREE_H

#include <stdbool.h>
#include <stdint.h>

/* Embedded in what it stands for. start < end; both are constant while it is in a tree. */
struct verve_itree_node {
	struct verve_itree_node *left, *right;
	uint64_t priority;    /* higher than those below it */
	uintptr_t max_end;    /* of this node and those below it */
	uintptr_t start, end; /* end: the first address behind it */
};

typedef bool verve_itree_accept(const struct verve_itree_node *node, void *arg);

struct verve_itree {
	struct verve_itree_node *root;
	uint64_t seed; /* of the priorities; an empty tree is all zeros */
};

void verve_itree_insert(struct verve_itree *tree, struct verve_itree_node *node);
/* The node is in the tree. */
void verve_itree_remove(struct verve_itree *tree, struct verve_itree_node *node);

/*
 * A node that shares an address with start to end, and that accept(node, arg) takes; NULL: there is
 * none. Looks at such nodes, from the lowest start on, until one is taken.
 */
struct verve_itree_node *verve_itree_overlap(const struct verve_itree *tree, uintptr_t start,
					     uintptr_t end, verve_itree_accept *accept, void *arg);
/* The same of nodes that contain start to end, from the highest start on. */
struct verve_itree_node *verve_itree_containing(const struct verve_itree *tree, uintptr_t start,
						uintptr_t end, verve_itree_accept *accept,
						void *arg);

#endif
