/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_misuse: calls that a program should not make: flags that mean nothing there, lists that are
 * too long, addresses that nobody has, buffers that are too small, objects that are in use. Each is
 * refused, or ends in an error completion; the endpoint goes on working: every case ends with that.
 */
#include <string.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "common/atomic.h"
#include "common/check.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"
#include "common/xfer.h"

#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)
#define NOWHERE (1ull << 47) /* a flag that no call knows */
#define TOO_MANY 64
#define SIZE 256

struct victim {
	struct node node;
	struct region region;
	struct remote remote;
	char *buf;
};

static void victim_open(struct victim *v, struct env *env)
{
	struct node_attr attr = { .caps = CAPS };
	char name[NODE_ADDR_MAX];

	node_open(&v->node, env, &attr);
	node_enable(&v->node);
	node_name(&v->node, name);
	v->node.peer = node_insert(&v->node, name);
	region_open(&v->node, &v->region, SIZE, FI_REMOTE_READ | FI_REMOTE_WRITE);
	v->remote = region_remote(&v->node, &v->region);
	v->buf = pattern_alloc(SIZE);
}

/* A message to itself: it works as before. */
static void victim_close(struct victim *v)
{
	struct xfer send = { .op = XFER_SEND, .tagged = true, .tag = 3, .len = SIZE,
			     .buf = v->buf, .addr = v->node.peer, .context = &send };
	struct xfer recv = { .op = XFER_RECV, .tagged = true, .tag = 3, .len = SIZE,
			     .addr = FI_ADDR_UNSPEC, .buf = pattern_alloc(SIZE),
			     .context = &recv };

	comp_expect_none(&v->node, v->node.txcq);
	comp_expect_none(&v->node, v->node.rxcq);
	pattern_fill(v->buf, SIZE, 1);
	REQUIRE_RET(xfer_post(&v->node, &recv), 0);
	xfer_send(&v->node, &send);
	xfer_finish_recv(&v->node, &recv, &send, SIZE);
	pattern_check(recv.buf, SIZE, 1);
	pattern_free(recv.buf);
	pattern_free(v->buf);
	region_close(&v->region);
	node_close(&v->node);
}

/* Every call that takes flags, with flags that it does not take. */
static void run_flags(struct env *env)
{
	static const uint64_t send[] = { NOWHERE, FI_MULTI_RECV, FI_PEEK, FI_READ };
	static const uint64_t recv[] = { NOWHERE, FI_INJECT, FI_REMOTE_CQ_DATA };
	uint64_t one = 1, result;
	struct victim v;

	victim_open(&v, env);
	for (int tagged = 0; tagged < 2; tagged++) {
		struct xfer x = { .op = XFER_SENDMSG, .tagged = tagged, .buf = v.buf, .len = 8,
				  .addr = v.node.peer, .context = &x };

		for (size_t i = 0; i < sizeof(send) / sizeof(*send); i++) {
			x.flags = send[i];
			CHECK_ERROR(xfer_try(&v.node, &x));
		}
		x.op = XFER_RECVMSG;
		x.addr = FI_ADDR_UNSPEC;
		for (size_t i = 0; i < sizeof(recv) / sizeof(*recv); i++) {
			x.flags = recv[i];
			CHECK_ERROR(xfer_try(&v.node, &x));
		}
	}
	for (int read = 0; read < 2; read++) {
		struct rma rma = { .op = read ? RMA_READMSG : RMA_WRITEMSG, .buf = v.buf, .len = 8,
				   .addr = v.node.peer, .remote_addr = v.remote.addr,
				   .key = v.remote.key, .context = &rma, .flags = NOWHERE };

		CHECK_ERROR(rma_try(&v.node, &rma));
		rma.flags = FI_MULTI_RECV;
		CHECK_ERROR(rma_try(&v.node, &rma));
		rma.flags = FI_PEEK;
		CHECK_ERROR(rma_try(&v.node, &rma));
	}
	for (int fetch = 0; fetch < 2; fetch++) {
		struct atomic atomic = { .call = fetch ? ATOMIC_FETCHMSG : ATOMIC_MSG,
					 .datatype = FI_UINT64, .op = FI_SUM, .count = 1,
					 .buf = &one, .result = &result, .addr = v.node.peer,
					 .remote_addr = v.remote.addr, .key = v.remote.key,
					 .flags = NOWHERE, .context = &atomic };

		CHECK_ERROR(atomic_try(&v.node, &atomic));
	}
	victim_close(&v);
}

/* Refused, or an error completion with its context. */
static void expect_failure(struct node *node, ssize_t ret, void *context)
{
	struct comp comp;

	if (ret) {
		CHECK_ERROR(ret);
		return;
	}
	comp_wait(node, node->txcq, &comp);
	CHECK(comp.err > 0);
	CHECK(comp.context == context);
}

/* Addresses that are none, in all kinds of operations. */
static void run_addresses(struct env *env)
{
	static const fi_addr_t nobody[] = { FI_ADDR_NOTAVAIL, 12345, 1ull << 32, 1ull << 63 };
	struct victim v;

	victim_open(&v, env);
	for (size_t i = 0; i < sizeof(nobody) / sizeof(*nobody); i++) {
		uint64_t one = 1, result;
		struct atomic atomic = { .call = ATOMIC_FETCH, .datatype = FI_UINT64, .op = FI_SUM,
					 .count = 1, .buf = &one, .result = &result,
					 .addr = nobody[i], .remote_addr = v.remote.addr,
					 .key = v.remote.key, .context = &atomic };
		struct rma rma = { .op = RMA_WRITE, .buf = v.buf, .len = 8, .addr = nobody[i],
				   .remote_addr = v.remote.addr, .key = v.remote.key,
				   .context = &rma };
		struct xfer x = { .op = XFER_SEND, .buf = v.buf, .len = 8, .addr = nobody[i],
				  .context = &x };

		expect_failure(&v.node, xfer_try(&v.node, &x), &x);
		x.tagged = true;
		expect_failure(&v.node, xfer_try(&v.node, &x), &x);
		x.op = XFER_INJECT;
		CHECK_ERROR(xfer_try(&v.node, &x));
		expect_failure(&v.node, rma_try(&v.node, &rma), &rma);
		rma.op = RMA_READ;
		expect_failure(&v.node, rma_try(&v.node, &rma), &rma);
		expect_failure(&v.node, atomic_try(&v.node, &atomic), &atomic);
	}
	victim_close(&v);
}

/* More segments than iov_limit, and lengths whose sum does not fit. */
static void run_lists(struct env *env)
{
	struct fi_rma_iov target[TOO_MANY];
	struct iovec iov[TOO_MANY];
	struct fi_msg_rma msg = { .msg_iov = iov, .iov_count = 1, .rma_iov = target,
				  .rma_iov_count = TOO_MANY, .context = iov };
	struct victim v;

	victim_open(&v, env);
	for (size_t i = 0; i < TOO_MANY; i++) {
		iov[i] = (struct iovec){ v.buf, 1 };
		target[i] = (struct fi_rma_iov){ v.remote.addr, 1, v.remote.key };
	}
	msg.addr = v.node.peer;
	iov[0].iov_len = TOO_MANY;
	CHECK_ERROR(fi_writemsg(v.node.ep, &msg, 0));
	CHECK_ERROR(fi_readmsg(v.node.ep, &msg, 0));
	/* The two sides differ in length. */
	msg.rma_iov_count = 1;
	CHECK_ERROR(fi_writemsg(v.node.ep, &msg, 0));
	iov[0].iov_len = 1;
	msg.iov_count = TOO_MANY;
	target[0].len = TOO_MANY;
	CHECK_ERROR(fi_writemsg(v.node.ep, &msg, 0));
	CHECK_ERROR(fi_readmsg(v.node.ep, &msg, 0));
	for (size_t i = 0; i < 2; i++)
		iov[i].iov_len = SIZE_MAX / 2 + 2;
	CHECK_ERROR(fi_sendv(v.node.ep, iov, NULL, 2, v.node.peer, iov));
	CHECK_ERROR(fi_tsendv(v.node.ep, iov, NULL, 2, v.node.peer, 1, iov));
	CHECK_ERROR(fi_writev(v.node.ep, iov, NULL, 2, v.node.peer, v.remote.addr, v.remote.key,
			      iov));
	CHECK_ERROR(fi_readv(v.node.ep, iov, NULL, 2, v.node.peer, v.remote.addr, v.remote.key,
			     iov));
	CHECK_ERROR(fi_recvv(v.node.ep, iov, NULL, 2, FI_ADDR_UNSPEC, iov));
	CHECK_ERROR(fi_trecvv(v.node.ep, iov, NULL, 2, FI_ADDR_UNSPEC, 1, 0, iov));
	victim_close(&v);
}

/*
 * A result that does not fit is cut, or refused with the length that it needs; bytes behind the
 * buffer stay.
 */
static void run_small_buffers(struct env *env)
{
	char name[NODE_ADDR_MAX], got[NODE_ADDR_MAX];
	size_t full, len = 3;
	struct victim v;
	size_t value = 0;

	victim_open(&v, env);
	full = node_name(&v.node, name);
	memset(got, 0x44, sizeof(got));
	CHECK_RET(fi_getname(&v.node.ep->fid, got, &len), -FI_ETOOSMALL);
	CHECK_EQ(len, full);
	pattern_check_byte(got + 3, sizeof(got) - 3, 0x44);
	len = 0;
	CHECK_RET(fi_getname(&v.node.ep->fid, NULL, &len), -FI_ETOOSMALL);
	CHECK_EQ(len, full);
	len = 1;
	CHECK_ERROR(fi_getopt(&v.node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value,
			      &len));
	CHECK_EQ(value, 0);
	CHECK_ERROR(fi_setopt(&v.node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, 1));
	CHECK_ERROR(fi_setopt(&v.node.ep->fid, FI_OPT_ENDPOINT, 12345, &value, sizeof(value)));
	CHECK_ERROR(fi_setopt(&v.node.ep->fid, 12345, FI_OPT_MIN_MULTI_RECV, &value,
			      sizeof(value)));
	memset(got, 0x44, sizeof(got));
	fi_cq_strerror(v.node.txcq, 5, NULL, got, 4);
	CHECK(memchr(got, 0, 4) != NULL);
	pattern_check_byte(got + 4, sizeof(got) - 4, 0x44);
	fi_cq_strerror(v.node.txcq, 123456, NULL, got, sizeof(got));
	CHECK(memchr(got, 0, sizeof(got)) != NULL);
	victim_close(&v);
}

/* Regions with wrong attributes, and accesses past the end of right ones. */
static void run_regions(struct env *env)
{
	struct fid_mr *mr = NULL;
	struct iovec iov = { 0 };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 0, .access = FI_SEND };
	struct victim v;
	struct rma rma;

	victim_open(&v, env);
	CHECK_ERROR(fi_mr_reg(v.node.domain, v.buf, SIZE, FI_SEND, 0, 77, NOWHERE, &mr, NULL));
	CHECK_ERROR(fi_mr_reg(v.node.domain, v.buf, SIZE, NOWHERE, 0, 78, 0, &mr, NULL));
	CHECK_ERROR(fi_mr_reg(v.node.domain, (void *)8, SIZE, FI_SEND, 0, 79, 0, &mr, NULL));
	CHECK_ERROR(fi_mr_reg(v.node.domain, v.buf, SIZE_MAX - 4096, FI_SEND, 0, 80, 0, &mr,
			      NULL));
	CHECK_ERROR(fi_mr_regattr(v.node.domain, &attr, 0, &mr));
	attr.iov_count = 100000;
	CHECK_ERROR(fi_mr_regattr(v.node.domain, &attr, 0, &mr));
	rma = (struct rma){ .op = RMA_WRITE, .buf = v.buf, .len = SIZE, .addr = v.node.peer,
			    .remote_addr = v.remote.addr + 1, .key = v.remote.key,
			    .context = &rma };
	expect_failure(&v.node, rma_post(&v.node, &rma), &rma);
	rma.remote_addr = UINT64_MAX - 3;
	expect_failure(&v.node, rma_post(&v.node, &rma), &rma);
	pattern_check_byte(v.region.buf, SIZE, PATTERN_EMPTY);
	victim_close(&v);
}

/* An object in use does not close; a capability that was not asked for is refused. */
static void run_in_use(struct env *env)
{
	struct node_attr attr = { .caps = FI_TAGGED };
	char name[NODE_ADDR_MAX], byte = 0;
	struct victim v;
	struct node plain;

	victim_open(&v, env);
	CHECK_RET(fi_close(&v.node.av->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&v.node.txcq->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&v.node.rxcq->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&v.node.domain->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&v.node.fabric->fid), -FI_EBUSY);
	CHECK_ERROR(fi_enable(v.node.ep));
	CHECK_ERROR(fi_ep_bind(v.node.ep, &v.node.av->fid, 0));
	CHECK_ERROR(fi_setname(&v.node.ep->fid, name, 0));
	/* An endpoint of another kind. */
	node_open(&plain, env, &attr);
	node_enable(&plain);
	node_name(&plain, name);
	plain.peer = node_insert(&plain, name);
	if (!(plain.info->caps & FI_MSG))
		CHECK_ERROR(fi_send(plain.ep, &byte, 1, NULL, plain.peer, NULL));
	if (!(plain.info->caps & FI_RMA))
		CHECK_ERROR(fi_write(plain.ep, &byte, 1, NULL, plain.peer, v.remote.addr,
				     v.remote.key, NULL));
	if (!(plain.info->caps & FI_ATOMIC))
		CHECK_ERROR(fi_atomic(plain.ep, &byte, 1, NULL, plain.peer, v.remote.addr,
				      v.remote.key, FI_UINT8, FI_SUM, NULL));
	node_close(&plain);
	victim_close(&v);
}

static const struct suite_case cases[] = {
	{ "flags", CAPS, run_flags },
	{ "addresses", CAPS, run_addresses },
	{ "lists", CAPS, run_lists },
	{ "small_buffers", CAPS, run_small_buffers },
	{ "regions", CAPS, run_regions },
	{ "in_use", CAPS, run_in_use },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_misuse", "Calls that must be refused and do no harm.", false },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
