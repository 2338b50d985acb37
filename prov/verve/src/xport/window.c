/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Windows for a peer, at their queue pair: binding, ending, freeing. */
#include "xport/window.h"

#include "mr/cache.h"
#include "mr/region.h"
#include "net/bind.h"
#include "xport/link.h"
#include "xport/memory.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/wire.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

/* The windows of the memory that are in this state; returns how many. */
static uint32_t windows_in_state(const struct verve_memory *memory,
				 enum verve_mr_peer_window_state state,
				 struct verve_mr_region *windows[VERVE_IOV_LIMIT])
{
	uint32_t count = 0;

	for (uint32_t i = 0; memory->owned >> i; i++)
		if (memory->owned & 1u << i && memory->region[i]->peer_window == state)
			windows[count++] = memory->region[i];
	return count;
}

/* True if count requests have room, one behind the other. control: as verve_link_has_room. */
static bool has_room_for(const struct verve_xport *xport, const struct verve_link *link,
			 uint32_t count, bool control)
{
	uint32_t reserve = control ? 1 : VERVE_LINK_RESERVE, more = count - 1;
	uint32_t has = link->produced - link->retired;

	/* A posted request adds one to has, and takes one of the queue's free places. */
	return has + more < VERVE_LINK_REQUESTS - reserve &&
	       2 * more < verve_xport_wr_share(xport, has, reserve);
}

/* The slot is of the kind NOTHING: another queue pair has no use for the request. */
static int post_bind(struct verve_xport *xport, struct verve_link *link,
		     struct verve_mr_region *window)
{
	struct verve_net_bind bind;
	struct verve_net_wr wr = {.op = VERVE_NET_BIND, .rkey = window->rkey, .bind = &bind};
	struct verve_slot slot = {.kind = VERVE_SLOT_NOTHING, .verb = VERVE_NET_BIND};
	int ret;

	verve_mr_peer_window_describe(window, &bind);
	ret = verve_link_post_slot(xport, link, &wr, &slot);
	/* A peer can fail its queue pair, which says nothing of windows. */
	if (ret && ret != -FI_ENOTCONN)
		verve_mr_peer_windows_refused(&xport->attr.mr_cache->peer_windows);
	if (!ret)
		verve_mr_peer_window_posted(window);
	return ret;
}

bool verve_window_offer(struct verve_xport *xport, struct verve_link *link,
			struct verve_memory *memory, struct verve_wire_packet *packet)
{
	struct verve_mr_region *windows[VERVE_IOV_LIMIT];
	uint32_t count = windows_in_state(memory, VERVE_MR_PEER_FRESH, windows);
	struct verve_outgoing out;
	size_t len;

	if (!count)
		return verve_link_send(xport, link, packet, NULL);
	/* The windows were meant for a link that has ended: the next offer has other regions. */
	if (!link->bound_keys) {
		verve_memory_unregister(xport, memory);
		return false;
	}
	if (!has_room_for(xport, link, count + 1, false))
		return false;
	packet->flags |= VERVE_WIRE_BOUND;
	/* The packet's place comes first: a bound window without an offer would be useless. */
	len = verve_link_encode(xport, link, packet, &out);
	if (!len)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (post_bind(xport, link, windows[i])) {
			if (out.slab)
				verve_slab_free(&xport->tx_slabs, out.slab);
			return false;
		}
	return !verve_link_post_packet(xport, link, &out, len, false, NULL);
}

bool verve_window_close(struct verve_xport *xport, struct verve_link *link, struct verve_op *op)
{
	struct verve_memory *memory = verve_op_memory(op);
	struct verve_mr_region *windows[VERVE_IOV_LIMIT];
	uint32_t count = windows_in_state(memory, VERVE_MR_PEER_BOUND, windows);

	if (!count)
		return false;
	if (!verve_link_is_open(link) || !has_room_for(xport, link, count, true)) {
		/*
		 * An honest peer sends FIN after it has read, so the bind is executed. A hostile
		 * one may send FIN before.
		 */
		link->freed_windows = true;
		for (uint32_t i = 0; i < count; i++)
			verve_mr_peer_window_free(&xport->attr.mr_cache->peer_windows, windows[i]);
		return false;
	}
	verve_op_set_state(op, VERVE_OP_SENT);
	for (uint32_t i = 0; i < count; i++) {
		bool last = i + 1 == count;
		struct verve_net_wr wr = {
			.op = VERVE_NET_INVALIDATE,
			.flags = last ? VERVE_NET_SIGNALED : 0,
			.rkey = windows[i]->rkey,
		};
		struct verve_slot slot = {
			.op = last ? op : NULL,
			.kind = VERVE_SLOT_NOTHING,
			.verb = VERVE_NET_INVALIDATE,
			.tell = last,
		};

		verve_mr_peer_window_closing(windows[i]);
		if (verve_link_post_slot(xport, link, &wr, &slot))
			break;
	}
	return true;
}

void verve_window_ended(struct verve_memory *memory)
{
	struct verve_mr_region *windows[VERVE_IOV_LIMIT];
	uint32_t count = windows_in_state(memory, VERVE_MR_PEER_CLOSING, windows);

	for (uint32_t i = 0; i < count; i++)
		verve_mr_peer_window_ended(windows[i]);
}
