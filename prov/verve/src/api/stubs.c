/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stubs: see stubs.h. The compiler checks each definition against libfabric's type of the
 * operation.
 */
#include "api/stubs.h"

#include <rdma/fi_errno.h>

/* The arguments are there for the type alone. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define STUB(type, name, ...)                                                                      \
	type verve_stub_##name(__VA_ARGS__)                                                        \
	{                                                                                          \
		return -FI_ENOSYS;                                                                 \
	}

/* struct fi_ops */
STUB(int, bind, struct fid *fid, struct fid *bfid, uint64_t flags)
STUB(int, control, struct fid *fid, int command, void *arg)
STUB(int, ops_open, struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
STUB(int, tostr, const struct fid *fid, char *buf, size_t len)
STUB(int, ops_set, struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)

/* struct fi_ops_fabric */
STUB(int, fabric_passive_ep, struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
     void *context)
STUB(int, fabric_wait_open, struct fid_fabric *fabric, struct fi_wait_attr *attr,
     struct fid_wait **waitset)
/* fi_peer(3) has an answer for providers that share no domain of another one. */
int verve_stub_fabric_domain2(struct fid_fabric *fabric, struct fi_info *info,
			      struct fid_domain **domain, uint64_t flags, void *context)
{
	return flags & FI_PEER ? -FI_EINVAL : -FI_ENOSYS;
}

/* struct fi_ops_domain */
STUB(int, domain_scalable_ep, struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
     void *context)
/*
 * Every provider is asked this question. The answer: there is no such operation. fi_collective(3).
 */
int verve_stub_domain_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
				       struct fi_collective_attr *attr, uint64_t flags)
{
	return -FI_EOPNOTSUPP;
}

STUB(int, domain_endpoint2, struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
     uint64_t flags, void *context)

/* struct fi_ops_av */
STUB(int, av_av_set, struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **av_set,
     void *context)

/* struct fi_ops_ep */
STUB(ssize_t, ep_cancel, fid_t fid, void *context)
STUB(int, ep_getopt, fid_t fid, int level, int optname, void *optval, size_t *optlen)
STUB(int, ep_setopt, fid_t fid, int level, int optname, const void *optval, size_t optlen)
STUB(int, ep_tx_ctx, struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
     void *context)
STUB(int, ep_rx_ctx, struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
     void *context)
STUB(ssize_t, ep_rx_size_left, struct fid_ep *ep)
STUB(ssize_t, ep_tx_size_left, struct fid_ep *ep)

/* struct fi_ops_cm */
STUB(int, cm_setname, fid_t fid, void *addr, size_t addrlen)
STUB(int, cm_getname, fid_t fid, void *addr, size_t *addrlen)
STUB(int, cm_getpeer, struct fid_ep *ep, void *addr, size_t *addrlen)
STUB(int, cm_connect, struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
STUB(int, cm_listen, struct fid_pep *pep)
STUB(int, cm_accept, struct fid_ep *ep, const void *param, size_t paramlen)
STUB(int, cm_reject, struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
STUB(int, cm_shutdown, struct fid_ep *ep, uint64_t flags)
STUB(int, cm_join, struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
     void *context)

/* struct fi_ops_msg */
STUB(ssize_t, msg_recv, struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
     void *context)
STUB(ssize_t, msg_recvv, struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
     fi_addr_t src_addr, void *context)
STUB(ssize_t, msg_recvmsg, struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
STUB(ssize_t, msg_send, struct fid_ep *ep, const void *buf, size_t len, void *desc,
     fi_addr_t dest_addr, void *context)
STUB(ssize_t, msg_sendv, struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
     fi_addr_t dest_addr, void *context)
STUB(ssize_t, msg_sendmsg, struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
STUB(ssize_t, msg_inject, struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr)
STUB(ssize_t, msg_senddata, struct fid_ep *ep, const void *buf, size_t len, void *desc,
     uint64_t data, fi_addr_t dest_addr, void *context)
STUB(ssize_t, msg_injectdata, struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
     fi_addr_t dest_addr)

/* struct fi_ops_tagged */
STUB(ssize_t, tagged_recv, struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
     uint64_t tag, uint64_t ignore, void *context)
STUB(ssize_t, tagged_recvv, struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
     fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context)
STUB(ssize_t, tagged_recvmsg, struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
STUB(ssize_t, tagged_send, struct fid_ep *ep, const void *buf, size_t len, void *desc,
     fi_addr_t dest_addr, uint64_t tag, void *context)
STUB(ssize_t, tagged_sendv, struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
     fi_addr_t dest_addr, uint64_t tag, void *context)
STUB(ssize_t, tagged_sendmsg, struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
STUB(ssize_t, tagged_inject, struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr,
     uint64_t tag)
STUB(ssize_t, tagged_senddata, struct fid_ep *ep, const void *buf, size_t len, void *desc,
     uint64_t data, fi_addr_t dest_addr, uint64_t tag, void *context)
STUB(ssize_t, tagged_injectdata, struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
     fi_addr_t dest_addr, uint64_t tag)

/* struct fi_ops_rma */
STUB(ssize_t, rma_read, struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
     uint64_t addr, uint64_t key, void *context)
STUB(ssize_t, rma_readv, struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
     fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
STUB(ssize_t, rma_readmsg, struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
STUB(ssize_t, rma_write, struct fid_ep *ep, const void *buf, size_t len, void *desc,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
STUB(ssize_t, rma_writev, struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
STUB(ssize_t, rma_writemsg, struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
STUB(ssize_t, rma_inject, struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr,
     uint64_t addr, uint64_t key)
STUB(ssize_t, rma_writedata, struct fid_ep *ep, const void *buf, size_t len, void *desc,
     uint64_t data, fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
STUB(ssize_t, rma_injectdata, struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key)

/* struct fi_ops_atomic */
STUB(ssize_t, atomic_write, struct fid_ep *ep, const void *buf, size_t count, void *desc,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
     void *context)
STUB(ssize_t, atomic_writev, struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
     void *context)
STUB(ssize_t, atomic_writemsg, struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
STUB(ssize_t, atomic_inject, struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest_addr,
     uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op)
STUB(ssize_t, atomic_readwrite, struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
     enum fi_datatype datatype, enum fi_op op, void *context)
STUB(ssize_t, atomic_readwritev, struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
     size_t count, struct fi_ioc *resultv, void **result_desc, size_t result_count,
     fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
     void *context)
STUB(ssize_t, atomic_readwritemsg, struct fid_ep *ep, const struct fi_msg_atomic *msg,
     struct fi_ioc *resultv, void **result_desc, size_t result_count, uint64_t flags)
STUB(ssize_t, atomic_compwrite, struct fid_ep *ep, const void *buf, size_t count, void *desc,
     const void *compare, void *compare_desc, void *result, void *result_desc, fi_addr_t dest_addr,
     uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
STUB(ssize_t, atomic_compwritev, struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
     size_t count, const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
     struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest_addr,
     uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
STUB(ssize_t, atomic_compwritemsg, struct fid_ep *ep, const struct fi_msg_atomic *msg,
     const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
     struct fi_ioc *resultv, void **result_desc, size_t result_count, uint64_t flags)
STUB(int, atomic_writevalid, struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
     size_t *count)
STUB(int, atomic_readwritevalid, struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
     size_t *count)
STUB(int, atomic_compwritevalid, struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
     size_t *count)

/* struct fi_ops_collective */
STUB(ssize_t, collective_barrier, struct fid_ep *ep, fi_addr_t coll_addr, void *context)
STUB(ssize_t, collective_broadcast, struct fid_ep *ep, void *buf, size_t count, void *desc,
     fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,
     void *context)
STUB(ssize_t, collective_alltoall, struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype,
     uint64_t flags, void *context)
STUB(ssize_t, collective_allreduce, struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, enum fi_op op,
     uint64_t flags, void *context)
STUB(ssize_t, collective_allgather, struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype,
     uint64_t flags, void *context)
STUB(ssize_t, collective_reduce_scatter, struct fid_ep *ep, const void *buf, size_t count,
     void *desc, void *result, void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype,
     enum fi_op op, uint64_t flags, void *context)
STUB(ssize_t, collective_reduce, struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr,
     enum fi_datatype datatype, enum fi_op op, uint64_t flags, void *context)
STUB(ssize_t, collective_scatter, struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr,
     enum fi_datatype datatype, uint64_t flags, void *context)
STUB(ssize_t, collective_gather, struct fid_ep *ep, const void *buf, size_t count, void *desc,
     void *result, void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr,
     enum fi_datatype datatype, uint64_t flags, void *context)
STUB(ssize_t, collective_msg, struct fid_ep *ep, const struct fi_msg_collective *msg,
     struct fi_ioc *resultv, void **result_desc, size_t result_count, uint64_t flags)
STUB(ssize_t, collective_barrier2, struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags,
     void *context)

struct fi_ops_cm verve_stub_cm = {
	.size = sizeof(struct fi_ops_cm),
	.setname = verve_stub_cm_setname,
	.getname = verve_stub_cm_getname,
	.getpeer = verve_stub_cm_getpeer,
	.connect = verve_stub_cm_connect,
	.listen = verve_stub_cm_listen,
	.accept = verve_stub_cm_accept,
	.reject = verve_stub_cm_reject,
	.shutdown = verve_stub_cm_shutdown,
	.join = verve_stub_cm_join,
};

struct fi_ops_msg verve_stub_msg = {
	.size = sizeof(struct fi_ops_msg),
	.recv = verve_stub_msg_recv,
	.recvv = verve_stub_msg_recvv,
	.recvmsg = verve_stub_msg_recvmsg,
	.send = verve_stub_msg_send,
	.sendv = verve_stub_msg_sendv,
	.sendmsg = verve_stub_msg_sendmsg,
	.inject = verve_stub_msg_inject,
	.senddata = verve_stub_msg_senddata,
	.injectdata = verve_stub_msg_injectdata,
};

struct fi_ops_tagged verve_stub_tagged = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = verve_stub_tagged_recv,
	.recvv = verve_stub_tagged_recvv,
	.recvmsg = verve_stub_tagged_recvmsg,
	.send = verve_stub_tagged_send,
	.sendv = verve_stub_tagged_sendv,
	.sendmsg = verve_stub_tagged_sendmsg,
	.inject = verve_stub_tagged_inject,
	.senddata = verve_stub_tagged_senddata,
	.injectdata = verve_stub_tagged_injectdata,
};

struct fi_ops_rma verve_stub_rma = {
	.size = sizeof(struct fi_ops_rma),
	.read = verve_stub_rma_read,
	.readv = verve_stub_rma_readv,
	.readmsg = verve_stub_rma_readmsg,
	.write = verve_stub_rma_write,
	.writev = verve_stub_rma_writev,
	.writemsg = verve_stub_rma_writemsg,
	.inject = verve_stub_rma_inject,
	.writedata = verve_stub_rma_writedata,
	.injectdata = verve_stub_rma_injectdata,
};

struct fi_ops_atomic verve_stub_atomic = {
	.size = sizeof(struct fi_ops_atomic),
	.write = verve_stub_atomic_write,
	.writev = verve_stub_atomic_writev,
	.writemsg = verve_stub_atomic_writemsg,
	.inject = verve_stub_atomic_inject,
	.readwrite = verve_stub_atomic_readwrite,
	.readwritev = verve_stub_atomic_readwritev,
	.readwritemsg = verve_stub_atomic_readwritemsg,
	.compwrite = verve_stub_atomic_compwrite,
	.compwritev = verve_stub_atomic_compwritev,
	.compwritemsg = verve_stub_atomic_compwritemsg,
	.writevalid = verve_stub_atomic_writevalid,
	.readwritevalid = verve_stub_atomic_readwritevalid,
	.compwritevalid = verve_stub_atomic_compwritevalid,
};

struct fi_ops_collective verve_stub_collective = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = verve_stub_collective_barrier,
	.broadcast = verve_stub_collective_broadcast,
	.alltoall = verve_stub_collective_alltoall,
	.allreduce = verve_stub_collective_allreduce,
	.allgather = verve_stub_collective_allgather,
	.reduce_scatter = verve_stub_collective_reduce_scatter,
	.reduce = verve_stub_collective_reduce,
	.scatter = verve_stub_collective_scatter,
	.gather = verve_stub_collective_gather,
	.msg = verve_stub_collective_msg,
	.barrier2 = verve_stub_collective_barrier2,
};
