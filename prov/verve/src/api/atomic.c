/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomics: fi_atomic(3), from each call's arguments to a request; and which atomics are valid. */
#include "api/atomic.h"

#include "api/attr.h"
#include "api/domain.h"
#include "api/ep.h"
#include "base/log.h"
#include "engine/engine.h"
#include "rma/atomic.h"
#include "rma/atomic_device.h"
#include "xport/open.h"
#include <rdma/fi_errno.h>

_Static_assert((int)VERVE_AMO_INT8 == FI_INT8 && (int)VERVE_AMO_UINT64 == FI_UINT64, "integers");
_Static_assert((int)VERVE_AMO_INT128 == FI_INT128 && (int)VERVE_AMO_UINT128 == FI_UINT128,
	       "long ones");
_Static_assert((int)VERVE_AMO_FLOAT == FI_FLOAT && (int)VERVE_AMO_DOUBLE == FI_DOUBLE, "real");
_Static_assert((int)VERVE_AMO_FLOAT_COMPLEX == FI_FLOAT_COMPLEX, "complex");
_Static_assert((int)VERVE_AMO_DOUBLE_COMPLEX == FI_DOUBLE_COMPLEX, "complex");
_Static_assert((int)VERVE_AMO_LONG_DOUBLE == FI_LONG_DOUBLE, "real");
_Static_assert((int)VERVE_AMO_LONG_DOUBLE_COMPLEX == FI_LONG_DOUBLE_COMPLEX, "complex");
_Static_assert((int)VERVE_AMO_MIN == FI_MIN && (int)VERVE_AMO_BXOR == FI_BXOR, "operations");
_Static_assert((int)VERVE_AMO_READ == FI_ATOMIC_READ && (int)VERVE_AMO_WRITE == FI_ATOMIC_WRITE,
	       "moves");
_Static_assert((int)VERVE_AMO_CSWAP == FI_CSWAP && (int)VERVE_AMO_MSWAP == FI_MSWAP, "swaps");

/* Flags of the msg calls that have a meaning here, or that may safely be ignored. */
static const uint64_t msg_flags = FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE |
				  FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_FENCE;

/* The most elements that one call takes. 0: there is no such operation. */
static size_t max_elements(const struct verve_domain *domain, enum verve_amo_form form,
			   enum fi_datatype datatype, enum fi_op op)
{
	size_t size = verve_amo_size(datatype);

	if (!verve_amo_is_valid(form, op, datatype))
		return 0;
	if (domain->device_atomics)
		return verve_atomic_device_has(form, (enum verve_amo_op)op,
					       (enum verve_amo_type)datatype);
	/* The number means FI_DIFF since version 2.0. */
	if ((int)op == VERVE_AMO_DIFF && FI_VERSION_LT(domain->api_version, FI_VERSION(2, 0)))
		return 0;
	return verve_atomic_count(form, size,
				  verve_xport_eager_size(domain->dev, verve_config.eager_size));
}

/*
 * Converts a list of elements to a list of bytes. Sets *total to the number of elements.
 * -FI_EINVAL: too many segments; -FI_EMSGSIZE: more than most elements.
 */
static int to_iov(const struct fi_ioc *ioc, size_t count, size_t size, size_t most,
		  struct iovec *iov, size_t *total)
{
	*total = 0;
	if (count > VERVE_IOV_LIMIT)
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (ioc[i].count > most - *total)
			return -FI_EMSGSIZE;
		iov[i] = (struct iovec){ioc[i].addr, ioc[i].count * size};
		*total += ioc[i].count;
	}
	return 0;
}

static int to_segments(const struct fi_rma_ioc *ioc, size_t count, size_t size, size_t most,
		       struct verve_wire_segment *segments, size_t *total)
{
	*total = 0;
	if (count < 1 || count > VERVE_WIRE_SEGMENTS)
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (ioc[i].count > most - *total)
			return -FI_EMSGSIZE;
		segments[i] =
			(struct verve_wire_segment){ioc[i].addr, ioc[i].count * size, ioc[i].key};
		*total += ioc[i].count;
	}
	return *total ? 0 : -FI_EINVAL;
}

/* The arguments of a call, whichever call it is. */
struct call {
	enum verve_amo_form form;
	const struct fi_msg_atomic *msg;
	const struct fi_ioc *compare, *result;
	size_t compare_count, result_count;
	uint32_t flags; /* VERVE_OP_* */
};

/* The lists of a call, converted to bytes; on the stack of the call. */
struct lists {
	struct iovec operand[VERVE_IOV_LIMIT], compare[VERVE_IOV_LIMIT], result[VERVE_IOV_LIMIT];
	struct verve_wire_segment remote[VERVE_WIRE_SEGMENTS];
};

static int convert(const struct call *call, size_t most, struct lists *lists)
{
	const struct fi_msg_atomic *msg = call->msg;
	size_t size = verve_amo_size(msg->datatype), total, operands, compares, results;
	size_t count = msg->op == FI_ATOMIC_READ ? 0 : msg->iov_count;
	int ret;

	ret = to_segments(msg->rma_iov, msg->rma_iov_count, size, most, lists->remote, &total);
	if (!ret)
		ret = to_iov(msg->msg_iov, count, size, most, lists->operand, &operands);
	if (!ret)
		ret = to_iov(call->compare, call->compare_count, size, most, lists->compare,
			     &compares);
	if (!ret)
		ret = to_iov(call->result, call->result_count, size, most, lists->result, &results);
	if (ret)
		return ret;
	if ((msg->op != FI_ATOMIC_READ && operands != total) ||
	    (call->form == VERVE_AMO_COMPARE && compares != total) ||
	    (call->form != VERVE_AMO_UPDATE && results != total))
		return -FI_EINVAL;
	if (call->flags & VERVE_OP_INJECT &&
	    (operands + compares) * size > verve_attr_inject_size())
		return -FI_EMSGSIZE;
	return 0;
}

/*
 * A device executes an atomic only at an address that is a multiple of the element's size, which is
 * 8 bytes.
 */
static bool is_aligned(const struct verve_domain *domain, const struct fi_msg_atomic *msg)
{
	for (size_t i = 0; domain->device_atomics && i < msg->rma_iov_count; i++)
		if (msg->rma_iov[i].addr % sizeof(uint64_t))
			return false;
	return true;
}

static int atomic_refuse(const struct verve_domain *domain)
{
	if (domain->device_atomics)
		VERVE_WARN(EP_DATA,
			   "FI_VERVE_ATOMICS=device leaves FI_SUM, FI_ATOMIC_READ (fetched) and "
			   "FI_CSWAP of one aligned 64-bit integer; unset it at both ends for all "
			   "others\n");
	return -FI_EOPNOTSUPP;
}

static ssize_t call_start(struct fid_ep *fid, const struct call *call)
{
	struct verve_ep *ep = verve_ep_from_fid(fid);
	const struct fi_msg_atomic *msg = call->msg;
	struct lists lists;
	struct verve_request request = {
		.iov = lists.operand,
		.iov_count = msg->op == FI_ATOMIC_READ ? 0 : msg->iov_count,
		.addr = msg->addr,
		.context = msg->context,
		.flags = call->flags,
		.remote = lists.remote,
		.remote_count = msg->rma_iov_count,
	};
	struct verve_atomic_request atomic = {
		.form = call->form,
		.op = (enum verve_amo_op)msg->op,
		.type = (enum verve_amo_type)msg->datatype,
		.compare = lists.compare,
		.compare_count = call->compare_count,
		.result = lists.result,
		.result_count = call->result_count,
	};
	size_t most;
	int ret;

	if (!ep->engine)
		return -FI_EOPBADSTATE;
	most = max_elements(ep->domain, call->form, msg->datatype, msg->op);
	if (!most || !is_aligned(ep->domain, msg))
		return atomic_refuse(ep->domain);
	ret = convert(call, most, &lists);
	if (ret)
		return ret;
	ret = verve_atomic(verve_engine_lock(ep->engine), &request, &atomic);
	verve_engine_unlock(ep->engine);
	return ret;
}

static size_t sum_of(const struct fi_ioc *ioc, size_t count)
{
	size_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += ioc[i].count;
	return sum;
}

/*
 * The target of the calls without flags. They have one remote segment, as long as the local
 * segments together.
 */
struct target {
	fi_addr_t dest;
	uint64_t addr, key;
	enum fi_datatype datatype;
	enum fi_op op;
};

static ssize_t call_start_plain(struct fid_ep *fid, struct call *call, const struct fi_ioc *iov,
				size_t count, const struct target *target, void *context)
{
	bool reads = target->op == FI_ATOMIC_READ && call->form == VERVE_AMO_FETCH;
	struct fi_rma_ioc remote = {
		.addr = target->addr,
		.count = reads ? sum_of(call->result, call->result_count) : sum_of(iov, count),
		.key = target->key,
	};
	struct fi_msg_atomic msg = {
		.msg_iov = iov, .iov_count = count, .addr = target->dest, .rma_iov = &remote,
		.rma_iov_count = 1, .datatype = target->datatype, .op = target->op,
		.context = context,
	};

	call->msg = &msg;
	return call_start(fid, call);
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
			     size_t count, fi_addr_t dest, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct target target = {dest, addr, key, datatype, op};
	struct call call = {.form = VERVE_AMO_UPDATE, .flags = verve_ep_from_fid(fid)->tx_flags};

	(void)desc; /* operands are copied: no descriptor is needed */
	return call_start_plain(fid, &call, iov, count, &target, context);
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc,
			    fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			    enum fi_op op, void *context)
{
	struct fi_ioc iov = {(void *)buf, count};

	return atomic_writev(fid, &iov, &desc, 1, dest, addr, key, datatype, op, context);
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct call call = {
		.form = VERVE_AMO_UPDATE, .msg = msg,
		.flags = verve_ep_tx_flags(verve_ep_from_fid(fid), flags),
	};

	return flags & ~msg_flags ? -FI_EBADFLAGS : call_start(fid, &call);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t dest,
			     uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	struct fi_ioc iov = {(void *)buf, count};
	struct target target = {dest, addr, key, datatype, op};
	struct call call = {.form = VERVE_AMO_UPDATE, .flags = VERVE_OP_INJECT};

	return call_start_plain(fid, &call, &iov, 1, &target, NULL);
}

static ssize_t fetchv(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
		      struct fi_ioc *resultv, void **result_desc, size_t result_count,
		      fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
		      enum fi_op op, void *context)
{
	struct target target = {dest, addr, key, datatype, op};
	struct call call = {
		.form = VERVE_AMO_FETCH, .result = resultv, .result_count = result_count,
		.flags = verve_ep_from_fid(fid)->tx_flags,
	};

	(void)desc, (void)result_desc;
	return call_start_plain(fid, &call, iov, count, &target, context);
}

static ssize_t fetch(struct fid_ep *fid, const void *buf, size_t count, void *desc, void *result,
		     void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
		     enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_ioc iov = {(void *)buf, count}, resultv = {result, count};

	return fetchv(fid, &iov, &desc, 1, &resultv, &result_desc, 1, dest, addr, key, datatype, op,
		      context);
}

static ssize_t fetchmsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
			void **result_desc, size_t result_count, uint64_t flags)
{
	struct call call = {
		.form = VERVE_AMO_FETCH,
		.msg = msg,
		.result = resultv,
		.result_count = result_count,
		.flags = verve_ep_tx_flags(verve_ep_from_fid(fid), flags),
	};

	(void)result_desc;
	return flags & ~msg_flags ? -FI_EBADFLAGS : call_start(fid, &call);
}

static ssize_t comparev_(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
			 const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
			 struct fi_ioc *resultv, void **result_desc, size_t result_count,
			 fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			 enum fi_op op, void *context)
{
	struct target target = {dest, addr, key, datatype, op};
	struct call call = {
		.form = VERVE_AMO_COMPARE, .compare = comparev, .compare_count = compare_count,
		.result = resultv, .result_count = result_count,
		.flags = verve_ep_from_fid(fid)->tx_flags,
	};

	(void)desc, (void)compare_desc, (void)result_desc;
	return call_start_plain(fid, &call, iov, count, &target, context);
}

static ssize_t compare_(struct fid_ep *fid, const void *buf, size_t count, void *desc,
			const void *compare, void *compare_desc, void *result, void *result_desc,
			fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			enum fi_op op, void *context)
{
	struct fi_ioc iov = {(void *)buf, count}, comparev = {(void *)compare, count};
	struct fi_ioc resultv = {result, count};

	return comparev_(fid, &iov, &desc, 1, &comparev, &compare_desc, 1, &resultv, &result_desc,
			 1, dest, addr, key, datatype, op, context);
}

static ssize_t comparemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
			  const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
			  struct fi_ioc *resultv, void **result_desc, size_t result_count,
			  uint64_t flags)
{
	struct call call = {
		.form = VERVE_AMO_COMPARE, .msg = msg, .compare = comparev,
		.compare_count = compare_count, .result = resultv, .result_count = result_count,
		.flags = verve_ep_tx_flags(verve_ep_from_fid(fid), flags),
	};

	(void)compare_desc, (void)result_desc;
	return flags & ~msg_flags ? -FI_EBADFLAGS : call_start(fid, &call);
}

static int get_count(struct fid_ep *fid, enum verve_amo_form form, enum fi_datatype datatype,
		     enum fi_op op, size_t *count)
{
	size_t most = max_elements(verve_ep_from_fid(fid)->domain, form, datatype, op);

	if (!most)
		return -FI_EOPNOTSUPP;
	*count = most;
	return 0;
}

static int writevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return get_count(fid, VERVE_AMO_UPDATE, datatype, op, count);
}

static int fetchvalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return get_count(fid, VERVE_AMO_FETCH, datatype, op, count);
}

static int comparevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return get_count(fid, VERVE_AMO_COMPARE, datatype, op, count);
}

int verve_domain_query_atomic(struct fid_domain *fid, enum fi_datatype datatype, enum fi_op op,
			      struct fi_atomic_attr *attr, uint64_t flags)
{
	enum verve_amo_form form = flags & FI_COMPARE_ATOMIC ? VERVE_AMO_COMPARE :
				   flags & FI_FETCH_ATOMIC   ? VERVE_AMO_FETCH :
							       VERVE_AMO_UPDATE;
	size_t most;

	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC | FI_TAGGED) ||
	    (flags & FI_FETCH_ATOMIC && flags & FI_COMPARE_ATOMIC))
		return -FI_EBADFLAGS;
	most = max_elements(verve_domain_from_fid(&fid->fid), form, datatype, op);
	if (!most || flags & FI_TAGGED)
		return -FI_EOPNOTSUPP;
	attr->count = most;
	attr->size = verve_amo_size(datatype);
	return 0;
}

struct fi_ops_atomic verve_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = fetch,
	.readwritev = fetchv,
	.readwritemsg = fetchmsg,
	.compwrite = compare_,
	.compwritev = comparev_,
	.compwritemsg = comparemsg,
	.writevalid = writevalid,
	.readwritevalid = fetchvalid,
	.compwritevalid = comparevalid,
};
