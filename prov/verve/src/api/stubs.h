/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stubs: one function for each operation of libfabric's tables that some object here does not have.
 * It has the exact type of the operation, and returns an error. libfabric's inline calls do not
 * test for NULL, so no table may have an empty entry.
 *
 * Names: verve_stub_<table>_<op> for struct fi_ops_<table>, and verve_stub_<op> for struct fi_ops.
 * All return -FI_ENOSYS, except verve_stub_domain_query_collective, which returns -FI_EOPNOTSUPP,
 * and verve_stub_fabric_domain2, which returns -FI_EINVAL if its flags have FI_PEER.
 * Tables of which every operation is a stub stand at the end. Constant; any thread.
 */
#ifndef VERVE_API_STUBS_H
#define VERVE_API_STUBS_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

/* Declares the stub with the type that the operation has in the libfabric header in use. */
#define VERVE_STUB(table, op) \
	extern __typeof__(*((struct fi_ops_##table *)0)->op) verve_stub_##table##_##op

extern __typeof__(*((struct fi_ops *)0)->bind) verve_stub_bind;
extern __typeof__(*((struct fi_ops *)0)->control) verve_stub_control;
extern __typeof__(*((struct fi_ops *)0)->ops_open) verve_stub_ops_open;
extern __typeof__(*((struct fi_ops *)0)->tostr) verve_stub_tostr;
extern __typeof__(*((struct fi_ops *)0)->ops_set) verve_stub_ops_set;

VERVE_STUB(fabric, passive_ep); VERVE_STUB(fabric, wait_open); VERVE_STUB(fabric, domain2);

VERVE_STUB(domain, scalable_ep); VERVE_STUB(domain, query_collective);
VERVE_STUB(domain, endpoint2);

VERVE_STUB(av, av_set);

VERVE_STUB(ep, cancel); VERVE_STUB(ep, getopt); VERVE_STUB(ep, setopt); VERVE_STUB(ep, tx_ctx);
VERVE_STUB(ep, rx_ctx); VERVE_STUB(ep, rx_size_left); VERVE_STUB(ep, tx_size_left);

VERVE_STUB(cm, setname); VERVE_STUB(cm, getname); VERVE_STUB(cm, getpeer); VERVE_STUB(cm, connect);
VERVE_STUB(cm, listen); VERVE_STUB(cm, accept); VERVE_STUB(cm, reject); VERVE_STUB(cm, shutdown);
VERVE_STUB(cm, join);

VERVE_STUB(msg, recv); VERVE_STUB(msg, recvv); VERVE_STUB(msg, recvmsg); VERVE_STUB(msg, send);
VERVE_STUB(msg, sendv); VERVE_STUB(msg, sendmsg); VERVE_STUB(msg, inject);
VERVE_STUB(msg, senddata); VERVE_STUB(msg, injectdata);

VERVE_STUB(tagged, recv); VERVE_STUB(tagged, recvv); VERVE_STUB(tagged, recvmsg);
VERVE_STUB(tagged, send); VERVE_STUB(tagged, sendv); VERVE_STUB(tagged, sendmsg);
VERVE_STUB(tagged, inject); VERVE_STUB(tagged, senddata); VERVE_STUB(tagged, injectdata);

VERVE_STUB(rma, read); VERVE_STUB(rma, readv); VERVE_STUB(rma, readmsg); VERVE_STUB(rma, write);
VERVE_STUB(rma, writev); VERVE_STUB(rma, writemsg); VERVE_STUB(rma, inject);
VERVE_STUB(rma, writedata); VERVE_STUB(rma, injectdata);

VERVE_STUB(atomic, write); VERVE_STUB(atomic, writev); VERVE_STUB(atomic, writemsg);
VERVE_STUB(atomic, inject); VERVE_STUB(atomic, readwrite); VERVE_STUB(atomic, readwritev);
VERVE_STUB(atomic, readwritemsg); VERVE_STUB(atomic, compwrite); VERVE_STUB(atomic, compwritev);
VERVE_STUB(atomic, compwritemsg); VERVE_STUB(atomic, writevalid);
VERVE_STUB(atomic, readwritevalid); VERVE_STUB(atomic, compwritevalid);

VERVE_STUB(collective, barrier); VERVE_STUB(collective, broadcast);
VERVE_STUB(collective, alltoall); VERVE_STUB(collective, allreduce);
VERVE_STUB(collective, allgather); VERVE_STUB(collective, reduce_scatter);
VERVE_STUB(collective, reduce); VERVE_STUB(collective, scatter); VERVE_STUB(collective, gather);
VERVE_STUB(collective, msg); VERVE_STUB(collective, barrier2);

#undef VERVE_STUB

/* Tables for endpoints that lack the capability. */
extern struct fi_ops_cm verve_stub_cm;
extern struct fi_ops_msg verve_stub_msg;
extern struct fi_ops_tagged verve_stub_tagged;
extern struct fi_ops_rma verve_stub_rma;
extern struct fi_ops_atomic verve_stub_atomic;
extern struct fi_ops_collective verve_stub_collective;

#endif
