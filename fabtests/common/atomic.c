/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* atomic: the calls, the elements, the model. */
#include <complex.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "common/atomic.h"
#include "common/check.h"
#include "common/clock.h"
#include "common/comp.h"
#include "common/env.h"

uint64_t atomic_family(enum atomic_call call)
{
	if (call >= ATOMIC_COMPARE)
		return FI_COMPARE_ATOMIC;
	return call >= ATOMIC_FETCH ? FI_FETCH_ATOMIC : 0;
}

int atomic_valid(struct node *node, enum atomic_call call, enum fi_datatype datatype, enum fi_op op,
		 size_t *count)
{
	switch (atomic_family(call)) {
	case FI_COMPARE_ATOMIC:
		return fi_compare_atomicvalid(node->ep, datatype, op, count);
	case FI_FETCH_ATOMIC:
		return fi_fetch_atomicvalid(node->ep, datatype, op, count);
	default:
		return fi_atomicvalid(node->ep, datatype, op, count);
	}
}

static void split(struct fi_ioc ioc[2], const void *array, const struct atomic *a, size_t first)
{
	ioc[0] = (struct fi_ioc){ (void *)array, first };
	ioc[1] = (struct fi_ioc){ (char *)array + first * atomic_size(a->datatype),
				  a->count - first };
}

/* The calls that take lists; each list is cut elsewhere. */
static ssize_t try_lists(struct node *node, const struct atomic *a)
{
	size_t third = a->count / 3, half = a->count / 2, size = atomic_size(a->datatype);
	struct fi_ioc buf[2], compare[2], result[2];
	struct fi_rma_ioc remote[2] = {
		{ a->remote_addr, half, a->key },
		{ a->remote_addr + half * size, a->count - half, a->key },
	};
	struct fi_msg_atomic msg = {
		.msg_iov = buf, .iov_count = 2, .addr = a->addr, .rma_iov = remote,
		.rma_iov_count = 2, .datatype = a->datatype, .op = a->op, .context = a->context,
	};

	split(buf, a->buf, a, third);
	split(compare, a->compare, a, half);
	split(result, a->result, a, a->count - third);
	switch (a->call) {
	case ATOMIC_V:
		return fi_atomicv(node->ep, buf, NULL, 2, a->addr, a->remote_addr, a->key,
				  a->datatype, a->op, a->context);
	case ATOMIC_MSG:
		return fi_atomicmsg(node->ep, &msg, a->flags);
	case ATOMIC_FETCHV:
		return fi_fetch_atomicv(node->ep, buf, NULL, 2, result, NULL, 2, a->addr,
					a->remote_addr, a->key, a->datatype, a->op, a->context);
	case ATOMIC_FETCHMSG:
		return fi_fetch_atomicmsg(node->ep, &msg, result, NULL, 2, a->flags);
	case ATOMIC_COMPAREV:
		return fi_compare_atomicv(node->ep, buf, NULL, 2, compare, NULL, 2, result, NULL, 2,
					  a->addr, a->remote_addr, a->key, a->datatype, a->op,
					  a->context);
	default:
		return fi_compare_atomicmsg(node->ep, &msg, compare, NULL, 2, result, NULL, 2,
					    a->flags);
	}
}

ssize_t atomic_try(struct node *node, const struct atomic *a)
{
	switch (a->call) {
	case ATOMIC_PLAIN:
		return fi_atomic(node->ep, a->buf, a->count, NULL, a->addr, a->remote_addr, a->key,
				 a->datatype, a->op, a->context);
	case ATOMIC_INJECT:
		return fi_inject_atomic(node->ep, a->buf, a->count, a->addr, a->remote_addr, a->key,
					a->datatype, a->op);
	case ATOMIC_FETCH:
		return fi_fetch_atomic(node->ep, a->buf, a->count, NULL, a->result, NULL, a->addr,
				       a->remote_addr, a->key, a->datatype, a->op, a->context);
	case ATOMIC_COMPARE:
		return fi_compare_atomic(node->ep, a->buf, a->count, NULL, a->compare, NULL,
					 a->result, NULL, a->addr, a->remote_addr, a->key,
					 a->datatype, a->op, a->context);
	default:
		return try_lists(node, a);
	}
}

ssize_t atomic_post(struct node *node, const struct atomic *atomic)
{
	uint64_t end = env_deadline(node->env);
	unsigned turns = 0;
	ssize_t ret;

	while ((ret = atomic_try(node, atomic)) == -FI_EAGAIN) {
		env_progress(node->env, turns++);
		if (clock_now() > end)
			check_fatal("an atomic says -FI_EAGAIN for %u s", node->env->opts.timeout);
	}
	return ret;
}

void atomic_run(struct node *node, const struct atomic *atomic)
{
	struct comp comp;

	REQUIRE_RET(atomic_post(node, atomic), 0);
	if (atomic->call == ATOMIC_INJECT)
		return;
	comp_expect(node, node->txcq, atomic->context, &comp);
	if (node->cq_format >= FI_CQ_FORMAT_MSG)
		CHECK_EQ(comp.flags & (FI_ATOMIC | FI_RMA | FI_READ | FI_WRITE | FI_SEND | FI_RECV),
			 FI_ATOMIC | (atomic_family(atomic->call) ? FI_READ : FI_WRITE));
}

size_t atomic_size(enum fi_datatype datatype)
{
	static const size_t sizes[ATOMIC_DATATYPES] = {
		[FI_INT8] = 1, [FI_UINT8] = 1, [FI_INT16] = 2, [FI_UINT16] = 2, [FI_INT32] = 4,
		[FI_UINT32] = 4, [FI_INT64] = 8, [FI_UINT64] = 8, [FI_INT128] = 16,
		[FI_UINT128] = 16, [FI_FLOAT] = sizeof(float), [FI_DOUBLE] = sizeof(double),
		[FI_LONG_DOUBLE] = sizeof(long double),
		[FI_FLOAT_COMPLEX] = sizeof(float complex),
		[FI_DOUBLE_COMPLEX] = sizeof(double complex),
		[FI_LONG_DOUBLE_COMPLEX] = sizeof(long double complex),
	};

	return (size_t)datatype < ATOMIC_DATATYPES ? sizes[datatype] : 0;
}

/* Complex numbers have no imaginary part here: only the first half of an element is not 0. */
void atomic_put(void *array, enum fi_datatype datatype, size_t index, long value)
{
	char *at = (char *)array + index * atomic_size(datatype);
	long double ld = value;
	double d = (double)value;
	float f = (float)value;

	memset(at, 0, atomic_size(datatype));
	switch (datatype) {
	case FI_FLOAT:
	case FI_FLOAT_COMPLEX:
		memcpy(at, &f, sizeof(f));
		break;
	case FI_DOUBLE:
	case FI_DOUBLE_COMPLEX:
		memcpy(at, &d, sizeof(d));
		break;
	case FI_LONG_DOUBLE:
	case FI_LONG_DOUBLE_COMPLEX:
		memcpy(at, &ld, sizeof(ld));
		break;
	default:
		memcpy(at, &value, atomic_size(datatype) < 8 ? atomic_size(datatype) : 8);
		break;
	}
}

long atomic_get(const void *array, enum fi_datatype datatype, size_t index)
{
	const char *at = (const char *)array + index * atomic_size(datatype);
	long double ld = 0;
	long value = 0;
	double d = 0;
	float f = 0;

	switch (datatype) {
	case FI_FLOAT:
	case FI_FLOAT_COMPLEX:
		memcpy(&f, at, sizeof(f));
		return (long)f;
	case FI_DOUBLE:
	case FI_DOUBLE_COMPLEX:
		memcpy(&d, at, sizeof(d));
		return (long)d;
	case FI_LONG_DOUBLE:
	case FI_LONG_DOUBLE_COMPLEX:
		memcpy(&ld, at, sizeof(ld));
		return (long)ld;
	default:
		memcpy(&value, at, atomic_size(datatype) < 8 ? atomic_size(datatype) : 8);
		return value;
	}
}

long atomic_model(enum fi_op op, long value, long operand, long compare)
{
	switch (op) {
	case FI_MIN:
		return operand < value ? operand : value;
	case FI_MAX:
		return operand > value ? operand : value;
	case FI_SUM:
		return value + operand;
	case FI_PROD:
		return value * operand;
	case FI_LOR:
		return value || operand;
	case FI_LAND:
		return value && operand;
	case FI_BOR:
		return value | operand;
	case FI_BAND:
		return value & operand;
	case FI_LXOR:
		return !value != !operand;
	case FI_BXOR:
		return value ^ operand;
	case FI_ATOMIC_READ:
		return value;
	case FI_ATOMIC_WRITE:
		return operand;
	case FI_CSWAP:
		return compare == value ? operand : value;
	case FI_CSWAP_NE:
		return compare != value ? operand : value;
	case FI_CSWAP_LE:
		return compare <= value ? operand : value;
	case FI_CSWAP_LT:
		return compare < value ? operand : value;
	case FI_CSWAP_GE:
		return compare >= value ? operand : value;
	case FI_CSWAP_GT:
		return compare > value ? operand : value;
	case FI_MSWAP:
		return (operand & compare) | (value & ~compare);
	default:
		check_fatal("no model of operation %d", (int)op);
	}
}
