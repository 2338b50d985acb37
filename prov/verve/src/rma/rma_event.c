/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* RMA events: writing, counting and receiving them. */
#include "rma/rma_event.h"

#include "comp/comp_queue.h"
#include "comp/counter.h"
#include "mr/keytab.h"
#include "net/mr.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/transfer.h"
#include "xport/wire.h"
#include "xport/xport.h"

/*
 * Whether an earlier segment has the same key, so is in the same region. A packet names each region
 * once, and each region counts once.
 */
static bool is_repeated(const struct verve_wire_segment *segment, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++)
		if (segment[i].key == segment[index].key)
			return true;
	return false;
}

void verve_rma_event_describe(const struct verve_transfer *transfer, bool read,
			      struct verve_wire_packet *packet)
{
	packet->type = VERVE_WIRE_RMA_EVENT;
	packet->tag = read ? VERVE_WIRE_READ : VERVE_WIRE_WROTE;
	packet->len = transfer->len;
	packet->segment_count = 0;
	for (uint32_t i = 0; i < transfer->remote_count; i++)
		if (!is_repeated(transfer->remote, i))
			packet->segment[packet->segment_count++].key = transfer->remote[i].key;
}

/* A device's atomic that fetches needs no other right than one that does not. */
static bool key_grants(const struct verve_mr_key *key, bool read)
{
	unsigned plain = read ? VERVE_NET_REMOTE_READ : VERVE_NET_REMOTE_WRITE;

	return key->access & (VERVE_NET_REMOTE_ATOMIC | plain);
}

/*
 * Bytes that an operation on the region of this key can move at most; UINT64_MAX: the region is
 * gone.
 */
static uint64_t most_of(struct verve_xport *xport, uint64_t wanted)
{
	const struct verve_mr_key *key = verve_mr_keytab_find(xport->attr.mr_keytab, wanted);
	uint64_t sum = 0;

	if (!key)
		return UINT64_MAX;
	for (uint32_t i = 0; i < key->segments.count; i++)
		sum += key->segments.at[i].len;
	/* Each segment of an operation may lie in the same region. */
	return sum < UINT64_MAX / VERVE_WIRE_SEGMENTS ? sum * VERVE_WIRE_SEGMENTS : UINT64_MAX;
}

/* The regions that the packet names can hold what it says was moved. */
static bool is_possible(struct verve_xport *xport, const struct verve_wire_packet *packet)
{
	uint64_t left = packet->len;

	verve_mr_keytab_lock(xport->attr.mr_keytab);
	for (uint32_t i = 0; left && i < packet->segment_count; i++) {
		uint64_t most = most_of(xport, packet->segment[i].key);

		left -= most < left ? most : left;
	}
	verve_mr_keytab_unlock(xport->attr.mr_keytab);
	return !left;
}

static void count_region(struct verve_xport *xport, uint64_t wanted, bool read)
{
	const struct verve_mr_key *key;
	struct verve_comp_counter *counter;

	verve_mr_keytab_lock(xport->attr.mr_keytab);
	key = verve_mr_keytab_find(xport->attr.mr_keytab, wanted);
	counter = !key || !key_grants(key, read) ? NULL : read ? key->read : key->write;
	if (counter)
		verve_comp_counter_add(counter, 1);
	verve_mr_keytab_unlock(xport->attr.mr_keytab);
}

void verve_rma_event_count(struct verve_xport *xport, const struct verve_wire_packet *packet,
			   bool read)
{
	const struct verve_sink *sink = &xport->attr.sink;
	struct verve_comp_counter *counter = read ? sink->remote_read : sink->remote_write;

	/*
	 * The regions' counters first: an application that has seen the endpoint's counter change
	 * may read a region's counter at once.
	 */
	for (uint32_t i = 0; xport->attr.rma_event && i < packet->segment_count; i++)
		if (!is_repeated(packet->segment, i))
			count_region(xport, packet->segment[i].key, read);
	if (counter)
		verve_comp_counter_add(counter, 1);
}

static void report_write_data(struct verve_xport *xport, struct verve_link *link,
			      const struct verve_wire_packet *packet)
{
	struct verve_sink *sink = &xport->attr.sink;
	struct verve_comp comp = {
		.flags = VERVE_COMP_RMA | VERVE_COMP_REMOTE_WRITE | VERVE_COMP_REMOTE_CQ_DATA,
		.len = packet->len,
		.data = packet->data,
		.src = xport->attr.source ? verve_peer_fi_addr(xport, link->peer) : UINT64_MAX,
	};

	if (sink->rx_queue)
		verve_comp_queue_write_uninvited(sink->rx_queue, &comp);
}

void verve_rma_event_write_data(struct verve_xport *xport, struct verve_link *link,
				struct verve_wire_packet *packet)
{
	report_write_data(xport, link, packet);
	if (xport->attr.sink.remote_write)
		verve_comp_counter_add(xport->attr.sink.remote_write, 1);
}

/*
 * A notice that no region allows does not end the connection: the application may have put another
 * region under the key meanwhile.
 */
void verve_rma_event_receive(struct verve_xport *xport, struct verve_link *link,
			     struct verve_wire_packet *packet)
{
	if (packet->flags & VERVE_WIRE_DATA)
		report_write_data(xport, link, packet);
	if (!xport->attr.rma_event || !is_possible(xport, packet))
		packet->segment_count = 0;
	verve_rma_event_count(xport, packet, packet->tag == VERVE_WIRE_READ);
}
