/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transfer: moves bytes between an operation's memory and the peer's memory by RDMA, in requests
 * that are split at the segments of both sides, at the device's longest request, and where a read
 * would have more pieces here than the device takes. A transfer goes on where room ran out.
 *
 * Every operation whose class has a transfer has a memory, too. Memory that cannot be registered
 * moves through the operation's slab, in pieces of at most the slab's size. The engine's lock
 * protects everything here.
 */
#ifndef VERVE_XPORT_TRANSFER_H
#define VERVE_XPORT_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "net/qp.h"
#include "xport/op.h"
#include "xport/packet.h"

struct verve_link;
struct verve_net_port;
struct verve_slot;
struct verve_xport;

/* Copies through a slab. NONE: no slab. OUT: from memory to slab. IN: from slab to memory. */
enum verve_transfer_way { VERVE_TRANSFER_NONE, VERVE_TRANSFER_OUT, VERVE_TRANSFER_IN };

/* The peer's memory, and how far the transfer has come. */
struct verve_transfer {
	uint64_t len;	 /* bytes to move */
	uint64_t offset; /* bytes posted */
	uint64_t unoffered; /* bytes at the end for which remote has no segments yet */
	uint64_t base;	 /* offset at which the piece in the operation's slab begins */
	uint64_t compare_add, swap; /* operands of an atomic of the device */
	uint32_t imm;	 /* of a write with immediate data, in network byte order */
	uint32_t remote_count;
	uint8_t way;	 /* enum verve_transfer_way */
	bool rkeys;	 /* the segments' keys are rkeys, even if the peer chooses its keys */
	struct verve_wire_segment remote[VERVE_WIRE_SEGMENTS]; /* remote_count are valid */
};

/* Makes it a transfer of no bytes. Sets all but remote. */
static inline void verve_transfer_init(struct verve_transfer *transfer)
{
	memset(transfer, 0, offsetof(struct verve_transfer, remote));
}

/* The transfer of an operation whose class has one. */
static inline struct verve_transfer *verve_op_transfer(struct verve_op *op)
{
	return (struct verve_transfer *)((char *)op + op->cls->move_at);
}

/*
 * Posts as much of the transfer as there is room for. verb: an RDMA read or write, a write with
 * immediate data if verve_transfer_is_one_request, or an atomic of 8 bytes. tell: the end of the
 * last request calls the class's done; the end of a piece in a slab does in any case. A short
 * request among many others tells, but does not ask for a completion of its own: a later one
 * retires it (verve_link_may_share). VERVE_DONE: all bytes are posted that can be: offset may be
 * before len if the memory is staged, or bytes are unoffered. VERVE_LATER: a part is not posted
 * yet, because the queue has no room, or the slab holds a piece that is under way. VERVE_BROKE: the
 * link broke, and has the operation. Unless len is 0, there is a byte to post.
 */
enum verve_outcome verve_transfer_post(struct verve_xport *xport, struct verve_link *link,
					struct verve_op *op, enum verve_net_wr_op verb, bool tell);

/* Copies the next piece into the operation's slab, if the way is OUT. The operation has a slab. */
void verve_transfer_load(const struct verve_xport *xport, struct verve_op *op);
/*
 * All requests posted so far have ended. If the way is IN, copies the piece from the slab to the
 * memory. True: the transfer is complete. False: the next piece is loaded, and is to be posted.
 */
bool verve_transfer_unload(const struct verve_xport *xport, struct verve_op *op);
/*
 * True if the piece in the slab is posted and is not the last one: the slab is not free for the
 * next piece.
 */
bool verve_transfer_is_under_way(const struct verve_xport *xport, struct verve_op *op);

/*
 * Bytes of one RDMA read on this port, at most: FI_VERVE_READ_SIZE, or what the device does well,
 * and no more than its longest request. Constant once the configuration is read; any thread.
 */
size_t verve_transfer_read_size(const struct verve_net_port *port);

/* True if the transfer, of which nothing is posted, will be one request, and has bytes to move. */
bool verve_transfer_is_one_request(const struct verve_xport *xport, const struct verve_link *link,
				   struct verve_op *op);

/* Bytes of one request of a transfer, at most: of a read verve_transfer_read_size. Any thread. */
size_t verve_transfer_longest(const struct verve_net_port *port, enum verve_net_wr_op verb);

/* True if a request of so many bytes carries them itself: their memory needs no registration. */
bool verve_transfer_is_inline(const struct verve_link *link, enum verve_net_wr_op verb,
			      size_t len);

/*
 * Posts a transfer that is one request: one piece on each side, with bytes to move, no more than
 * verve_transfer_longest, and a key that is an rkey. verb: VERVE_NET_READ or VERVE_NET_WRITE. The
 * piece has its region, unless it goes inline. The link has room. Its end calls the class's done,
 * as of verve_transfer_post. If the link breaks, it has the operation.
 */
void verve_transfer_post_whole(struct verve_xport *xport, struct verve_link *link,
			       struct verve_op *op, enum verve_net_wr_op verb);

/*
 * Posts the request that the slot describes, also a second time (replay). The link has room; on a
 * repetition its inline_size is that of the first post. Negative FI errno: the link broke.
 */
int verve_transfer_post_slot(struct verve_xport *xport, struct verve_link *link,
			     const struct verve_slot *slot);

#endif
