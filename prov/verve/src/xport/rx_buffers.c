/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive buffers: when their number grows and shrinks. */
#include "xport/rx_buffers.h"

#include <stdlib.h>

#include "base/config.h"
#include "base/log.h"
#include "net/cq.h"
#include <rdma/fi_errno.h>

enum {
	SPARED = 4, /* less than one in so many of the buffers in use: half would do */
	SAMPLE = 16, /* buffers of an estimate */
};

_Static_assert(VERVE_CONFIG_RX_MAX - 1 <= UINT16_MAX, "a slab has its place");

static const uint64_t quiet_time = 10000000000; /* nanoseconds */

/* The pool's free slabs become free buffers. */
static void add_free(struct verve_xport *xport)
{
	while (xport->rx_slabs.free) {
		struct verve_slab *slab = verve_slab_alloc(&xport->rx_slabs);

		slab->place = xport->rx_count;
		xport->lost.buffers[xport->rx_count++] = slab;
		verve_rx_buffers_take_back(xport, slab);
	}
}

int verve_rx_buffers_open(struct verve_xport *xport)
{
	uint32_t first = xport->attr.rx_first;
	int ret;

	xport->lost.buffers = calloc(xport->attr.rx_limit, sizeof(struct verve_slab *));
	if (!xport->lost.buffers)
		return -FI_ENOMEM;
	/* So that steps never lead beyond attr.rx_uncredited. */
	first += (xport->attr.rx_uncredited - first) % VERVE_RX_STEP;
	ret = verve_slab_reserve(&xport->rx_slabs, first);
	if (ret)
		return ret;
	add_free(xport);
	xport->rx_load.first = first;
	return 0;
}

void verve_rx_buffers_stop_shrinking(struct verve_xport *xport)
{
	struct verve_rx_load *load = &xport->rx_load;

	load->shrinking = false;
	load->quiet = 0;
	while (load->aside) {
		struct verve_slab *slab = load->aside;

		load->aside = slab->next;
		verve_rx_buffers_take_back(xport, slab);
	}
	load->aside_count = 0;
}

/*
 * True if a completion of the full batch that was polled last has put no byte into its buffer, but
 * into memory that the peer has written to. The buffers' marks do not show how many of these wait.
 */
static bool batch_has_writes(const struct verve_xport *xport)
{
	for (int i = 0; i < VERVE_POLL_BATCH; i++) {
		const struct verve_net_wc *wc = &xport->batch.wc[i];

		if (!wc->status && wc->opcode == VERVE_NET_WC_RECV_IMM)
			return true;
	}
	return false;
}

/*
 * How many buffers are in use now: taken by packets that are not handled. An estimate, by buffers
 * at equal distances: peers that send without a pause fill the batch of each poll, however few
 * packets wait, and the cache has least to do with few buffers.
 */
static uint32_t estimate(const struct verve_xport *xport)
{
	uint32_t step = xport->rx_count / SAMPLE + 1, seen = 0, used = 0;

	for (uint32_t i = 0; i < xport->rx_count; i += step) {
		used += verve_rx_state_is_touched(&xport->lost, xport->lost.buffers[i]);
		seen++;
	}
	return (uint64_t)used * xport->rx_count / seen;
}

/* Buffers at most, if writes with remote CQ data, which cost no credit, are what fills them. */
static uint64_t limit_of_writes(const struct verve_xport *xport)
{
	uint64_t most = (uint64_t)xport->link_count * xport->attr.window;

	return most < xport->attr.rx_uncredited ? xport->attr.rx_uncredited : most;
}

/*
 * Registering takes time, so a turn adds one step at most. After a failure it would take time for
 * nothing.
 */
static bool add_step(struct verve_xport *xport)
{
	struct verve_rx_load *load = &xport->rx_load;

	if (load->grown || load->refused)
		return false;
	load->refused = verve_slab_reserve(&xport->rx_slabs, VERVE_RX_STEP);
	if (load->refused)
		return false;
	load->grown = true;
	add_free(xport);
	return true;
}

bool verve_rx_buffers_reinforce(struct verve_xport *xport)
{
	if (xport->rx_count >= xport->attr.rx_uncredited || !add_step(xport))
		return false;
	VERVE_INFO(EP_DATA, "messages have begun in many receive buffers: %u of them\n",
		   xport->rx_count);
	return true;
}

/* As many packets as a run has may wait, or far fewer. True: half of the buffers are in use. */
static bool is_half_used(struct verve_xport *xport)
{
	struct verve_rx_load *load = &xport->rx_load;
	uint32_t in_use = verve_rx_buffers_in_use(xport), used;

	if (load->run < in_use / SPARED) {
		load->peak = load->run;
		return false;
	}
	if (batch_has_writes(xport) && xport->rx_count < limit_of_writes(xport))
		used = load->run < in_use ? load->run : in_use;
	else
		used = estimate(xport);
	if (used < in_use / 2) {
		if (load->peak < used)
			load->peak = used;
		/* So that the next estimate comes after as many packets more. */
		load->run = 0;
		return false;
	}
	/* The next full batch asks again, perhaps in another turn. */
	load->peak = in_use / 2 - 1;
	return true;
}

void verve_rx_buffers_press(struct verve_xport *xport)
{
	if (!is_half_used(xport))
		return;
	if (xport->rx_load.shrinking) {
		verve_rx_buffers_stop_shrinking(xport);
	} else if (xport->rx_count < xport->attr.rx_limit && add_step(xport)) {
		VERVE_INFO(EP_DATA, "%u links keep this side busy: %u receive buffers\n",
			   xport->link_count, xport->rx_count);
	}
}

void verve_rx_buffers_watch(struct verve_xport *xport, uint64_t now)
{
	struct verve_rx_load *load = &xport->rx_load;
	bool busy = load->peak >= xport->rx_count / SPARED;

	load->peak = 0;
	load->refused = false;
	if (busy || xport->rx_count <= load->first)
		load->quiet = 0;
	else if (!load->quiet)
		load->quiet = now;
	else if (now - load->quiet >= quiet_time)
		load->shrinking = true;
}

static void put_aside(struct verve_xport *xport)
{
	struct verve_rx_load *load = &xport->rx_load;
	struct verve_slab *slab = xport->rx_free;

	xport->rx_free = NULL;
	xport->rx_free_count = 0;
	for (struct verve_slab *next; slab; slab = next) {
		next = slab->next;
		if (slab->place < load->first) {
			verve_rx_buffers_take_back(xport, slab);
			continue;
		}
		slab->next = load->aside;
		load->aside = slab;
		load->aside_count++;
	}
}

/* True if all buffers of the step that was added last are put aside. */
static bool is_complete(const struct verve_xport *xport)
{
	size_t count = verve_slab_newest(&xport->rx_slabs);

	if (xport->rx_load.aside_count < count)
		return false;
	for (size_t i = xport->rx_count - count; i < xport->rx_count; i++)
		if (xport->lost.buffers[i]->lent != VERVE_RX_LOST_HERE)
			return false;
	return true;
}

static void free_newest(struct verve_xport *xport)
{
	struct verve_rx_load *load = &xport->rx_load;
	struct verve_slab **at = &load->aside;
	size_t count = verve_slab_newest(&xport->rx_slabs);

	load->aside_count -= count;
	xport->rx_count -= count;
	while (*at)
		if ((*at)->place < xport->rx_count)
			at = &(*at)->next;
		else
			*at = (*at)->next;
	verve_slab_shrink(&xport->rx_slabs);
}

void verve_rx_buffers_shrink(struct verve_xport *xport)
{
	put_aside(xport);
	/* Deregistering takes time, so one step at a time. */
	if (xport->rx_count > xport->rx_load.first && is_complete(xport))
		free_newest(xport);
	if (xport->rx_count > xport->rx_load.first)
		return;
	verve_rx_buffers_stop_shrinking(xport);
	VERVE_INFO(EP_DATA, "back to %u receive buffers\n", xport->rx_count);
}
