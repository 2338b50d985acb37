/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rma: registered regions, their addresses and keys for the other side, and the nine RMA calls
 * behind one description. The v- and msg-forms split the local buffer over segments.
 */
#ifndef FABTESTS_RMA_H
#define FABTESTS_RMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>

#include "common/comp.h"
#include "common/node.h"

/* len bytes of its own, guarded, registered for access. */
struct region {
	struct fid_mr *mr;
	void *buf;
	size_t len;
	void *desc;
};

/* Address and key of the other half's region. */
struct remote {
	uint64_t addr;
	uint64_t key;
	uint64_t len;
};

void region_open(struct node *node, struct region *region, size_t len, uint64_t access);
void region_close(struct region *region);
/* Sends the other half our region's address and key, and returns theirs. Both sides call it. */
struct remote region_exchange(struct node *node, const struct region *region);
/* How a node of this process addresses it. */
struct remote region_remote(const struct node *node, const struct region *region);

/* A node, its region that the other half accesses, and the other half's. */
struct rma_ends {
	struct node node;
	struct region target;
	struct remote remote;
};

/* Both sides call both functions. attr may be NULL; len and access are of the region. */
void rma_ends_open(struct rma_ends *ends, struct env *env, const struct node_attr *attr, size_t len,
		   uint64_t access);
void rma_ends_close(struct rma_ends *ends);

enum rma_op {
	RMA_WRITE,
	RMA_WRITEV,
	RMA_WRITEMSG,
	RMA_INJECT_WRITE,
	RMA_WRITEDATA,
	RMA_INJECT_WRITEDATA,
	RMA_READ,
	RMA_READV,
	RMA_READMSG,
	RMA_OPS,
};

struct rma {
	enum rma_op op;
	void *buf;
	size_t len;
	void *desc;
	fi_addr_t addr;
	uint64_t remote_addr;
	uint64_t key;
	uint64_t data;
	uint64_t flags; /* of the msg-forms */
	void *context;
};

const char *rma_name(enum rma_op op);
bool rma_is_read(enum rma_op op);
bool rma_is_inject(enum rma_op op);
bool rma_has_data(const struct rma *rma);

ssize_t rma_try(struct node *node, const struct rma *rma);
/* Repeats it while it says -FI_EAGAIN, making progress; bounded by -T; returns its code. */
ssize_t rma_post(struct node *node, const struct rma *rma);
/* Posts and waits for its completion (if there is one), checking it. */
void rma_run(struct node *node, const struct rma *rma);

#endif
