/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Dispatching: packets to their handlers, receive buffers back to the device. */
#include "xport/dispatch.h"

#include <endian.h>
#include <string.h>

#include "base/log.h"
#include "net/cq.h"
#include "net/srq.h"
#include "net/sys.h"
#include "xport/failure.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/protocols.h"
#include "xport/qp_num.h"
#include "xport/replay_state.h"
#include "xport/rx_buffers.h"
#include "xport/start.h"
#include "xport/wire.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

/*
 * Free buffers that are posted together, to save doorbells: at most half of all buffers, so that
 * the queue is not empty meanwhile, even if some buffers are lost.
 */
static uint32_t batch_size(const struct verve_xport *xport)
{
	return xport->attr.rx_first < 2 * VERVE_POLL_BATCH ? (xport->attr.rx_first + 1) / 2 :
							     VERVE_POLL_BATCH;
}

/*
 * Fills in recv for the first free buffers, VERVE_POLL_BATCH at most, and writes the mark of a
 * posted buffer into each (xport/rx_lost.h). Returns how many.
 */
static uint32_t describe(struct verve_xport *xport, struct verve_net_recv *recv)
{
	struct verve_slab *slab = xport->rx_free;
	uint32_t count;

	for (count = 0; slab && count < VERVE_POLL_BATCH; slab = slab->next, count++) {
		memcpy(slab->data, &xport->lost.mark, sizeof(xport->lost.mark));
		recv[count] = (struct verve_net_recv) {
			.wr_id = (uintptr_t)slab,
			.sge = {(uintptr_t)slab->data, xport->rx_slabs.size, slab->lkey},
		};
	}
	return count;
}

/*
 * Posts free buffers in batches, while at least `least` are free. Returns 0 or the device's error.
 */
static int refill(struct verve_xport *xport, uint32_t least)
{
	if (__builtin_expect(xport->rx_load.shrinking, 0))
		verve_rx_buffers_shrink(xport);
	while (xport->rx_free_count >= least) {
		struct verve_net_recv recv[VERVE_POLL_BATCH];
		uint32_t count = describe(xport, recv), posted;
		int ret = verve_net_srq_post(xport->srq, recv, count, &posted);

		xport->rx_free_count -= posted;
		for (; posted; posted--) {
			xport->rx_free->lent = VERVE_RX_LOST_POSTED;
			xport->rx_free = xport->rx_free->next;
		}
		if (ret && !xport->rx_refused)
			VERVE_WARN(EP_DATA, "posting %u receive buffers failed: %s\n", count,
				   fi_strerror(-ret));
		xport->rx_refused = ret;
		if (ret)
			return ret;
	}
	return 0;
}

int verve_dispatch_refill(struct verve_xport *xport)
{
	return refill(xport, 1);
}

int verve_dispatch_open(struct verve_xport *xport)
{
	int ret;

	xport->rx_batch = batch_size(xport);
	verve_net_random(&xport->lost.mark, sizeof(xport->lost.mark));
	ret = verve_rx_buffers_open(xport);
	return ret ? ret : verve_dispatch_refill(xport);
}

/* True if the link's packets come over this queue pair. */
static bool comes_over(const struct verve_link *link, const struct verve_wire_packet *packet,
		       uint32_t qp_num)
{
	return link && (link->qp_num == qp_num || verve_replay_is_from(link, packet->dest, qp_num));
}

/* Hands the packet, of len bytes, to its handler. link: NULL: there is none. */
static inline __attribute__((always_inline)) void take_packet(struct verve_xport *xport,
							      struct verve_link *link,
							      struct verve_wire_packet *packet,
							      size_t len)
{
	/* A broken link cannot answer: of its late packets, only whole messages are of use. */
	if (!link || (link->broken && (link->lossy || !verve_wire_is_whole(packet->type)))) {
		xport->count.stale++;
		return;
	}
	link->credits += packet->credits;
	if (__builtin_expect(!link->may_send, 0))
		verve_link_hear(xport, link);
	link->arrived++;
	verve_stat_arrived(link->peer->stat, packet->type, len);
	xport->protocols->handlers[packet->type](xport, link, packet);
	if (verve_peer_has_work(link->peer))
		verve_peer_kick(xport, link->peer);
}

static void drop_malformed(struct verve_xport *xport, const struct verve_wire_packet *packet)
{
	xport->count.malformed++;
	VERVE_INFO(EP_DATA, "dropped a packet for connection %#x from another queue pair\n",
		   packet->dest);
}

/*
 * The packet's connection id leads to no link, or to the link of another queue pair. A link of the
 * queue pair itself decides about the packet: one of that very connection, whose place the manager
 * has given away already; or a false one, dropped at once. It must not wait for an event: others
 * would wait as long as its sender likes. Only where the queue pair has no link may the packet's UP
 * be still to come. False: stalled.
 */
static __attribute__((noinline)) bool take_misdirected(struct verve_xport *xport,
						       struct verve_wire_packet *packet, size_t len,
						       uint32_t qp_num)
{
	struct verve_link *link = verve_qp_num_find(xport, qp_num);

	if (link && link->conn_id == packet->dest)
		/* The manager has given the place to the next connection already. */
		take_packet(xport, link, packet, len);
	else if (link || verve_link_of(xport, packet->dest))
		drop_malformed(xport, packet);
	else if (verve_xport_has_events(xport))
		return false;
	else
		xport->count.stale++;
	return true;
}

/* Hands a packet to its handler, or drops it. False: stalled, the packet is not handled. */
static bool handle_packet(struct verve_xport *xport, const void *buf, size_t len, uint32_t qp_num)
{
	struct verve_wire_packet packet;
	struct verve_link *link;

	packet.segment_count = 0;
	if (verve_wire_decode(buf, len, &packet)) {
		xport->count.malformed++;
		VERVE_INFO(EP_DATA, "dropped a malformed packet of %zu bytes\n", len);
		return true;
	}
	link = verve_link_of(xport, packet.dest);
	if (__builtin_expect(!comes_over(link, &packet, qp_num), 0))
		return take_misdirected(xport, &packet, len, qp_num);
	take_packet(xport, link, &packet, len);
	return true;
}

/*
 * A write of the peer came with immediate data: remote CQ data of 32 bits, as WRITE_DATA has it
 * behind a write. False: stalled.
 */
static __attribute__((noinline)) bool handle_write(struct verve_xport *xport,
						   const struct verve_net_wc *wc)
{
	struct verve_link *link = verve_qp_num_find(xport, wc->qp_num);
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_WRITE_DATA,
		.flags = VERVE_WIRE_DATA,
		.data = be32toh(wc->imm),
		.len = wc->byte_len,
	};

	if (!link && verve_xport_has_events(xport))
		return false;
	take_packet(xport, link, &packet, 0);
	return true;
}

/* The receive has ended well. False: stalled. */
static inline bool handle(struct verve_xport *xport, const struct verve_slab *slab,
			  const struct verve_net_wc *wc)
{
	if (__builtin_expect(wc->opcode == VERVE_NET_WC_RECV, 1))
		return handle_packet(xport, slab->data, wc->byte_len, wc->qp_num);
	return wc->opcode != VERVE_NET_WC_RECV_IMM || handle_write(xport, wc);
}

bool verve_dispatch_fill(struct verve_xport *xport)
{
	struct verve_recv_batch *batch = &xport->batch;

	batch->at = 0;
	batch->count = verve_net_cq_poll(xport->recv_cq, xport->attr.rx_limit, batch->wc);
	if (batch->count > 0) {
		verve_rx_buffers_count(xport, batch->count);
		return true;
	}
	if (__builtin_expect(batch->count < 0, 0))
		verve_failure_tell(xport, -batch->count);
	batch->count = 0;
	/*
	 * After a failure to post, the device may have no buffer left. Then no packet arrives that
	 * would cause the next attempt, so it is made here.
	 */
	if (__builtin_expect(xport->rx_refused, 0))
		refill(xport, xport->rx_batch);
	return false;
}

enum verve_dispatch_result verve_dispatch_handle(struct verve_xport *xport)
{
	struct verve_recv_batch *batch = &xport->batch;
	int end = batch->at + VERVE_POLL_BATCH;

	if (end > batch->count)
		end = batch->count;
	while (batch->at < end) {
		const struct verve_net_wc *wc = &batch->wc[batch->at++];
		struct verve_slab *slab = (struct verve_slab *)(uintptr_t)wc->wr_id;

		if (!wc->status && !handle(xport, slab, wc)) {
			batch->at--;
			return VERVE_DISPATCH_STALLED;
		}
		verve_rx_buffers_take_back(xport, slab);
		xport->handled++;
	}
	verve_rx_buffers_turn(xport);
	if (xport->rx_free_count >= xport->rx_batch)
		refill(xport, xport->rx_batch);
	return VERVE_DISPATCH_SOME;
}

bool verve_dispatch_drain(struct verve_xport *xport)
{
	uint64_t end = xport->handled + xport->rx_count;
	enum verve_dispatch_result result = VERVE_DISPATCH_SOME;

	while (result == VERVE_DISPATCH_SOME && xport->handled < end)
		result = verve_dispatch_poll(xport);
	return result != VERVE_DISPATCH_STALLED;
}
