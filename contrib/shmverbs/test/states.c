/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* States: flushing, resetting, limits, many queue pairs. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "side.h"
#include "tests.h"

void test_flush(void)
{
	struct side a, b;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_wc wc;

	side_open(&a, 0, false);
	side_open(&b, 1, false);
	pair(&a, &b);
	for (int i = 0; i < 5; i++) {
		CHECK(!post_recv(&a, 10 + i, 0, 64));
		CHECK(!post(&a, IBV_WR_SEND, i, 0, 8, 0, 0, 0)); /* they wait for a receive */
	}
	CHECK(!ibv_modify_qp(a.qp, &attr, IBV_QP_STATE));
	for (int i = 0; i < 5; i++) {
		CHECK(get(a.scq, &wc, 20) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR &&
		      wc.wr_id == (unsigned)i);
		CHECK(get(a.rcq, &wc, 20) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR &&
		      wc.wr_id == 10u + i);
	}
	if (getenv("SHMV_ERR_POST")) {
		CHECK(post(&a, IBV_WR_SEND, 7, 0, 8, 0, 0, 0) == EINVAL);
	} else {
		CHECK(!post(&a, IBV_WR_SEND, 7, 0, 8, 0, 0, 0));
		CHECK(get(a.scq, &wc, 20) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR &&
		      wc.wr_id == 7);
	}
	/* The queue pair works again after a reset. */
	attr.qp_state = IBV_QPS_RESET;
	CHECK(!ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) &&
	      !ibv_modify_qp(b.qp, &attr, IBV_QP_STATE));
	attr = (struct ibv_qp_attr){
	    .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL_ACCESS};
	CHECK(!ibv_modify_qp(a.qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	CHECK(!ibv_modify_qp(b.qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	pair(&a, &b);
	CHECK(!post_recv(&b, 1, 0, 64) && !post(&a, IBV_WR_SEND, 1, 0, 8, IBV_SEND_SIGNALED, 0, 0));
	CHECK(get(a.scq, &wc, 20) == 1 && !wc.status && get(b.rcq, &wc, 20) == 1 && !wc.status);
	side_close(&a);
	side_close(&b);
}

void test_clean(void)
{
	struct side a, b;
	struct ibv_wc wc;
	int want = getenv("SHMV_CLEAN_CQ") ? 0 : 3;

	side_open(&a, 0, false);
	side_open(&b, 1, true);
	pair(&a, &b);
	for (int i = 0; i < 3; i++) {
		CHECK(!post_recv(&b, i, 0, 64));
		CHECK(!post(&a, IBV_WR_SEND, i, 0, 8, IBV_SEND_SIGNALED, 0, 0));
	}
	CHECK(!ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp));
	a.qp = b.qp = NULL;
	for (int i = 0; i < 4; i++) {
		CHECK(ibv_poll_cq(a.scq, 1, &wc) == (i < want));
		CHECK(ibv_poll_cq(b.rcq, 1, &wc) == (i < want));
	}
	side_close(&a);
	side_close(&b);
}

void test_limits(void)
{
	const char *max_qp = getenv("SHMV_MAX_QP"), *spare_qp = getenv("SHMV_SPARE_QP");
	int most = spare_qp ? atoi(spare_qp) : max_qp ? atoi(max_qp) : 0;
	struct ibv_device_attr attr;
	struct ibv_qp *qps[64];
	struct side a;

	side_open(&a, 0, false);
	CHECK(!ibv_query_device(a.ctx, &attr));
	CHECK(attr.max_qp == (max_qp ? atoi(max_qp) : 16383) && most <= 64);
	if (most) {
		for (int i = 1; i < most; i++)
			CHECK((qps[i] = make_qp(&a)));
		CHECK(!make_qp(&a) && errno == ENOMEM);
		for (int i = 1; i < most; i++)
			CHECK(!ibv_destroy_qp(qps[i]));
	}
	side_close(&a);
}

void test_many_qps(void)
{
	enum { N = 3000 };
	static struct ibv_qp *qa[N], *qb[N];
	struct side a, b;
	struct ibv_wc wc;
	double t = now();

	side_open(&a, 0, true);
	side_open(&b, 1, true);
	for (int i = 0; i < N; i++) {
		struct ibv_qp *keep_a = a.qp, *keep_b = b.qp;

		a.qp = qa[i] = make_qp(&a);
		b.qp = qb[i] = make_qp(&b);
		CHECK(a.qp && b.qp);
		if (failed_here)
			return;
		pair(&a, &b);
		a.qp = keep_a;
		b.qp = keep_b;
	}
	t = now() - t;
	printf("  %.1f us a connected pair\n", t / N * 1e6);
	for (int i = 0; i < N; i++) {
		struct ibv_qp *keep = a.qp;

		a.qp = qa[i];
		*(int *)a.buf = i;
		CHECK(!post_recv(&b, i, 64, 64) &&
		      !post(&a, IBV_WR_SEND, i, 0, 4, IBV_SEND_SIGNALED | IBV_SEND_INLINE, 0, 0));
		CHECK(get(b.rcq, &wc, 20) == 1 && wc.qp_num == qb[i]->qp_num &&
		      *(int *)(b.buf + 64) == i);
		CHECK(get(a.scq, &wc, 20) == 1 && !wc.status);
		a.qp = keep;
	}
	for (int i = 0; i < N; i++)
		CHECK(!ibv_destroy_qp(qa[i]) && !ibv_destroy_qp(qb[i]));
	side_close(&a);
	side_close(&b);
}
