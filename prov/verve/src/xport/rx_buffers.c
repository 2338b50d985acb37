/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive buffers: when their number grows and shrinks. */
#include "xport/rx_buffers.h"

#include <stdlib.h>

#include "base/config.h"
#include "base/log.h"
#include "net/cq.h"
#include <rdma/fi_errno.h>

enum { SPARED = 4 }; /* less than one in so many of the buffers waited: half would do */

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

void verve_rx_buffers_added(struct verve_xport *xport)
{
	uint32_t before = xport->rx_count;

	add_free(xport);
	if (xport->rx_count == before)
		xport->rx_load.refused = true;
	else
		VERVE_INFO(EP_DATA, "%u links keep this side busy: %u receive buffers\n",
			   xport->link_count, xport->rx_count);
}

int verve_rx_buffers_open(struct verve_xport *xport)
{
	uint32_t first = xport->attr.rx_first;
	int ret;

	xport->lost.buffers = calloc(xport->attr.rx_limit, sizeof(struct verve_slab *));
	xport->batch.wc = malloc(xport->attr.rx_limit * sizeof(struct verve_net_wc));
	if (!xport->lost.buffers || !xport->batch.wc)
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
 * Registering takes time, so a turn adds one step at most. After a failure it would take time for
 * nothing.
 */
static bool add_step(struct verve_xport *xport)
{
	struct verve_rx_load *load = &xport->rx_load;
	int ret;

	if (load->grown || load->refused)
		return false;
	ret = verve_slab_request(&xport->rx_slabs, VERVE_RX_STEP);
	load->refused = ret && ret != -FI_EINPROGRESS;
	load->grown = !load->refused;
	if (!ret)
		verve_rx_buffers_added(xport);
	return load->grown;
}

bool verve_rx_buffers_reinforce(struct verve_xport *xport)
{
	return xport->rx_count < xport->attr.rx_uncredited && add_step(xport);
}

void verve_rx_buffers_judge(struct verve_xport *xport, uint32_t waiting)
{
	uint32_t usable = verve_rx_buffers_usable(xport), wanted = 2 * waiting;
	struct verve_rx_load *load = &xport->rx_load;

	if (waiting > load->peak)
		load->peak = waiting;
	/* Then more packets may wait at the senders, nobody knows how many. */
	if (waiting >= usable / 4 * 3)
		wanted += usable;
	if (wanted > usable && wanted > load->wanted)
		load->wanted = wanted;
}

void verve_rx_buffers_press(struct verve_xport *xport)
{
	if (verve_rx_buffers_usable(xport) >= xport->rx_load.wanted) {
		xport->rx_load.wanted = 0;
		return;
	}
	if (xport->rx_load.shrinking)
		verve_rx_buffers_stop_shrinking(xport);
	else if (xport->rx_count < xport->attr.rx_limit)
		add_step(xport);
}

void verve_rx_buffers_watch(struct verve_xport *xport, uint64_t now)
{
	struct verve_rx_load *load = &xport->rx_load;
	bool busy = load->peak >= xport->rx_count / SPARED;

	load->peak = 0;
	load->refused = false;
	load->wanted = 0;
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
