/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interval tree of address ranges, which may overlap and repeat. It is a treap ordered by start;
 * each node knows the highest end in its subtree. The tree allocates nothing. Insert, remove and
 * each step of a search take O(log n) expected time. The owner's lock protects it.
 */
#ifndef VERVE_MR_ITREE_H
#define VERVE_MR_ITREE_H

#include <stdbool.h>
#include <stdint.h>

/* A range, embedded in its object. start < end; both constant while the node is in a tree. */
struct verve_itree_node {
	struct verve_itree_node *left, *right;
	uint64_t priority;    /* not lower than the priorities of its children */
	uintptr_t max_end;    /* the highest end in this node's subtree */
	uintptr_t start, end; /* end: the first address behind the range */
};

/* The caller's choice among nodes. Must not change the tree. */
typedef bool verve_itree_accept(const struct verve_itree_node *node, void *arg);

struct verve_itree {
	struct verve_itree_node *root;
	uint64_t seed; /* state of the random priorities; an empty tree is all zeros */
};

/* Sets the node's links and priority; start and end are the caller's. */
void verve_itree_insert(struct verve_itree *tree, struct verve_itree_node *node);
/* The node must be in the tree. */
void verve_itree_remove(struct verve_itree *tree, struct verve_itree_node *node);

/*
 * Calls accept(node, arg) for the nodes that overlap start to end, the lowest start first, until it
 * returns true. Returns that node; NULL: no node was accepted.
 */
struct verve_itree_node *verve_itree_overlap(const struct verve_itree *tree, uintptr_t start,
					     uintptr_t end, verve_itree_accept *accept, void *arg);
/* The same for the nodes that contain all of start to end, the highest start first. */
struct verve_itree_node *verve_itree_containing(const struct verve_itree *tree, uintptr_t start,
						uintptr_t end, verve_itree_accept *accept,
						void *arg);

#endif
