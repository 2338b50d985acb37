/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory: this side's memory of an operation: the application's pieces, the registrations that open
 * them to the device, or the slab that takes their place. The engine's lock protects it.
 */
#ifndef VERVE_XPORT_MEMORY_H
#define VERVE_XPORT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "xport/op.h"
#include "xport/packet.h"
#include "xport/request.h"

struct verve_errand;
struct verve_mr_region;
struct verve_net_sge;
struct verve_slab;
struct verve_xport;

/*
 * A new one is zeroed up to iov (verve_op_class.cleared, or verve_memory_init). The first iov_count
 * entries of iov and region are valid.
 */
struct verve_memory {
	struct verve_slab *slab; /* the device uses it in place of iov; NULL: it uses iov */
	uint16_t iov_count; /* so short that staged has room: a receive fills whole cache lines */
	bool staged; /* one piece of the application's in several, for xport/staged.h */
	bool parted; /* an errand gives regions back that it had (xport/errand.h) */
	bool in_place; /* no errand gets regions for it, or gives them back */
	bool refused; /* -FI_ENOMEM: it gets no regions, and no try closes what others keep */
	uint8_t owned; /* bit i: region[i] came from the cache and goes back there */
	struct iovec iov[VERVE_IOV_LIMIT];
	struct verve_mr_region *region[VERVE_IOV_LIMIT]; /* NULL: not registered */
};

/* The memory of an operation whose class has one. */
static inline struct verve_memory *verve_op_memory(struct verve_op *op)
{
	return (struct verve_memory *)((char *)op + op->cls->memory_at);
}

/* A new memory without slab and pieces, where the class does not zero it. */
static inline void verve_memory_init(struct verve_memory *memory)
{
	memory->slab = NULL;
	memory->iov_count = 0;
	memory->staged = false;
	memory->parted = false;
	memory->in_place = false;
	memory->refused = false;
	memory->owned = 0;
}

/*
 * Copies the request's pieces and descriptors; registers nothing. The pieces' memory stays the
 * application's. Returns the bytes of all pieces.
 */
static inline size_t verve_memory_fill(struct verve_memory *memory,
				       const struct verve_request *request)
{
	size_t len = 0;

	memory->iov_count = request->iov_count;
	for (size_t i = 0; i < request->iov_count; i++) {
		memory->iov[i] = request->iov[i];
		memory->region[i] = request->desc ? request->desc[i] : NULL;
		len += request->iov[i].iov_len;
	}
	return len;
}

/*
 * True if the memory is one piece, and the application's descriptor opens it to the device. access:
 * as of verve_memory_register.
 */
bool verve_memory_is_described(const struct verve_memory *memory, unsigned access);
/*
 * Every piece of the operation's memory gets a region: the application's descriptor, or a region
 * from the cache. access: VERVE_NET_*, without remote access. -FI_EINPROGRESS: an errand gets them
 * (xport/errand.h): the operation is to stay QUEUED, and to call again. -FI_ENOMEM, also from then
 * on; or the error of the registration: the memory has no region from the cache then.
 */
int verve_memory_register(struct verve_xport *xport, struct verve_op *op, unsigned access);
/*
 * Every piece gets a region from the cache that the peer may read: it learns the key, and must
 * reach this message and no more. binds: the regions may be windows for a peer (xport/window.h).
 * Errors as verve_memory_register.
 */
int verve_memory_offer(struct verve_xport *xport, struct verve_op *op, bool binds);
/* The same two, if the cache has registrations, or makes them to keep them. Else -FI_ENOENT. */
int verve_memory_register_kept(struct verve_xport *xport, struct verve_op *op, unsigned access);
int verve_memory_offer_kept(struct verve_xport *xport, struct verve_op *op, bool binds);
/*
 * As verve_memory_register, for the first len bytes alone, if a registration costs less than a copy
 * of len bytes (mr/costs.h). -FI_ENOENT: it costs more, or none can be had; no piece has a region
 * from the cache then.
 */
int verve_memory_register_short(struct verve_xport *xport, struct verve_op *op, size_t len,
				unsigned access);
/* The one piece i gets a region for this use alone (verve_mr_cache_get_once). Errors likewise. */
int verve_memory_register_piece(struct verve_xport *xport, struct verve_op *op, uint32_t i,
				unsigned access);
/*
 * Fills in sge for len bytes of the pieces from offset on: iov_count entries at most. Returns how
 * many. is_inline: the processor copies the memory, so it needs no regions.
 */
uint32_t verve_memory_locate(const struct verve_memory *memory, size_t offset, size_t len,
			     bool is_inline, struct verve_net_sge *sge);
/* Bytes from offset on that so many pieces have, not counting those without bytes. */
size_t verve_memory_reach(const struct verve_memory *memory, size_t offset, uint32_t pieces);
/* What a peer that is to read piece i has to know of it. The piece has a region. */
struct verve_wire_segment verve_memory_segment(const struct verve_memory *memory, uint32_t i);
/* For verve_memory_unregister alone: there are some. */
void verve_memory_give_back(struct verve_xport *xport, struct verve_memory *memory);
/* Gives the regions from the cache back. Harmless if there are none. No request uses them. */
static inline void verve_memory_unregister(struct verve_xport *xport, struct verve_memory *memory)
{
	if (memory->owned)
		verve_memory_give_back(xport, memory);
}
/* For verve_memory_part alone: there is something to do. */
struct verve_errand *verve_memory_part_slowly(struct verve_xport *xport, struct verve_op *op);
/* As verve_errand_part, for an operation that has a memory. */
static inline struct verve_errand *verve_memory_part(struct verve_xport *xport,
						     struct verve_op *op)
{
	const struct verve_memory *memory = verve_op_memory(op);

	if (!memory->owned && !memory->parted && !(op->flags & VERVE_OP_ASKED))
		return NULL;
	return verve_memory_part_slowly(xport, op);
}
/*
 * Frees the windows for a peer of all operations in the queue (xport/window.h) that may be bound to
 * a queue pair in error, which is going to be closed.
 */
void verve_memory_free_windows(struct verve_xport *xport, const struct verve_op_queue *queue);
/* Gives the slab and the regions from the cache back. Harmless if there are none. */
void verve_memory_release(struct verve_xport *xport, struct verve_memory *memory);

/* Fills in context, length and memory from the request. The operation's class has a memory. */
static inline void verve_op_fill(struct verve_op *op, const struct verve_request *request)
{
	op->context = request->context;
	op->len = verve_memory_fill(verve_op_memory(op), request);
}

/*
 * verve_op_class.release, for operations that have nothing to give back but their memory; those
 * that have more call it, too.
 */
void verve_op_release_memory(struct verve_xport *xport, struct verve_op *op);

#endif
