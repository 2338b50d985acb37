/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive buffers: when their number grows and shrinks. */
#include "xport/rx_buffers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "xport/packet.h"
#include <rdma/fi_errno.h>

enum { SPARED = 4 }; /* a run of less than one in so many of the buffers: half of them would do */

static const uint64_t quiet_time = 10000000000; /* nanoseconds */

/* The pool's free slabs become free buffers. */
static void add_free(struct verve_xport *xport, bool spare)
{
	while (xport->rx_slabs.free) {
		struct verve_slab *slab = verve_slab_alloc(&xport->rx_slabs);

		slab->spare = spare;
		xport->lost.buffers[xport->rx_count++] = slab;
		verve_rx_buffers_take_back(xport, slab);
	}
}

int verve_rx_buffers_open(struct verve_xport *xport)
{
	int ret;

	xport->lost.buffers = calloc(xport->attr.rx_limit, sizeof(struct verve_slab *));
	if (!xport->lost.buffers)
		return -FI_ENOMEM;
	ret = verve_slab_reserve(&xport->rx_slabs, xport->attr.rx_buffers);
	if (ret)
		return ret;
	add_free(xport, false);
	xport->rx_load.grown = UINT32_MAX;
	return 0;
}

void verve_rx_buffers_stop_shrinking(struct verve_xport *xport)
{
	struct verve_rx_load *load = &xport->rx_load;
	struct verve_slab *slab;

	load->shrinking = false;
	load->quiet = 0;
	while ((slab = load->aside)) {
		load->aside = slab->next;
		load->aside_count--;
		verve_rx_buffers_take_back(xport, slab);
	}
}

/* True if half of the full batch that was polled last, or more, cost no credit of their own. */
static bool batch_is_short(const struct verve_xport *xport)
{
	int count = 0;

	for (int i = 0; i < VERVE_POLL_BATCH; i++)
		count += xport->batch.wc[i].byte_len <= VERVE_WIRE_PREFIX + VERVE_WIRE_SMALL;
	return count >= VERVE_POLL_BATCH / 2;
}

/* Buffers that the links could fill at a time. Of short packets one link may fill all. */
static uint64_t wanted(const struct verve_xport *xport)
{
	uint64_t most = (uint64_t)xport->link_count * xport->attr.window;

	return most < xport->attr.rx_limit && !batch_is_short(xport) ? most : xport->attr.rx_limit;
}

/* Registering takes time, so a turn adds one step at most. */
static bool add_step(struct verve_xport *xport)
{
	struct verve_rx_load *load = &xport->rx_load;

	if (load->grown == xport->polls || !verve_slab_grow(&xport->rx_slabs))
		return false;
	load->grown = xport->polls;
	add_free(xport, true);
	return true;
}

void verve_rx_buffers_press(struct verve_xport *xport)
{
	struct verve_rx_load *load = &xport->rx_load;

	load->peak = load->run;
	if (load->run < verve_rx_buffers_in_use(xport) / 2)
		return;
	if (load->shrinking) {
		verve_rx_buffers_stop_shrinking(xport);
	} else if (xport->rx_count < wanted(xport) && add_step(xport)) {
		VERVE_INFO(EP_DATA, "%u links keep this side busy: %u receive buffers\n",
			   xport->link_count, xport->rx_count);
	}
}

void verve_rx_buffers_watch(struct verve_xport *xport, uint64_t now)
{
	struct verve_rx_load *load = &xport->rx_load;
	bool busy = load->peak >= xport->rx_count / SPARED;

	load->peak = 0;
	if (busy || xport->rx_count == xport->attr.rx_buffers)
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
		if (!slab->spare) {
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

	/* Such buffers leave the list by their mark. */
	for (size_t i = 1; i <= count; i++)
		xport->lost.buffers[xport->rx_count - i]->spare = false;
	while (*at)
		if ((*at)->spare)
			at = &(*at)->next;
		else
			*at = (*at)->next;
	load->aside_count -= count;
	xport->rx_count -= count;
	verve_slab_shrink(&xport->rx_slabs);
}

void verve_rx_buffers_shrink(struct verve_xport *xport)
{
	put_aside(xport);
	/* Deregistering takes time, so one step at a time. */
	if (xport->rx_count > xport->attr.rx_buffers && is_complete(xport))
		free_newest(xport);
	if (xport->rx_count > xport->attr.rx_buffers)
		return;
	assert(!xport->rx_load.aside_count);
	xport->rx_load.shrinking = false;
	xport->rx_load.quiet = 0;
	VERVE_INFO(EP_DATA, "back to %u receive buffers\n", xport->rx_count);
}
