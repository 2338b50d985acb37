/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * atomic: the ten atomic calls behind one description, arrays of elements of any datatype, and a
 * model of each operation. Elements are small whole numbers: every datatype holds them, and the
 * results of all operations on them.
 */
#ifndef FABTESTS_ATOMIC_H
#define FABTESTS_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fi_atomic.h>

#include "common/node.h"

#define ATOMIC_DATATYPES 16       /* FI_INT8 to FI_UINT128 */
#define ATOMIC_OPS (FI_MSWAP + 1) /* FI_MIN to FI_MSWAP */

enum atomic_call {
	ATOMIC_PLAIN,
	ATOMIC_V,
	ATOMIC_MSG,
	ATOMIC_INJECT,
	ATOMIC_FETCH,
	ATOMIC_FETCHV,
	ATOMIC_FETCHMSG,
	ATOMIC_COMPARE,
	ATOMIC_COMPAREV,
	ATOMIC_COMPAREMSG,
	ATOMIC_CALLS,
};

struct atomic {
	enum atomic_call call;
	enum fi_datatype datatype;
	enum fi_op op;
	size_t count; /* elements */
	const void *buf, *compare;
	void *result;
	fi_addr_t addr;
	uint64_t remote_addr;
	uint64_t key;
	uint64_t flags; /* of the msg-forms */
	void *context;
};

/* FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC or 0. */
uint64_t atomic_family(enum atomic_call call);
/* fi_*atomicvalid of the call: 0 and the most elements of one call, or a negative error. */
int atomic_valid(struct node *node, enum atomic_call call, enum fi_datatype datatype, enum fi_op op,
		 size_t *count);

/* The v- and msg-forms cut the lists into two segments. */
ssize_t atomic_try(struct node *node, const struct atomic *atomic);
/* Repeats it while it says -FI_EAGAIN, making progress; bounded by -T; returns its code. */
ssize_t atomic_post(struct node *node, const struct atomic *atomic);
/* Posts and waits for its completion (if there is one), checking it. */
void atomic_run(struct node *node, const struct atomic *atomic);

size_t atomic_size(enum fi_datatype datatype);
void atomic_put(void *array, enum fi_datatype datatype, size_t index, long value);
long atomic_get(const void *array, enum fi_datatype datatype, size_t index);
/* The target's value after the operation; value, operand and compare are 0 to 10. */
long atomic_model(enum fi_op op, long value, long operand, long compare);

#endif
