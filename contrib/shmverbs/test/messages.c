/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages: sends and receives of all sizes, queues, gather and scatter, sends that are refused
 * at once.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "side.h"
#include "tests.h"

static void messages(bool srq)
{
	static const size_t sizes[] = {0,    1,    8,    64,   232,   233,     1000,
				       4096, 4097, 8704, 8705, 65536, 1 << 20, 2 << 20};
	struct side a, b;
	struct ibv_wc wc;

	side_open(&a, 0, false);
	side_open(&b, 1, srq);
	pair(&a, &b);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size_t n = sizes[i];

		fill(a.buf, n, i);
		memset(b.buf, 0xee, SIZE);
		CHECK(!post_recv(&b, 100 + i, 4, n + 8));
		CHECK(!post(&a, i % 2 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, i, 0, n,
			    IBV_SEND_SIGNALED | (n <= 64 ? IBV_SEND_INLINE : 0), 0, 0));
		CHECK(get(a.scq, &wc, 20) == 1 && wc.status == 0 && wc.wr_id == i &&
		      wc.opcode == IBV_WC_SEND);
		CHECK(get(b.rcq, &wc, 20) == 1 && wc.status == 0 && wc.wr_id == 100 + i &&
		      wc.byte_len == n && wc.opcode == IBV_WC_RECV && wc.qp_num == b.qp->qp_num &&
		      !!(wc.wc_flags & IBV_WC_WITH_IMM) == !(i % 2) &&
		      (i % 2 || wc.imm_data == htonl(77)));
		CHECK(is_filled(b.buf + 4, n, i) && b.buf[3] == 0xee && b.buf[4 + n] == 0xee);
	}
	/* So many messages that all rings wrap and all places beside the queue are in use. */
	for (int round = 0; round < 300; round++) {
		for (int i = 0; i < DEPTH; i++)
			CHECK(!post_recv(&b, i, i * 8192, 8192));
		for (int i = 0; i < DEPTH; i++) {
			fill(a.buf + i * 8192, 3000, round + i);
			CHECK(!post(&a, IBV_WR_SEND, i, i * 8192, i % 3 ? 3000 : 3,
				    i == DEPTH - 1 ? IBV_SEND_SIGNALED : 0, 0, 0));
		}
		CHECK(get(a.scq, &wc, 20) == 1 && wc.wr_id == DEPTH - 1);
		for (int i = 0; i < DEPTH; i++) {
			CHECK(get(b.rcq, &wc, 20) == 1 && !wc.status);
			CHECK(wc.byte_len == (i % 3 ? 3000 : 3) &&
			      is_filled(b.buf + wc.wr_id * 8192, wc.byte_len, round + i));
		}
		if (failed_here)
			break;
	}
	side_close(&a);
	side_close(&b);
}

void test_messages(void)
{
	messages(false);
}

void test_srq(void)
{
	messages(true);
}

void test_gather(void)
{
	struct side a, b;
	struct ibv_wc wc;
	struct ibv_send_wr wr = {.wr_id = 1,
				 .num_sge = 3,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_recv_wr rr = {.wr_id = 2, .num_sge = 3}, *rbad;

	side_open(&a, 0, false);
	side_open(&b, 0, true);
	pair(&a, &b);
	for (int big = 0; big < 2; big++) {
		uint32_t k = big ? 10000 : 30;
		struct ibv_sge s[3] = {{(uintptr_t)a.buf, k, a.mr->lkey},
				       {(uintptr_t)a.buf + k, 2 * k, a.mr->lkey},
				       {(uintptr_t)a.buf + 3 * k, 3, a.mr->lkey}};
		struct ibv_sge r[3] = {{(uintptr_t)b.buf, 7, b.mr->lkey},
				       {(uintptr_t)b.buf + 7, 2 * k, b.mr->lkey},
				       {(uintptr_t)b.buf + 7 + 2 * k, 2 * k, b.mr->lkey}};

		wr.sg_list = s;
		rr.sg_list = r;
		fill(a.buf, SIZE, big);
		CHECK(!ibv_post_srq_recv(b.srq, &rr, &rbad));
		CHECK(!ibv_post_send(a.qp, &wr, &bad));
		CHECK(get(a.scq, &wc, 20) == 1 && !wc.status);
		CHECK(get(b.rcq, &wc, 20) == 1 && !wc.status && wc.byte_len == 3 * k + 3 &&
		      is_filled(b.buf, 3 * k + 3, big));
	}
	side_close(&a);
	side_close(&b);
}

void test_depth(void)
{
	struct side a, b;
	struct ibv_wc wc;

	side_open(&a, 0, false);
	side_open(&b, 1, true);
	pair(&a, &b);
	for (int i = 0; i < DEPTH + 1; i++)
		CHECK(!post_recv(&b, i, 0, 64));
	for (int i = 0; i < DEPTH; i++)
		CHECK(!post(&a, IBV_WR_SEND, i, 0, 8, i == 9 ? IBV_SEND_SIGNALED : 0, 0, 0));
	CHECK(post(&a, IBV_WR_SEND, 0, 0, 8, 0, 0, 0) == ENOMEM);
	CHECK(get(a.scq, &wc, 20) == 1 && wc.wr_id == 9);
	for (int i = 0; i < 10; i++) /* polling it retires ten sends */
		CHECK(!post(&a, IBV_WR_RDMA_WRITE, i, 0, 0, 0, 0, 0));
	CHECK(post(&a, IBV_WR_SEND, 0, 0, 8, 0, 0, 0) == ENOMEM);
	CHECK(post(&a, IBV_WR_SEND, 0, 0, 8, IBV_SEND_INLINE, 0, 0) == ENOMEM);
	side_close(&a);
	side_close(&b);
}

void test_inline(void)
{
	struct side a, b;
	struct ibv_qp_init_attr init = {
	    .qp_type = IBV_QPT_RC,
	    .cap = {.max_send_wr = 4, .max_send_sge = 1, .max_inline_data = 4000}};

	side_open(&a, 0, false);
	side_open(&b, 1, true);
	pair(&a, &b);
	CHECK(post(&a, IBV_WR_SEND, 0, 0, 65, IBV_SEND_INLINE, 0, 0) == EINVAL);
	init.send_cq = init.recv_cq = a.scq;
	CHECK(!ibv_create_qp(a.pd, &init) && errno == EINVAL);
	side_close(&a);
	side_close(&b);
}

void test_too_long(void)
{
	for (int big = 0; big < 2; big++) {
		struct side a, b;
		struct ibv_wc wc;

		side_open(&a, 0, false);
		side_open(&b, 1, true);
		pair(&a, &b);
		CHECK(!post_recv(&b, 1, 0, 7));
		CHECK(!post(&a, IBV_WR_SEND, 1, 0, big ? 100000 : 8, 0, 0, 0));
		CHECK(get(a.scq, &wc, 20) == 1 && wc.status == IBV_WC_REM_INV_REQ_ERR);
		CHECK(get(b.rcq, &wc, 20) == 1 && wc.status == IBV_WC_LOC_LEN_ERR && wc.wr_id == 1);
		CHECK(state(a.qp) == IBV_QPS_ERR && state(b.qp) == IBV_QPS_ERR);
		side_close(&a);
		side_close(&b);
	}
}

void test_rnr(void)
{
	struct side a, b;
	struct ibv_wc wc;
	double t;

	knobs.rnr_retry = 2;
	knobs.rnr_timer = 20; /* 10.24 ms */
	side_open(&a, 0, false);
	side_open(&b, 1, true);
	pair(&a, &b);
	t = now();
	CHECK(!post(&a, IBV_WR_SEND, 1, 0, 8, 0, 0, 0));
	CHECK(get(a.scq, &wc, 20) == 1 && wc.status == IBV_WC_RNR_RETRY_EXC_ERR);
	t = now() - t;
	CHECK(t > 0.020);
	side_close(&a);
	side_close(&b);
	knobs.rnr_retry = 7;
	knobs.rnr_timer = 12;
	side_open(&a, 0, false);
	side_open(&b, 1, true);
	pair(&a, &b);
	for (int i = 0; i < 20; i++) {
		fill(a.buf, 100, i);
		CHECK(!post(&a, IBV_WR_SEND, i, 0, i == 19 ? 100 : 50,
			    IBV_SEND_SIGNALED | (i < 19 ? IBV_SEND_INLINE : 0), 0, 0));
	}
	CHECK(get(a.scq, &wc, 0.1) == 0);
	for (int i = 0; i < 20; i++)
		CHECK(!post_recv(&b, i, i * 100, 100));
	usleep(100000); /* no poll at the sender: its thread sends */
	for (int i = 0; i < 20; i++) {
		CHECK(ibv_poll_cq(b.rcq, 1, &wc) == 1 && wc.wr_id == (unsigned)i &&
		      is_filled(b.buf + 100 * i, wc.byte_len, i));
		CHECK(get(a.scq, &wc, 20) == 1 && wc.wr_id == (unsigned)i && !wc.status);
	}
	side_close(&a);
	side_close(&b);
}

void test_late_peer(void)
{
	struct side a, b;
	struct name an, bn;
	struct ibv_wc wc;

	side_open(&a, 0, false);
	side_open(&b, 1, true);
	an = name_of(&a);
	bn = name_of(&b);
	CHECK(!to_rtr(a.qp, &bn) && !to_rts(a.qp));
	CHECK(!post_recv(&b, 1, 0, 64));
	CHECK(!post(&a, IBV_WR_SEND, 1, 0, 8, IBV_SEND_SIGNALED, 0, 0));
	CHECK(get(a.scq, &wc, 0.05) == 0);
	CHECK(!to_rtr(b.qp, &an));
	CHECK(get(a.scq, &wc, 20) == 1 && !wc.status && get(b.rcq, &wc, 20) == 1);
	/* To a queue pair that is gone, the retries are used up. */
	knobs.timeout = 10; /* 8 * 4.2 ms */
	side_close(&b);
	CHECK(!post(&a, IBV_WR_SEND, 1, 0, 8, 0, 0, 0));
	CHECK(get(a.scq, &wc, 20) == 1 && wc.status == IBV_WC_RETRY_EXC_ERR);
	knobs.timeout = 14;
	side_close(&a);
}

void test_wire(void)
{
	struct side a, b;
	struct ibv_wc wc;
	double t, wire = getenv("SHMV_WIRE_NS") ? atof(getenv("SHMV_WIRE_NS")) * 1e-9 : 0;

	side_open(&a, 0, false);
	side_open(&b, 1, true);
	pair(&a, &b);
	for (int i = 0; i < 20; i++) {
		struct ibv_cq *cq;
		void *context;

		CHECK(!post_recv(&b, 1, 0, 64));
		t = now();
		CHECK(!post(&a, IBV_WR_SEND, 1, 0, 8, IBV_SEND_SIGNALED, 0, 0));
		ibv_req_notify_cq(b.rcq, 0);
		if (!ibv_poll_cq(b.rcq, 1, &wc)) {
			do {
				CHECK(!ibv_get_cq_event(b.channel, &cq, &context) && cq == b.rcq);
				ibv_ack_cq_events(cq, 1);
				ibv_req_notify_cq(b.rcq, 0);
			} while (!ibv_poll_cq(b.rcq, 1, &wc));
		}
		CHECK(!wc.status && now() - t >= wire);
		CHECK(get(a.scq, &wc, 20) == 1 && !wc.status && now() - t >= 2 * wire);
	}
	side_close(&a);
	side_close(&b);
}
