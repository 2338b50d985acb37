/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* comp: completions, successful or not, in one shape, and bounded waiting for them. */
#ifndef FABTESTS_COMP_H
#define FABTESTS_COMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include "common/node.h"

/* Fields that the queue's format does not carry are zero; src is only set by comp_read_from. */
struct comp {
	void *context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src;
	int err; /* positive FI errno; 0 for success */
	size_t olen;
	int prov_errno;
	const char *reason; /* of an error: err_data, or ""; until this thread's next error */
};

/* Reads one; returns whether there was one. A code that is neither ends the program. */
bool comp_read(struct node *node, struct fid_cq *cq, struct comp *comp);
bool comp_read_from(struct node *node, struct fid_cq *cq, struct comp *comp);
/* The same, but sleeps so long at most if there is none; the queue has a wait object. */
bool comp_nap(struct node *node, struct fid_cq *cq, int milliseconds, struct comp *comp);
/* Waits for one, as -c says; ends the program when nothing comes within -T seconds. */
void comp_wait(struct node *node, struct fid_cq *cq, struct comp *comp);
void comp_wait_from(struct node *node, struct fid_cq *cq, struct comp *comp);

/* Waits for one that must be a success with this context; checks it. */
void comp_expect(struct node *node, struct fid_cq *cq, void *context, struct comp *comp);
/* Waits for one that must be this error (positive) with this context; checks it. */
void comp_expect_error(struct node *node, struct fid_cq *cq, void *context, int err,
		       struct comp *comp);
/* A check that the queue is empty now. */
void comp_expect_none(struct node *node, struct fid_cq *cq);

#endif
