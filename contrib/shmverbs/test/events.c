/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Events: asynchronous events (ibv_get_async_event(3)). Their causes are those of the manual
 * pages, or shmv-ctl.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "side.h"
#include "tests.h"

static struct ibv_port_attr port_of(struct ibv_context *ctx)
{
	struct ibv_port_attr port = {0};

	CHECK(!ibv_query_port(ctx, 1, &port));
	return port;
}

void test_event_port(void)
{
	struct side a, b;

	knobs.timeout = 18; /* 8.6 s: longer than the port is down */
	side_open(&a, 0, false);
	side_open(&b, 1, false);
	pair(&a, &b);
	CHECK(ctl("shm0 down") && event_is(a.ctx, IBV_EVENT_PORT_ERR, NULL, 5));
	CHECK(port_of(a.ctx).state == IBV_PORT_DOWN && port_of(b.ctx).state == IBV_PORT_ACTIVE);
	/* A send meanwhile is repeated until it arrives. */
	CHECK(!post_recv(&b, 1, 0, 64) && !post(&a, IBV_WR_SEND, 2, 0, 8, IBV_SEND_SIGNALED, 0, 0));
	CHECK(ctl("shm0 up") && event_is(a.ctx, IBV_EVENT_PORT_ACTIVE, NULL, 5));
	CHECK(got(a.scq, 2, IBV_WC_SUCCESS) && got(b.rcq, 1, IBV_WC_SUCCESS));
	side_close(&a);
	side_close(&b);
	/* Or until the retries are used up. */
	knobs.timeout = 10; /* 34 ms */
	side_open(&a, 0, false);
	side_open(&b, 1, false);
	pair(&a, &b);
	CHECK(ctl("shm1 down") && event_is(b.ctx, IBV_EVENT_PORT_ERR, NULL, 5));
	CHECK(!post(&a, IBV_WR_SEND, 3, 0, 8, 0, 0, 0) && got(a.scq, 3, IBV_WC_RETRY_EXC_ERR));
	CHECK(ctl("shm1 up") && event_is(b.ctx, IBV_EVENT_PORT_ACTIVE, NULL, 5));
	side_close(&a);
	side_close(&b);
	knobs = knobs_default;
}

void test_event_gid(void)
{
	struct ibv_context *ctx = open_dev(0);
	union ibv_gid before, after;

	CHECK(!ibv_query_gid(ctx, 1, 0, &before));
	CHECK(ctl("shm0 gid-move 0 5") && event_is(ctx, IBV_EVENT_GID_CHANGE, NULL, 5));
	CHECK(!ibv_query_gid(ctx, 1, 5, &after) && !memcmp(&before, &after, sizeof(after)));
	CHECK(!ibv_query_gid(ctx, 1, 0, &after) && !after.global.interface_id);
	CHECK(ctl("shm0 gid-move 5 0") && event_is(ctx, IBV_EVENT_GID_CHANGE, NULL, 5));
	CHECK(ctl("shm0 pkey 3 0x8003") && event_is(ctx, IBV_EVENT_PKEY_CHANGE, NULL, 5));
	CHECK(ibv_get_pkey_index(ctx, 1, htobe16(0x8003)) == 3);
	CHECK(ctl("shm0 pkey 3 0") && event_is(ctx, IBV_EVENT_PKEY_CHANGE, NULL, 5));
	CHECK(ctl("shm0 lid 77") && event_is(ctx, IBV_EVENT_LID_CHANGE, NULL, 5));
	CHECK(port_of(ctx).lid == 77);
	CHECK(ctl("shm0 lid 8") && event_is(ctx, IBV_EVENT_LID_CHANGE, NULL, 5));
	CHECK(ctl("shm0 mtu 1024")); /* no event: the next one is the next line's */
	CHECK(port_of(ctx).active_mtu == IBV_MTU_1024);
	CHECK(ctl("shm0 mtu 4096"));
	CHECK(port_of(ctx).active_mtu == IBV_MTU_4096);
	CHECK(ctl("shm0 sm-change") && event_is(ctx, IBV_EVENT_SM_CHANGE, NULL, 5));
	CHECK(ctl("shm0 reregister") && event_is(ctx, IBV_EVENT_CLIENT_REREGISTER, NULL, 5));
	CHECK(!ctl("shm0 nonsense"));
	CHECK(!ibv_close_device(ctx));
}

/*
 * A queue pair with a shared receive queue says when it takes no more: after its own error, or
 * the peer's.
 */
void test_event_last_wqe(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct side a, b;

	side_open(&a, 0, true);
	side_open(&b, 1, true);
	pair(&a, &b);
	CHECK(!ibv_modify_qp(a.qp, &attr, IBV_QP_STATE));
	CHECK(event_is(a.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, a.qp, 5));
	side_close(&a);
	side_close(&b);
	side_open(&a, 0, true);
	side_open(&b, 1, true);
	pair(&a, &b);
	CHECK(!post(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, (uintptr_t)b.buf, b.mr->rkey + 1));
	CHECK(got(a.scq, 1, IBV_WC_REM_ACCESS_ERR));
	CHECK(event_is(a.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, a.qp, 5));
	CHECK(event_is(b.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, b.qp, 5));
	side_close(&a);
	side_close(&b);
}

void test_event_srq_limit(void)
{
	struct ibv_srq_attr attr = {.srq_limit = 3};
	struct side a, b;

	side_open(&a, 0, true);
	side_open(&b, 1, true);
	pair(&a, &b);
	for (int i = 0; i < 5; i++)
		CHECK(!post_recv(&b, i, 0, 64));
	CHECK(!ibv_modify_srq(b.srq, &attr, IBV_SRQ_LIMIT) && !ibv_query_srq(b.srq, &attr) &&
	      attr.srq_limit == 3);
	fcntl(b.ctx->async_fd, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 2; i++)
		CHECK(!post(&a, IBV_WR_SEND, i, 0, 8, IBV_SEND_SIGNALED, 0, 0) && got(a.scq, i, 0));
	usleep(20000);
	CHECK(ibv_get_async_event(b.ctx, &(struct ibv_async_event){0}) == -1); /* three are left */
	CHECK(!post(&a, IBV_WR_SEND, 2, 0, 8, IBV_SEND_SIGNALED, 0, 0) && got(a.scq, 2, 0));
	CHECK(event_is(b.ctx, IBV_EVENT_SRQ_LIMIT_REACHED, b.srq, 5));
	CHECK(!ibv_query_srq(b.srq, &attr) && !attr.srq_limit); /* it comes once */
	attr.srq_limit = 1000;
	CHECK(ibv_modify_srq(b.srq, &attr, IBV_SRQ_LIMIT) == EINVAL);
	side_close(&a);
	side_close(&b);
}

/*
 * With more completions than the queue holds there is an event, the send fails, and polling
 * fails.
 */
void test_event_overrun(void)
{
	struct side a, b;
	struct ibv_cq *small;
	struct ibv_wc wc;

	side_open(&a, 0, false);
	side_open(&b, 1, true);
	small = ibv_create_cq(b.ctx, 4, NULL, NULL, 0);
	CHECK(!ibv_destroy_qp(b.qp) && !ibv_destroy_cq(b.rcq));
	b.rcq = small;
	b.qp = make_qp(&b);
	pair(&a, &b);
	for (int i = 0; i < 5; i++) {
		CHECK(!post_recv(&b, i, 0, 64));
		CHECK(!post(&a, IBV_WR_SEND, i, 0, 8, IBV_SEND_SIGNALED, 0, 0));
		CHECK(got(a.scq, i, i < 4 ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR));
	}
	CHECK(event_is(b.ctx, IBV_EVENT_CQ_ERR, b.rcq, 5) && ibv_poll_cq(b.rcq, 1, &wc) < 0);
	side_close(&a);
	side_close(&b);
}

void test_event_injected(void)
{
	struct side a, b;
	struct ibv_wc wc;
	char line[64];

	side_open(&a, 0, false);
	side_open(&b, 1, true);
	pair(&a, &b);
	snprintf(line, sizeof(line), "shm0 qp-fatal %u", a.qp->qp_num);
	CHECK(!post_recv(&a, 4, 0, 64) && ctl(line) &&
	      event_is(a.ctx, IBV_EVENT_QP_FATAL, a.qp, 5));
	CHECK(got(a.rcq, 4, IBV_WC_WR_FLUSH_ERR) && state(a.qp) == IBV_QPS_ERR);
	CHECK(ctl("shm1 srq-error") && event_is(b.ctx, IBV_EVENT_SRQ_ERR, b.srq, 5));
	side_close(&a);
	side_open(&a, 0, false);
	CHECK(ctl("shm0 cq-error"));
	CHECK(event_is(a.ctx, IBV_EVENT_CQ_ERR, NULL, 5) &&
	      event_is(a.ctx, IBV_EVENT_CQ_ERR, NULL, 5));
	CHECK(ibv_poll_cq(a.scq, 1, &wc) < 0 && ibv_poll_cq(a.rcq, 1, &wc) < 0);
	side_close(&a);
	side_close(&b);
}

/*
 * After the device failed, commands fail, nothing completes, a peer gets no answer, and all can
 * be closed.
 */
void test_event_fatal(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_port_attr port;
	struct side a, b;
	struct ibv_wc wc;

	side_open(&a, 0, false);
	side_open(&b, 1, false);
	pair(&a, &b);
	CHECK(ctl("shm0 fatal") && event_is(a.ctx, IBV_EVENT_DEVICE_FATAL, NULL, 5));
	CHECK(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) == EIO &&
	      ibv_query_port(a.ctx, 1, &port) == EIO);
	CHECK(!ibv_create_cq(a.ctx, 1, NULL, NULL, 0) && errno == EIO);
	CHECK(!post(&a, IBV_WR_SEND, 1, 0, 8, IBV_SEND_SIGNALED, 0, 0) && !get(a.scq, &wc, 0.1));
	CHECK(!post(&b, IBV_WR_SEND, 2, 0, 8, 0, 0, 0) && got(b.scq, 2, IBV_WC_RETRY_EXC_ERR));
	side_close(&a);
	side_close(&b);
	CHECK(ctl("shm0 heal"));
}

static void *destroy(void *arg)
{
	return ibv_destroy_qp(arg) ? arg : NULL;
}

/* Destroying an object waits until its events are acknowledged. */
void test_event_acknowledged(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_async_event event;
	struct side a;
	pthread_t thread;
	void *ret;

	side_open(&a, 0, true);
	CHECK(!ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) && !ibv_get_async_event(a.ctx, &event));
	pthread_create(&thread, NULL, destroy, a.qp);
	usleep(50000);
	CHECK(pthread_tryjoin_np(thread, &ret) == EBUSY);
	ibv_ack_async_event(&event);
	CHECK(!pthread_join(thread, &ret) && !ret);
	a.qp = NULL;
	side_close(&a);
}
