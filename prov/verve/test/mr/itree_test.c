/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Interval tree, compared with a model that searches an array from end to end. */
#include <criterion/criterion.h>
#include <string.h>

#include "mr/itree.h"

enum { NODES = 64, SPACE = 200, STEPS = 2000000 };

static struct verve_itree tree;
static struct verve_itree_node nodes[NODES];
static bool in[NODES];
static uint64_t state = 88172645463325252u;

static uint64_t below(uint64_t limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % limit;
}

static void any_range(uintptr_t *start, uintptr_t *end)
{
	*start = 1000 + below(SPACE);
	*end = *start + 1 + below(below(4) ? 10 : SPACE);
}

static bool contains(const struct verve_itree_node *node, uintptr_t start, uintptr_t end)
{
	return node->start <= start && node->end >= end;
}

static bool overlaps(const struct verve_itree_node *node, uintptr_t start, uintptr_t end)
{
	return node->start < end && node->end > start;
}

static bool is_odd(const struct verve_itree_node *node, void *arg)
{
	(void)arg;
	return (node - nodes) & 1;
}

static bool is_any(const struct verve_itree_node *node, void *arg)
{
	(void)node;
	(void)arg;
	return true;
}

static void check_search(void)
{
	struct verve_itree_node *odd, *any, *odd_overlap;
	bool has_odd = false, has_overlap = false, has_odd_overlap = false;
	uintptr_t start, end;

	any_range(&start, &end);
	for (int i = 0; i < NODES; i++) {
		has_odd |= in[i] && i & 1 && contains(&nodes[i], start, end);
		has_overlap |= in[i] && overlaps(&nodes[i], start, end);
		has_odd_overlap |= in[i] && i & 1 && overlaps(&nodes[i], start, end);
	}
	odd = verve_itree_containing(&tree, start, end, is_odd, NULL);
	any = verve_itree_overlap(&tree, start, end, is_any, NULL);
	odd_overlap = verve_itree_overlap(&tree, start, end, is_odd, NULL);
	cr_assert_eq(!!odd, has_odd);
	cr_assert_eq(!!any, has_overlap);
	cr_assert_eq(!!odd_overlap, has_odd_overlap);
	if (odd)
		cr_assert(in[odd - nodes] && is_odd(odd, NULL) && contains(odd, start, end));
	if (any)
		cr_assert(in[any - nodes] && overlaps(any, start, end));
	if (odd_overlap)
		cr_assert(in[odd_overlap - nodes] && is_odd(odd_overlap, NULL) &&
			  overlaps(odd_overlap, start, end));
}

/* Checks order, priorities and max_end at each node of a subtree; returns its number of nodes. */
static int check_below(const struct verve_itree_node *node, uintptr_t *max_end)
{
	uintptr_t left = 0, right = 0;
	int count;

	*max_end = 0;
	if (!node)
		return 0;
	count = 1 + check_below(node->left, &left) + check_below(node->right, &right);
	cr_assert(!node->left || (node->left->start <= node->start &&
				  node->left->priority <= node->priority));
	cr_assert(!node->right || (node->right->start >= node->start &&
				   node->right->priority <= node->priority));
	*max_end = node->end;
	*max_end = left > *max_end ? left : *max_end;
	*max_end = right > *max_end ? right : *max_end;
	cr_assert_eq(node->max_end, *max_end);
	return count;
}

Test(itree, agrees_with_a_naive_model)
{
	int count = 0;

	for (int step = 0; step < STEPS; step++) {
		int i = below(NODES);
		uintptr_t max_end;

		if (in[i]) {
			verve_itree_remove(&tree, &nodes[i]);
		} else {
			any_range(&nodes[i].start, &nodes[i].end);
			verve_itree_insert(&tree, &nodes[i]);
		}
		in[i] = !in[i];
		count += in[i] ? 1 : -1;
		check_search();
		if (step % 64 == 0)
			cr_assert_eq(check_below(tree.root, &max_end), count);
	}
}

static int depth(const struct verve_itree_node *node)
{
	int left = node ? depth(node->left) : 0, right = node ? depth(node->right) : 0;

	return node ? 1 + (left > right ? left : right) : 0;
}

/* Ascending addresses, as of an application that allocates many buffers. */
Test(itree, stays_shallow)
{
	static struct verve_itree_node many[100000];

	for (int i = 0; i < 100000; i++) {
		many[i].start = 4096 * (uintptr_t)(i + 1);
		many[i].end = many[i].start + 4096;
		verve_itree_insert(&tree, &many[i]);
	}
	cr_expect_leq(depth(tree.root), 60);
}

Test(itree, equal_ranges_are_different_nodes)
{
	for (int i = 0; i < 3; i++) {
		nodes[i] = (struct verve_itree_node){.start = 10, .end = 20};
		verve_itree_insert(&tree, &nodes[i]);
	}
	verve_itree_remove(&tree, &nodes[1]);
	verve_itree_remove(&tree, &nodes[0]);
	cr_expect_eq(verve_itree_containing(&tree, 10, 20, is_any, NULL), &nodes[2]);
	cr_expect_null(verve_itree_containing(&tree, 10, 21, is_any, NULL));
	cr_expect_null(verve_itree_overlap(&tree, 20, 21, is_any, NULL));
	cr_expect_null(verve_itree_overlap(&tree, 9, 10, is_any, NULL));
	verve_itree_remove(&tree, &nodes[2]);
	cr_expect_null(tree.root);
}
