/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Staged registration: memory of one long piece that no registration in the cache covers is cut
 * into a few pieces, each longer than the one before. The first one is registered, and its bytes
 * move while the next one is registered, and so on. Registering megabytes takes about as long as a
 * fast wire takes to carry them, so one message alone may be twice as fast. Memory that stays
 * registered is not cut. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_STAGED_H
#define VERVE_XPORT_STAGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct verve_memory;
struct verve_op;
struct verve_xport;

/*
 * As verve_memory_register, of memory whose first len bytes are to move, offset of which have been
 * posted. Memory that is cut ends behind len bytes; it has regions up to verve_staged_ready, which
 * is beyond offset now. alone: nothing else would move meanwhile, so that cutting pays. An error:
 * offset is what verve_staged_ready says, and the requests of these bytes may be under way.
 */
int verve_staged_register(struct verve_xport *xport, struct verve_op *op, size_t len,
			  uint64_t offset, unsigned access, bool alone);
/*
 * The same for memory that the peer is to read, of all its len bytes: as verve_memory_offer. Of
 * memory that is cut, the first piece has a region, and no other one yet.
 */
int verve_staged_offer(struct verve_xport *xport, struct verve_op *op, size_t len,
		       bool binds, bool alone);
/*
 * The next stage gets a region of its own. 0, also if all have one; or an error of
 * verve_memory_register_piece.
 */
int verve_staged_next(struct verve_xport *xport, struct verve_op *op, unsigned access);
/* How many stages have regions, from the first one on, and how many bytes that is. */
uint32_t verve_staged_count(const struct verve_memory *memory);
uint64_t verve_staged_ready(const struct verve_memory *memory);
/* True if the memory has stages without a region. */
bool verve_staged_is_partial(const struct verve_memory *memory);

#endif
