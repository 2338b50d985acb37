/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory: this side's memory of an operation: what the application named, the registrations that open it to the
 * device, or the slab that stands in for it. The engine's lock protects it.
 */
#ifndef VERVE_XPORT_MEMORY_H
#define VERVE_XPORT_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "xport/op.h"
#include "xport/request.h"

struct verve_mr_region;
struct verve_slab;
struct verve_xport;

/* Zeroed at first up to iov (verve_op_class.cleared); the lists are valid as far as iov_count says. */
struct verve_memory {
	struct verve_slab *slab; /* stands in for iov when not NULL; goes back with the operation */
	uint32_t iov_count;
	uint32_t owned; /* bit i: region[i] came from the cache and goes back to it */
	struct iovec iov[VERVE_IOV_LIMIT];
	struct verve_mr_region *region[VERVE_IOV_LIMIT]; /* NULL: not registered */
};

/* The memory of an operation whose class has one. */
static inline struct verve_memory *verve_op_memory(struct verve_op *op)
{
	return (struct verve_memory *) ((char *) op + op->cls->memory_at);
}

/* Copies what a request names; registers nothing. Returns the bytes of all pieces. */
size_t verve_memory_fill(struct verve_memory *memory, const struct verve_request *request);
/*
 * Every piece gets a region: the application's descriptor, or a region from the cache. With
 * REMOTE_READ it is from the cache in any case: the peer is told the region's key, and is to reach
 * this message and no more. access: VERVE_NET_*. -FI_ENOMEM, or what registration said; the memory
 * has no region from the cache then.
 */
int verve_memory_register(struct verve_xport *xport, struct verve_memory *memory, unsigned access);
/* Gives cached regions back; harmless if there are none. No request may use them any more. */
void verve_memory_unregister(struct verve_xport *xport, struct verve_memory *memory);
/* Gives slab and cached regions back; harmless if there are none. */
void verve_memory_release(struct verve_xport *xport, struct verve_memory *memory);

/* What every request leaves in its operation: context, length, memory. */
void verve_op_fill(struct verve_op *op, const struct verve_request *request);
/* For a class whose operations have nothing to give back but their memory. */
void verve_op_release_memory(struct verve_xport *xport, struct verve_op *op);

#endif
