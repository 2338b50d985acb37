/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive buffers: when their number grows and shrinks. */
#include "xport/rx_buffers.h"

#include <stdlib.h>

#include "base/config.h"
#include "base/log.h"
#include "xport/packet.h"
#include "xport/wire.h"
#include <rdma/fi_errno.h>

enum { SPARED = 4 }; /* a run of less than one in so many of the buffers: half would do */

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

/* The packet is no longer than a small message, of which a credit buys thousands. */
static bool is_short(const struct verve_net_wc *wc)
{
	return wc->byte_len <= VERVE_WIRE_PREFIX + VERVE_WIRE_SMALL;
}

/* True if half of the full batch that was polled last, or more, are short. */
static bool batch_is_short(const struct verve_xport *xport)
{
	int count = 0;

	for (int i = 0; i < VERVE_POLL_BATCH; i++)
		count += is_short(&xport->batch.wc[i]);
	return count >= VERVE_POLL_BATCH / 2;
}

/* True if all packets of the full batch that was polled last are messages that cost credits. */
static bool batch_is_credited(const struct verve_xport *xport)
{
	for (int i = 0; i < VERVE_POLL_BATCH; i++) {
		const struct verve_net_wc *wc = &xport->batch.wc[i];
		const struct verve_slab *slab = (const struct verve_slab *)(uintptr_t)wc->wr_id;

		if (wc->status || wc->opcode != VERVE_NET_WC_RECV || is_short(wc) ||
		    verve_wire_type_of(slab->data) != VERVE_WIRE_EAGER)
			return false;
	}
	return true;
}

/* Bytes of the full batch that was polled last; at least 1. */
static uint64_t batch_bytes(const struct verve_xport *xport)
{
	uint64_t bytes = 1;

	for (int i = 0; i < VERVE_POLL_BATCH; i++)
		bytes += xport->batch.wc[i].byte_len;
	return bytes;
}

/*
 * Buffers that the links could fill at a time: with messages as long as those of the last batch,
 * what their windows have; with packets that cost no credit, such as chunks,
 * attr.rx_uncredited. Of short packets one link may fill all.
 */
static uint64_t wanted(const struct verve_xport *xport)
{
	uint64_t longest = VERVE_WIRE_PREFIX + xport->attr.eager_size;
	uint64_t bytes = (uint64_t)xport->link_count * xport->attr.window * longest;
	uint64_t most = bytes * VERVE_POLL_BATCH / batch_bytes(xport);

	if (batch_is_short(xport))
		return xport->attr.rx_limit;
	if (most < xport->attr.rx_uncredited && !batch_is_credited(xport))
		most = xport->attr.rx_uncredited;
	return most < xport->attr.rx_limit ? most : xport->attr.rx_limit;
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

void verve_rx_buffers_press(struct verve_xport *xport)
{
	struct verve_rx_load *load = &xport->rx_load;
	uint32_t half = verve_rx_buffers_in_use(xport) / 2;

	if (load->run < half) {
		load->peak = load->run;
		return;
	}
	/* The next full batch asks again: it may be of other packets, and in another turn. */
	load->peak = half - 1;
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
