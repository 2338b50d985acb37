/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions that peers write and read: opened, closed during peers' operations, and opened again, in
 * the same memory or in other, under the same key where the application chooses it. Memory whose
 * key is closed must not change.
 *
 * A slice belongs to one operation until the operation is over, so every change in a slice is that
 * operation's doing. A region that closes is stamped over at once.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { WORDS_KEY, REGION_KEY };

static const uint64_t first_key = 1ull << 40;

static size_t region_size(const struct sim_node *node)
{
	const struct sim_options *options = node->sim->options;

	return options->nodes * SIM_SLICES * options->slice;
}

/* In pieces, which peers need not know of: addresses are virtual. Words stay whole. */
static struct fid_mr *export(struct sim_node *node, void *buf, size_t size, uint64_t key)
{
	struct sim *sim = node->sim;
	struct iovec iov[SIM_SEGMENTS];
	uint32_t count = sim->options->segments ? 1 + sim_below(sim, sim->options->segments) : 1;
	struct fid_mr *mr;
	size_t at = 0;
	int ret;

	for (uint32_t i = 0; i < count; i++) {
		size_t left = (size - at) / 8;
		size_t n = i + 1 == count ? size - at : 8 * (size_t)sim_below(sim, left + 1);

		iov[i] = (struct iovec){(char *)buf + at, n};
		at += n;
	}
	ret = fi_mr_regv(node->domain, iov, count, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
			 first_key + key, 0, &mr, NULL);
	if (ret)
		sim_fail(sim, "fi_mr_regv: %s", fi_strerror(-ret));
	return mr;
}

static void expose(struct sim_node *node)
{
	node->region_mr = export(node, node->region, region_size(node), REGION_KEY);
	node->region_key = fi_mr_key(node->region_mr);
}

void sim_region_open(struct sim_node *node)
{
	uint32_t nodes = node->sim->options->nodes;

	node->words = calloc(SIM_WORDS + nodes, sizeof(node->words[0]));
	node->swapped = calloc(nodes, sizeof(node->swapped[0]));
	node->holder = calloc(nodes * SIM_SLICES, sizeof(node->holder[0]));
	node->region = calloc(1, region_size(node));
	node->other_region = calloc(1, region_size(node));
	if (!node->holder || !node->region || !node->other_region || !node->words ||
	    !node->swapped)
		abort();
	node->words_mr =
		export(node, node->words, (SIM_WORDS + nodes) * sizeof(node->words[0]), WORDS_KEY);
	expose(node);
}

static void close_mr(struct sim_node *node, struct fid_mr *mr)
{
	int ret = mr ? fi_close(&mr->fid) : 0;

	if (ret)
		sim_fail(node->sim, "fi_close of a region: %s", fi_strerror(-ret));
}

void sim_region_close(struct sim_node *node)
{
	close_mr(node, node->region_mr);
	close_mr(node, node->words_mr);
}

void sim_region_free(struct sim_node *node)
{
	free(node->holder);
	free(node->region);
	free(node->other_region);
	free(node->words);
	free(node->swapped);
}

/* In the memory that the region of its target has now. */
static bool is_here(const struct sim_op *op)
{
	const struct sim_node *peer = op->peer;

	return op->slice >= peer->region && op->slice < peer->region + region_size(peer);
}

static bool is_own_key(const struct sim_node *node)
{
	return !(node->info->domain_attr->mr_mode & FI_MR_PROV_KEY);
}

/* Checks how the slice changed since the operation started, or since the region closed last. */
static void check_change(struct sim_op *op)
{
	const struct sim_node *peer = op->peer;

	op->whole |= op->kind == SIM_WRITE && sim_bytes_hold(op->slice, op->id, op->len);
	if (!memcmp(op->slice, op->before, op->len))
		return;
	if (op->kind != SIM_WRITE)
		sim_fail(op->node->sim, "read %lu changed its target", op->id);
	if (op->exposed && !(op->may_repeat && peer->region_mr && is_here(op)))
		sim_fail(op->node->sim,
			 "write %lu of %zu bytes of node %u changed memory of node %u whose region "
			 "it was not for", op->id, op->len, op->node->index, peer->index);
	if (op->landed)
		sim_fail(op->node->sim, "write %lu of node %u goes on in another region of node %u",
			 op->id, op->node->index, peer->index);
	op->landed = true;
	/* A write with data is checked when it completes, and again until its data has arrived. */
	memcpy(op->before, op->slice, op->len);
}

static void *copy(const void *from, size_t len)
{
	void *to = malloc(len + 1);

	if (!to)
		abort();
	return memcpy(to, from, len);
}

/* The region for which the operation was started is closed, or closes now. */
static void outlive(struct sim_op *op)
{
	op->exposed = op->may_miss = true;
	/* Nobody can tell a new region under the same key, at the same place, from the old one. */
	op->may_repeat = is_own_key(op->peer);
}

void sim_region_use(struct sim_op *op)
{
	op->before = copy(op->slice, op->len);
	op->first = copy(op->slice, op->len);
	op->first_stamp = op->peer->stamp;
	/*
	 * An initiator that has not heard of the closing uses the key, which now opens the new
	 * region.
	 */
	op->may_miss = is_own_key(op->peer) && op->peer->stamp && !op->node->sim->settled;
	if (!op->peer->region_mr)
		outlive(op);
}

static void shut(struct sim_node *node)
{
	struct sim *sim = node->sim;
	struct sim_op *users[SIM_SLICES];

	sim_trace("node %u: closes its region", node->index);
	close_mr(node, node->region_mr);
	node->stamp++;
	for (uint32_t i = 0; i < sim->options->nodes; i++) {
		memcpy(users, &sim->nodes[i].holder[node->index * SIM_SLICES], sizeof(users));
		for (uint32_t s = 0; s < SIM_SLICES; s++) {
			struct sim_op *op = users[s];

			if (!op || sim_is_over(op))
				continue;
			check_change(op);
			outlive(op);
			memset(op->before, node->stamp, op->len);
		}
	}
	node->region_mr = NULL;
	memset(node->region, node->stamp, region_size(node));
	memset(node->other_region, node->stamp, region_size(node));
}

void sim_region_change(struct sim_node *node)
{
	struct sim *sim = node->sim;
	uint8_t *region = node->region;

	if (node->region_mr)
		shut(node);
	if (sim_chance(sim, 300))
		return;
	/* Every slice has the same distance from the start of both memories. */
	if (sim_chance(sim, 400)) {
		node->region = node->other_region;
		node->other_region = region;
	}
	expose(node);
	sim_trace("node %u: opens its region, key %#lx", node->index, node->region_key);
}

/* The same place in the other memory. */
static const uint8_t *elsewhere(const struct sim_op *op)
{
	const struct sim_node *peer = op->peer;

	return is_here(op) ? peer->other_region + (op->slice - peer->region)
			   : peer->region + (op->slice - peer->other_region);
}

static bool is_stamped(const uint8_t *bytes, size_t len, uint8_t stamp)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != stamp)
			return false;
	return true;
}

static bool brought(const struct sim_op *op, const uint8_t *bytes)
{
	for (size_t i = 0, at = 0; i < op->buf.count; at += op->buf.iov[i++].iov_len)
		if (op->buf.iov[i].iov_len &&
		    memcmp(op->buf.iov[i].iov_base, bytes + at, op->buf.iov[i].iov_len))
			return false;
	return true;
}

void sim_region_reopen(struct sim_node *node)
{
	if (!node->region_mr)
		expose(node);
}

/* All of it from one of the regions that were there since, all under one key. */
static bool brought_later(const struct sim_op *op)
{
	uint8_t ages = op->peer->stamp - op->first_stamp;

	for (uint8_t age = 1; op->may_repeat && age <= ages; age++) {
		bool all = true;

		for (size_t i = 0; i < op->buf.count; i++)
			all &= is_stamped(op->buf.iov[i].iov_base, op->buf.iov[i].iov_len,
					  op->first_stamp + age);
		if (all)
			return true;
	}
	return false;
}

void sim_region_check(struct sim_op *op, int error)
{
	struct sim *sim = op->node->sim;

	check_change(op);
	if (!is_stamped(elsewhere(op), op->len, op->peer->stamp))
		sim_fail(sim, "operation %lu of node %u changed other memory of node %u", op->id,
			 op->node->index, op->peer->index);
	if (error)
		return;
	if (op->kind == SIM_READ && !brought(op, op->first) && !brought_later(op))
		sim_fail(sim,
			 "read %lu of node %u brought what was not in the region that it names",
			 op->id, op->node->index);
	if (op->kind == SIM_WRITE && op->len && !op->whole)
		sim_fail(sim, "write %lu of node %u succeeds and was not done", op->id,
			 op->node->index);
}
