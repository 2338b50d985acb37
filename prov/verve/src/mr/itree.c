/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Interval tree: a treap, changed only by split and merge. */
#include "mr/itree.h"

#include <assert.h>
#include <stddef.h>

static void update(struct verve_itree_node *node)
{
	node->max_end = node->end;
	if (node->left && node->left->max_end > node->max_end)
		node->max_end = node->left->max_end;
	if (node->right && node->right->max_end > node->max_end)
		node->max_end = node->right->max_end;
}

/* The order of the tree. Nodes with the same start are ordered by their own addresses. */
static bool node_before(const struct verve_itree_node *a, const struct verve_itree_node *b)
{
	return a->start != b->start ? a->start < b->start : a < b;
}

/* Splits a subtree: *left gets the nodes before pivot, *right the others. */
static void split(struct verve_itree_node *node, const struct verve_itree_node *pivot,
		  struct verve_itree_node **left, struct verve_itree_node **right)
{
	if (!node) {
		*left = *right = NULL;
		return;
	}
	if (node_before(node, pivot)) {
		split(node->right, pivot, &node->right, right);
		*left = node;
	} else {
		split(node->left, pivot, left, &node->left);
		*right = node;
	}
	update(node);
}

/* Joins two subtrees; every node of left must come before every node of right. */
static struct verve_itree_node *merge(struct verve_itree_node *left, struct verve_itree_node *right)
{
	if (!left || !right)
		return left ? left : right;
	if (left->priority > right->priority) {
		left->right = merge(left->right, right);
		update(left);
		return left;
	}
	right->left = merge(left, right->left);
	update(right);
	return right;
}

static void insert(struct verve_itree_node **at, struct verve_itree_node *node)
{
	if (!*at || node->priority > (*at)->priority) {
		split(*at, node, &node->left, &node->right);
		*at = node;
	} else {
		insert(node_before(node, *at) ? &(*at)->left : &(*at)->right, node);
	}
	update(*at);
}

static void remove_below(struct verve_itree_node **at, struct verve_itree_node *node)
{
	assert(*at);
	if (*at == node) {
		*at = merge(node->left, node->right);
		return;
	}
	remove_below(node_before(node, *at) ? &(*at)->left : &(*at)->right, node);
	update(*at);
}

/* Priorities are random, so no order of the application's addresses makes the tree deep. */
static uint64_t next_priority(struct verve_itree *tree)
{
	uint64_t z = tree->seed += 0x9e3779b97f4a7c15u; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

void verve_itree_insert(struct verve_itree *tree, struct verve_itree_node *node)
{
	assert(node->start < node->end);
	node->priority = next_priority(tree);
	insert(&tree->root, node);
}

void verve_itree_remove(struct verve_itree *tree, struct verve_itree_node *node)
{
	remove_below(&tree->root, node);
}

static struct verve_itree_node *overlap(struct verve_itree_node *node, uintptr_t start,
					uintptr_t end, verve_itree_accept *accept, void *arg)
{
	while (node && node->max_end > start) {
		struct verve_itree_node *found = overlap(node->left, start, end, accept, arg);

		if (found)
			return found;
		if (node->start >= end)
			return NULL;
		if (node->end > start && accept(node, arg))
			return node;
		node = node->right;
	}
	return NULL;
}

struct verve_itree_node *verve_itree_overlap(const struct verve_itree *tree, uintptr_t start,
					     uintptr_t end, verve_itree_accept *accept, void *arg)
{
	return overlap(tree->root, start, end, accept, arg);
}

static struct verve_itree_node *containing(struct verve_itree_node *node, uintptr_t start,
					   uintptr_t end, verve_itree_accept *accept, void *arg)
{
	while (node && node->max_end >= end) {
		if (node->start <= start) {
			struct verve_itree_node *found;

			if (node->end >= end && accept(node, arg))
				return node;
			found = containing(node->right, start, end, accept, arg);
			if (found)
				return found;
		}
		node = node->left;
	}
	return NULL;
}

struct verve_itree_node *verve_itree_containing(const struct verve_itree *tree, uintptr_t start,
						uintptr_t end, verve_itree_accept *accept,
						void *arg)
{
	return containing(tree->root, start, end, accept, arg);
}
